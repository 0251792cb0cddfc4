/* Parses a module's IR text, line by line. parse_op.c reads one operator, parse_value.c types and
 * layouts. */
#include "ir/text/parse.h"
#include "ir/verify/verify.h"

#include "cluster/cluster.h"
#include "syntax/lex.h"

#include <string.h>

#define uthash_malloc(size) arena_alloc(parser->arena, (size))
#define uthash_free(pointer, size) ((void)(pointer))
#include <uthash.h>

typedef struct DefName {
    const OpDef *def;
    UT_hash_handle hh;
} DefName;

/* ---- definitions ---- */

static void remember_def(IrParser *parser, const OpDef *def) {
    DefName *entry = arena_new(parser->arena, DefName);
    entry->def = def;
    HASH_ADD_KEYPTR(hh, parser->defs, def->name, strlen(def->name), entry);
}

static const OpDef *find_def(IrParser *parser, const char *name) {
    DefName *entry;
    HASH_FIND_STR(parser->defs, name, entry);
    return entry ? entry->def : NULL;
}

const OpDef *parse_def_name(IrParser *parser) {
    Position at = parser->tokens.token->at;
    const char *name;
    if (!parse_name(parser, &name)) return NULL;
    const OpDef *def = find_def(parser, name);
    if (!def)
        diag_error(parser->diag, at, "the operator '%s' is not defined before this line", name);
    return def;
}

static bool parse_param_kind(IrParser *parser, ParamKind *kind) {
    static const char *const kinds[] = {"tensor", "tensors", "int", "float", "shape", "dtype"};
    for (int i = 0; i < 6; i++)
        if (tokens_take(&parser->tokens, kinds[i])) {
            *kind = (ParamKind)i;
            return true;
        }
    return parse_fail(parser, "tensor, tensors, int, float, shape or dtype");
}

static bool parse_params(IrParser *parser, OpDef *def) {
    Tokens *tokens = &parser->tokens;
    Array(OpParam) params = {0};
    if (!tokens_expect(tokens, "(", "after the operator's name")) return false;
    while (!tokens_is(tokens, ")")) {
        OpParam param;
        if ((params.count && !tokens_expect(tokens, ",", "between two parameters")) ||
            !parse_param_kind(parser, &param.kind) || !parse_name(parser, &param.name))
            return false;
        array_push(parser->arena, &params, param);
        def->attr_count += param.kind != PARAM_TENSOR && param.kind != PARAM_TENSORS;
    }
    tokens_next(tokens);
    def->params = params.at;
    def->param_count = params.count;
    return true;
}

static bool parse_def(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    OpDef *def = arena_new(parser->arena, OpDef);
    Position name_at = tokens->token->at;
    if (!parse_name(parser, &def->name) || !parse_params(parser, def) ||
        !parse_position(parser, &def->at))
        return false;
    if (!tokens_end(tokens)) return parse_fail(parser, "the end of the line");
    tokens_next_line(tokens);
    def->rule = rule_parse(tokens, def->params, def->param_count);
    if (!def->rule) return false;
    const OpDef *own = module_def(parser->module, def);
    if (own == parser->module->builtin->reshard) return true;
    if (own != def) {
        diag_error(parser->diag, name_at, "the operator '%s' is defined twice", def->name);
        return false;
    }
    remember_def(parser, def);
    return true;
}

static bool parse_update(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    int64_t states;
    parser->module->optimizer->op = parse_def_name(parser);
    if (!parser->module->optimizer->op || !tokens_expect(tokens, "states", "after the operator") ||
        !parse_int(parser, &states))
        return false;
    parser->module->optimizer->state_count = (int)states;
    parser->module->optimizer->clip = tokens_take(tokens, "clip");
    parser->module->optimizer->norm = tokens_take(tokens, "norm");
    return states <= 4 || parse_fail(parser, "at most 4 states, before this");
}

/* ---- the module's head ---- */

/* Reads the name of the cluster's file, "FILE", and the file itself. */
static bool parse_cluster(IrParser *parser, Module *module) {
    if (!parse_string(parser, &module->devices->target.cluster_file)) return false;
    module->devices->target.cluster =
        cluster_read(parser->arena, parser->diag, module->devices->target.cluster_file);
    return module->devices->target.cluster != NULL;
}

static bool parse_head_marks(IrParser *parser, Module *module) {
    Tokens *tokens = &parser->tokens;
    int64_t next;
    if (tokens_take(tokens, "precision") && !parse_dtype(parser, &module->precision)) return false;
    if (tokens_take(tokens, "cluster") && !parse_cluster(parser, module)) return false;
    if (tokens_take(tokens, "after") && !parse_name(parser, &module->last_pass)) return false;
    if (!tokens_expect(tokens, "next", "in the module's line") || !parse_int(parser, &next))
        return false;
    if (next < 0 || next > 1 << 28)
        return parse_fail(parser, "a smaller number of values, before this");
    parser->next_id = module->next_id = (int)next;
    parser->values.at = arena_array(parser->arena, Value *, next + 1);
    return parse_position(parser, &module->source->at);
}

static bool parse_module(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    const char *name;
    Position at = tokens->token->at;
    if (!parse_string(parser, &name)) return false;
    parser->head = at;
    Module *module = parser->module = module_create(parser->arena, parser->diag, name);
    remember_def(parser, module->builtin->reshard);
    module->kind = tokens_take(tokens, "infer") ? MODULE_INFER : MODULE_TRAIN;
    if (module->kind == MODULE_TRAIN &&
        !tokens_expect(tokens, "train", "or 'infer' after the module's name"))
        return false;
    if (tokens_take(tokens, "source") && !parse_string(parser, &module->source->file)) return false;
    return parse_head_marks(parser, module);
}

/* Reads the lines from `strategy NAME` to `end strategy`. */
static bool parse_strategy(IrParser *parser) {
    const Strategy *strategy = parser->module->strategy = strategy_parse_one(&parser->tokens);
    return strategy;
}

/* ---- parameters, states, inputs ---- */

static bool parse_init(IrParser *parser, Parameter *param) {
    Tokens *tokens = &parser->tokens;
    static const char *const names[] = {[INIT_ZEROS] = "zeros",
                                        [INIT_CONSTANT] = "constant",
                                        [INIT_NORMAL] = "normal",
                                        [INIT_UNIFORM] = "uniform"};
    if (!tokens_expect(tokens, "init", "after the parameter's name")) return false;
    for (int i = 0; i < 4; i++)
        if (tokens_take(tokens, names[i])) {
            param->init = (InitKind)i;
            return i == INIT_ZEROS || parse_double(parser, &param->a);
        }
    return parse_fail(parser, "zeros, constant, normal or uniform");
}

/* Reads %ID "NAME" and returns a new value of `kind`; NULL after an error. */
static Value *parse_named(IrParser *parser, ValueKind kind, int index) {
    int id;
    const char *name;
    if (!parse_new_id(parser, &id) || !parse_string(parser, &name)) return NULL;
    Value *value = ir_value(parser->module, kind, name, (Type){0}, (Position){0});
    value->index = index;
    define_value(parser, value, id);
    return value;
}

static bool parse_param(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    Module *module = parser->module;
    int64_t group = 0;
    Parameter *param = arena_new(parser->arena, Parameter);
    param->value = parse_named(parser, VALUE_PARAM, module->params.count);
    if (!param->value || (tokens_take(tokens, "shape") && !parse_string(parser, &param->shape)) ||
        !parse_init(parser, param))
        return false;
    param->name = param->value->name;
    param->no_decay = tokens_take(tokens, "no_decay");
    if (tokens_take(tokens, "group") && !parse_int(parser, &group)) return false;
    param->group = (int)group;
    param->kept = tokens_take(tokens, "kept");
    param->state = param->kept || tokens_take(tokens, "assigned");
    param->frozen = param->state || tokens_take(tokens, "frozen");
    array_push(parser->arena, &module->params, param);
    if (!tokens_expect(tokens, ":", "before the type") || !parse_value(parser, param->value))
        return false;
    if (!param->shape) param->shape = type_shape_text(parser->arena, param->value->type);
    return true;
}

/* Reads %ID of a parameter; returns NULL after an error. */
static Parameter *parse_param_ref(IrParser *parser) {
    Value *value;
    if (!parse_ref(parser, &value)) return NULL;
    if (value && value->kind == VALUE_PARAM && value->index < parser->module->params.count)
        return parser->module->params.at[value->index];
    parse_fail(parser, "a parameter before this");
    return NULL;
}

static bool parse_state(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    Value *value = parse_named(parser, VALUE_STATE, 0);
    if (!value || !tokens_expect(tokens, "of", "after the state's name")) return false;
    Parameter *param = parse_param_ref(parser);
    if (!param) return false;
    if (param->state_count == 4)
        return parse_fail(parser, "at most 4 states a parameter, before this");
    value->index = param->state_count;
    param->states[param->state_count++] = value;
    return tokens_expect(tokens, ":", "before the type") && parse_value(parser, value);
}

static bool parse_input(IrParser *parser) {
    Value *value = parse_named(parser, VALUE_INPUT, parser->module->inputs.count);
    if (!value || !tokens_expect(&parser->tokens, ":", "before the type") ||
        !parse_value(parser, value))
        return false;
    array_push(parser->arena, &parser->module->inputs, value);
    return true;
}

/* ---- gradients, frames ---- */

static bool parse_gradient(IrParser *parser) {
    parser->function = arena_new(parser->arena, Function);
    return parse_string(parser, &parser->function->name);
}

static bool parse_argument(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    Value *value = NULL;
    int id;
    if (!parser->function) return parse_fail(parser, "a line `gradient` before this");
    if (!tokens_take(tokens, "-")) {
        if (!parse_new_id(parser, &id) || !tokens_expect(tokens, ":", "before the type"))
            return false;
        value = ir_value(parser->module, VALUE_ARGUMENT, NULL, (Type){0}, (Position){0});
        value->index = parser->function->params.count;
        if (!parse_value(parser, value)) return false;
        define_value(parser, value, id);
    }
    array_push(parser->arena, &parser->function->params, value);
    return true;
}

static bool parse_return(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    Function *function = parser->function;
    if (!function) return parse_fail(parser, "a line `gradient` before this");
    while (!tokens_end(tokens)) {
        Value *value;
        if ((function->returns.count && !tokens_expect(tokens, ",", "between two values")) ||
            !parse_ref(parser, &value))
            return false;
        array_push(parser->arena, &function->returns, value);
    }
    array_push(parser->arena, &parser->module->library->gradients, function);
    parser->function = NULL;
    return true;
}

static bool parse_frame(IrParser *parser) {
    int64_t number, caller;
    Frame *frame = arena_new(parser->arena, Frame);
    if (!parse_int(parser, &number) || !parse_string(parser, &frame->function)) return false;
    if (tokens_take(&parser->tokens, "in")) {
        if (!parse_int(parser, &caller)) return false;
        if (caller < 0 || caller >= parser->frames.count)
            return parse_fail(parser, "the number of a frame above, before this");
        frame->caller = parser->frames.at[caller];
    }
    if (number != parser->frames.count) return parse_fail(parser, "frames numbered in order");
    array_push(parser->arena, &parser->frames, frame);
    return parse_position(parser, &frame->at);
}

/* ---- loss, outputs, new parameters ---- */

static bool parse_section(IrParser *parser) {
    static const char *const names[] = {[SECTION_FORWARD] = "forward",
                                        [SECTION_BACKWARD] = "backward",
                                        [SECTION_UPDATE] = "update"};
    for (int i = 0; i < 3; i++)
        if (tokens_take(&parser->tokens, names[i])) {
            parser->section = (Section)i;
            return true;
        }
    return parse_fail(parser, "forward, backward or update");
}

static bool parse_output(IrParser *parser) {
    Output output;
    if (!parse_string(parser, &output.name) || !parse_ref(parser, &output.value)) return false;
    if (!output.value) return parse_fail(parser, "a value");
    array_push(parser->arena, &parser->module->outputs, output);
    return true;
}

static bool parse_loss(IrParser *parser) { return parse_ref(parser, &parser->module->loss); }

static bool parse_trained(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    Parameter *param = parse_param_ref(parser);
    if (!param || !tokens_expect(tokens, "gradient", "after the parameter") ||
        !parse_ref(parser, &param->gradient) ||
        !tokens_expect(tokens, "updated", "after the gradient") ||
        !parse_ref(parser, &param->updated))
        return false;
    for (int i = 0; i < param->state_count; i++)
        if (!tokens_expect(tokens, ",", "before a state's new value") ||
            !parse_ref(parser, &param->states_updated[i]))
            return false;
    return true;
}

/* ---- lines ---- */

typedef struct LineForm {
    const char *word;
    bool (*parse)(IrParser *parser);
} LineForm;

static const LineForm forms[] = {{"module", parse_module},     {"op", parse_def},
                                 {"update", parse_update},     {"batch", parse_batch},
                                 {"template", parse_body},     {"stage", parse_stage},
                                 {"run", parse_run},           {"schedule", parse_schedule},
                                 {"mesh", parse_mesh},         {"split", parse_split},
                                 {"param", parse_param},       {"state", parse_state},
                                 {"input", parse_input},       {"gradient", parse_gradient},
                                 {"argument", parse_argument}, {"return", parse_return},
                                 {"frame", parse_frame},       {"binding", parse_binding},
                                 {"section", parse_section},   {"output", parse_output},
                                 {"loss", parse_loss},         {"trained", parse_trained},
                                 {"role", parse_role},         {"offsets", parse_offsets},
                                 {"scratch", parse_scratch},   {"plan", parse_plan}};

/* Returns the member of `builtin` that a line sets; NULL: it is another line. */
static const OpDef **take_builtin(Tokens *tokens, BuiltinDefs *builtin) {
    return tokens_take(tokens, "reshard")      ? &builtin->reshard
           : tokens_take(tokens, "part")       ? &builtin->local_part
           : tokens_take(tokens, "union")      ? &builtin->stage_union
           : tokens_take(tokens, "collect")    ? &builtin->collect
           : tokens_take(tokens, "accumulate") ? &builtin->accumulate
                                               : NULL;
}

static bool parse_line(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    if (!parser->module && !tokens_is(tokens, "module")) return parse_fail(parser, "'module'");
    if (tokens_is(tokens, "%")) return parse_op(parser);
    if (tokens_is(tokens, "strategy")) return parse_strategy(parser);
    const OpDef **builtin = parser->module ? take_builtin(tokens, parser->module->builtin) : NULL;
    if (builtin) return (*builtin = parse_def_name(parser)) != NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (tokens_is(tokens, forms[i].word)) {
            tokens_next(tokens);
            return forms[i].parse(parser);
        }
    return parse_fail(parser, "a line of a module");
}

/* Sets the subview of a value in a larger value, which may have one more dimension. */
static void fix_within(IrParser *parser, const StorageFix *fix) {
    Subview *within = arena_copy(parser->arena, &fix->place, sizeof fix->place);
    Value *value = fix->value;
    within->whole = parser->values.at[fix->storage];
    int lacking = within->whole->type.rank - value->type.rank;
    if (lacking < 0 || lacking > (within->dim >= 0) || within->dim < -1 ||
        within->dim >= within->whole->type.rank || within->start < 0)
        diag_error(parser->diag, fix->at, "%%%d is no part of %%%d there", value->id, fix->storage);
    else value->subview = within;
}

/* Returns whether the chain of storages that begins at a value has an end, that is, no cycle. */
static bool storage_ends(const IrParser *parser, const Value *value) {
    int steps = 0;
    while (value->storage && steps++ <= parser->storages.count) value = value->storage;
    return !value->storage;
}

static void fix_storages(IrParser *parser) {
    for (int i = 0; i < parser->storages.count; i++) {
        const StorageFix *fix = &parser->storages.at[i];
        if (fix->storage < 0 || fix->storage >= parser->next_id || !parser->values.at[fix->storage])
            diag_error(parser->diag, fix->at, "%%%d is not made in this module", fix->storage);
        else if (fix->within) fix_within(parser, fix);
        else fix->value->storage = parser->values.at[fix->storage];
    }
    for (int i = 0; i < parser->storages.count; i++)
        if (!storage_ends(parser, parser->storages.at[i].value))
            diag_error(parser->diag, parser->storages.at[i].at, "this storage is nobody's own");
}

static void check_functions(IrParser *parser) {
    if (parser->function)
        diag_error(parser->diag, parser->tokens.token->at,
                   "the gradient \"%s\" has no line `return`", parser->function->name);
}

/* Reads the lines of one module, up to the next module or the end. Returns NULL after errors. */
static Module *parse_lines(IrParser *parser) {
    int before = diag_errors(parser->diag);
    Tokens *tokens = &parser->tokens;
    while (tokens->token->kind != TOKEN_END && diag_errors(parser->diag) - before < DIAG_MOST) {
        if (parser->module && tokens_is(tokens, "module")) break;
        if (!tokens_end(tokens) && parse_line(parser) && !tokens_end(tokens))
            parse_fail(parser, "the end of the line");
        tokens_next_line(tokens);
    }
    check_functions(parser);
    fix_storages(parser);
    if (diag_errors(parser->diag) > before || !parser->module) return NULL;
    parser->module->next_id = parser->next_id;
    ir_number(parser->module);
    return ir_verify_text(parser->module, parser->head) ? parser->module : NULL;
}

bool ir_parse(Arena *arena, Diag *diag, const char *file, const char *text, ReadModules *modules) {
    int before = diag_errors(diag);
    TokenList list = {0};
    diag_source(diag, file, text);
    Lexer lexer = lex_begin(arena, diag, (Position){file, 1, 1}, text);
    lexer.lines = true;
    lex_rest(&lexer, &list);
    Tokens tokens = {.arena = arena, .diag = diag, .token = list.at};
    while (tokens.token->kind != TOKEN_END && diag_errors(diag) == before) {
        IrParser parser = {.arena = arena, .diag = diag, .tokens = tokens};
        Module *module = parse_lines(&parser);
        if (module) array_push(arena, modules, (ReadModule){module, {file, parser.head.line, 1}});
        tokens = parser.tokens;
    }
    if (!modules->count && diag_errors(diag) == before)
        diag_error(diag, tokens.token->at, "expected a module");
    return diag_errors(diag) == before;
}
