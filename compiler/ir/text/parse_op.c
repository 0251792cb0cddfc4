/* Parses an operator's line and its attributes; print.c writes them. */
#include "ir/text/parse.h"
#include "ir/programs/conversions.h"
#include "ir/verify/verify.h"
#include "syntax/lex.h"

typedef Array(Value *) Values;

/* ---- factored bindings ---- */

/* Reads one tensor of a factored binding: ACCESS(DIMS)/WRITTEN_RANK. */
static bool parse_access(IrParser *parser, BoundAccess *access) {
    Tokens *tokens = &parser->tokens;
    Array(BoundDim) dims = {0};
    int64_t number;
    if (!parse_int(parser, &number) || !tokens_expect(tokens, "(", "after the access"))
        return false;
    access->access = (int)number;
    while (!tokens_is(tokens, ")")) {
        Array(int) factors = {0};
        BoundDim dim = {.written = dims.count};
        if (dims.count && !tokens_expect(tokens, ",", "between two dimensions")) return false;
        while (tokens->token->kind == TOKEN_NUMBER) {
            if (!parse_int(parser, &number)) return false;
            array_push(parser->arena, &factors, (int)number);
        }
        if (tokens_take(tokens, "/")) {
            if (!parse_int(parser, &number)) return false;
            dim.written = (int)number;
        }
        dim.count = factors.count;
        dim.factors = factors.at;
        array_push(parser->arena, &dims, dim);
        if (tokens_end(tokens)) return parse_fail(parser, "')'");
    }
    tokens_next(tokens);
    access->rank = access->written_rank = dims.count;
    access->dims = dims.at;
    if (tokens_take(tokens, "/")) {
        if (!parse_int(parser, &number)) return false;
        access->written_rank = (int)number;
    }
    return true;
}

typedef Array(BoundAccess) Accesses;

static bool parse_accesses(IrParser *parser, Accesses *accesses) {
    while (parser->tokens.token->kind == TOKEN_NUMBER) {
        BoundAccess access = {0};
        if (!parse_access(parser, &access)) return false;
        array_push(parser->arena, accesses, access);
    }
    return true;
}

static bool parse_factors(IrParser *parser, Binding *binding) {
    Tokens *tokens = &parser->tokens;
    Array(BoundFactor) factors = {0};
    if (!tokens_expect(tokens, "[", "before the factors")) return false;
    while (!tokens_is(tokens, "]")) {
        int64_t factor, extent;
        if ((factors.count && !tokens_expect(tokens, ",", "between two factors")) ||
            !parse_int(parser, &factor) || !tokens_expect(tokens, ":", "after the factor") ||
            !parse_int(parser, &extent))
            return false;
        array_push(parser->arena, &factors, (BoundFactor){(int)factor, extent});
    }
    tokens_next(tokens);
    binding->factor_count = factors.count;
    binding->factors = factors.at;
    return true;
}

/* Returns whether a binding has all factors that its accesses name; else reports an error. */
static bool check_binding(IrParser *parser, const Binding *binding) {
    for (int i = 0; i < binding->operand_count + binding->result_count; i++) {
        const BoundAccess *access = i < binding->operand_count
                                        ? &binding->operands[i]
                                        : &binding->results[i - binding->operand_count];
        for (int d = 0; d < access->rank; d++)
            for (int k = 0; k < access->dims[d].count; k++)
                if (access->dims[d].factors[k] < 0 ||
                    access->dims[d].factors[k] >= binding->factor_count)
                    return parse_fail(parser, "only factors that the binding lists, before this");
    }
    return true;
}

bool parse_binding(IrParser *parser) {
    int64_t number;
    Binding *binding = arena_new(parser->arena, Binding);
    Accesses operands = {0}, results = {0};
    if (!parse_int(parser, &number) || !parse_def_name(parser) || !parse_factors(parser, binding) ||
        !parse_accesses(parser, &operands) ||
        !tokens_expect(&parser->tokens, "->", "between operands and results") ||
        !parse_accesses(parser, &results))
        return false;
    binding->operand_count = operands.count;
    binding->operands = operands.at;
    binding->result_count = results.count;
    binding->results = results.at;
    if (number != parser->bindings.count) return parse_fail(parser, "bindings numbered in order");
    array_push(parser->arena, &parser->bindings, binding);
    return check_binding(parser, binding);
}

/* ---- operators ---- */

static bool parse_shape(IrParser *parser, Attr *attr) {
    Tokens *tokens = &parser->tokens;
    Array(int64_t) ints = {0};
    if (!tokens_expect(tokens, "[", "before the extents")) return false;
    while (!tokens_is(tokens, "]")) {
        int64_t extent;
        if ((ints.count && !tokens_expect(tokens, ",", "between two extents")) ||
            !parse_int(parser, &extent))
            return false;
        array_push(parser->arena, &ints, extent);
    }
    tokens_next(tokens);
    attr->count = ints.count;
    attr->ints = ints.at;
    return true;
}

static bool parse_dtype_attr(IrParser *parser, Attr *attr) {
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (tokens_take(&parser->tokens, dtype_name((DType)i))) {
            attr->i = i;
            return true;
        }
    return parse_fail(parser, "an element type");
}

static bool parse_attr(IrParser *parser, ParamKind kind, Attr *attr) {
    switch (kind) {
    case PARAM_FLOAT: return parse_double(parser, &attr->f);
    case PARAM_SHAPE: return parse_shape(parser, attr);
    case PARAM_DTYPE: return parse_dtype_attr(parser, attr);
    default: return parse_int(parser, &attr->i);
    }
}

static bool parse_attrs(IrParser *parser, const OpDef *def, Attr *attrs) {
    Tokens *tokens = &parser->tokens;
    if (!def->attr_count) return true;
    if (!tokens_expect(tokens, "{", "before the arguments")) return false;
    for (int i = 0, next = 0; i < def->param_count; i++) {
        ParamKind kind = def->params[i].kind;
        if (kind == PARAM_TENSOR || kind == PARAM_TENSORS) continue;
        if ((next && !tokens_expect(tokens, ",", "between two arguments")) ||
            !parse_attr(parser, kind, &attrs[next++]))
            return false;
    }
    return tokens_expect(tokens, "}", "after the arguments");
}

/* Reads a number in [0, count). */
static bool parse_index(IrParser *parser, int count, int64_t *number) {
    if (!parse_int(parser, number)) return false;
    return (*number >= 0 && *number < count) ||
           parse_fail(parser, "a number that stands before, before this");
}

/* Reads COUNT @POSITION...: the positions of the operators that were fused into this one. */
static bool parse_also(IrParser *parser) {
    Array(Position) also = {0};
    int64_t count;
    bool good = parse_int(parser, &count);
    for (; good && also.count < count && tokens_is(&parser->tokens, "@");) {
        Position at;
        good = parse_position(parser, &at);
        array_push(parser->arena, &also, at);
    }
    parser->source.fused_at = also.at;
    parser->source.fused_count = also.count;
    return good &&
           (also.count == count || parse_fail(parser, "as many positions as the line says"));
}

/* Reads [tower "NAME"] layer NUMBER, or [tower "NAME"] layer "NAME". */
static bool parse_layer(IrParser *parser, const Layer **layer) {
    Tokens *tokens = &parser->tokens;
    Layer *own = arena_new(parser->arena, Layer);
    int64_t number = 0;
    if (tokens_take(tokens, "tower") && !parse_string(parser, &own->tower)) return false;
    if (!tokens_expect(tokens, "layer", NULL) ||
        !(tokens->token->kind == TOKEN_STRING ? parse_string(parser, &own->name)
                                              : parse_int(parser, &number)))
        return false;
    own->number = (int)number;
    *layer = own;
    return true;
}

/* Reads %ID and writes the operator that makes this value to *again. */
static bool parse_again(IrParser *parser, const Op **again) {
    Value *value;
    if (!parse_ref(parser, &value)) return false;
    *again = value ? value->def : NULL;
    return *again || parse_fail(parser, "a value that an operator makes, before this");
}

/* Reads one attribute of an operator, between its arguments and the colon, into `marks` or
 * parser->source. Sets *done if the current token begins no attribute. */
static bool parse_mark(IrParser *parser, Op *marks, bool *done) {
    Tokens *tokens = &parser->tokens;
    int64_t number = 0;
    bool good = true;
    if (tokens_take(tokens, "plan")) {
        if ((good = parse_index(parser, parser->module->devices->conversions.count, &number)))
            marks->convert.plan = parser->module->devices->conversions.at[number];
        if (good && tokens_take(tokens, "tensor") &&
            (good = parse_index(parser, marks->convert.plan->tensors.count, &number)))
            marks->convert.tensor = (int)number;
    } else if (tokens_take(tokens, "binding")) {
        if ((good = parse_index(parser, parser->bindings.count, &number)))
            marks->binding = parser->bindings.at[number];
    } else if (tokens_take(tokens, "gradient")) {
        if ((good = parse_index(parser, parser->module->library->gradients.count, &number)))
            marks->gradient = parser->module->library->gradients.at[number];
    } else if (tokens_take(tokens, "from")) {
        if ((good = parse_index(parser, parser->frames.count, &number)))
            parser->source.frames = parser->frames.at[number];
    } else if (tokens_take(tokens, "scope")) {
        good = parse_string(parser, &parser->source.scope);
    } else if (tokens_take(tokens, "for")) {
        good = parse_string(parser, &parser->source.reason);
    } else if (tokens_take(tokens, "also")) {
        good = parse_also(parser);
    } else if (tokens_is(tokens, "tower") || tokens_is(tokens, "layer")) {
        good = parse_layer(parser, &parser->source.layer);
    } else if (tokens_take(tokens, "recompute")) {
        good = parse_int(parser, &number);
        parser->source.recompute = (int)number;
    } else if (tokens_take(tokens, "recomputes")) {
        good = parse_again(parser, &parser->source.recomputes);
    } else if (tokens_take(tokens, "loop")) {
        marks->loop = tokens_take(tokens, "each")    ? LOOP_EACH
                      : tokens_take(tokens, "count") ? LOOP_COUNT
                                                     : LOOP_AFTER;
        good = marks->loop != LOOP_AFTER ||
               tokens_expect(tokens, "after", "or 'each' or 'count' after 'loop'");
    } else if (tokens_take(tokens, "source_op")) {
        good = parse_int(parser, &number);
        parser->source.op = (int)number;
    } else if (tokens_take(tokens, "stage")) {
        if ((good = parse_index(parser, parser->module->templates->stages.count, &number)))
            marks->stage = (int)number;
    } else if (tokens_take(tokens, "visit")) {
        good = parse_int(parser, &number);
        marks->visit = (int)number;
    } else if (tokens_take(tokens, "chunk")) {
        good = parse_int(parser, &number);
        parser->source.chunk = (int)number;
    } else if (tokens_take(tokens, "wgrad")) {
        marks->is_wgrad = true;
    } else if (tokens_take(tokens, "in_place")) {
        marks->run_in_place = true;
    } else {
        *done = true;
    }
    return good;
}

static bool parse_marks(IrParser *parser, Op *marks) {
    *marks = (Op){.stage = STAGE_ALL, .section = parser->section};
    parser->source = op_no_source;
    for (bool done = false; !done;)
        if (!parse_mark(parser, marks, &done)) return false;
    marks->source = arena_copy(parser->arena, &parser->source, sizeof parser->source);
    return parse_position(parser, &marks->at);
}

/* Makes an operator with a factored binding. parse_results sets the types of its results later. */
static Op *refined_op(IrParser *parser, const OpDef *def, const Values *operands, const Attr *attrs,
                      const Op *marks) {
    Arena *arena = parser->arena;
    Op *op = arena_new(arena, Op);
    *op = (Op){.def = def,
               .attrs = arena_copy(arena, attrs, sizeof *attrs * (size_t)def->attr_count),
               .binding = marks->binding,
               .operand_count = operands->count,
               .result_count = def->rule->result_count,
               .operands = operands->at,
               .results = arena_array(arena, Value *, def->rule->result_count)};
    for (int i = 0; i < op->result_count; i++) {
        op->results[i] = ir_value(parser->module, VALUE_RESULT, NULL, (Type){0}, marks->at);
        op->results[i]->def = op;
        op->results[i]->index = i;
    }
    return op;
}

static Op *make_op(IrParser *parser, const OpDef *def, const Values *operands, const Attr *attrs,
                   const Op *marks) {
    Op *op = marks->binding
                 ? refined_op(parser, def, operands, attrs, marks)
                 : ir_op(parser->module, &(OpCall){def, operands->at, operands->count, attrs},
                         marks->at);
    if (!op) return NULL;
    op_take_place(parser->arena, op, marks);
    op->source = marks->source;
    op->gradient = marks->gradient;
    op->convert.plan = marks->convert.plan;
    op->convert.tensor = marks->convert.tensor;
    op->run_in_place = marks->run_in_place;
    return op;
}

static bool parse_operands(IrParser *parser, Values *operands) {
    Tokens *tokens = &parser->tokens;
    if (!tokens_expect(tokens, "(", "after the operator")) return false;
    while (!tokens_is(tokens, ")")) {
        Value *value;
        if ((operands->count && !tokens_expect(tokens, ",", "between two operands")) ||
            !parse_ref(parser, &value))
            return false;
        array_push(parser->arena, operands, value);
    }
    tokens_next(tokens);
    return true;
}

static bool parse_results(IrParser *parser, Op *op, const int *ids, int count) {
    if (count != op->result_count)
        return parse_fail(parser, "as many results as the rule has, before this");
    for (int i = 0; i < count; i++) {
        if (!tokens_expect(&parser->tokens, i ? "," : ":", "before the type of a result") ||
            !parse_value(parser, op->results[i]))
            return false;
        define_value(parser, op->results[i], ids[i]);
    }
    return true;
}

bool parse_op(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    enum { RESULTS_MOST = 16 };
    int ids[RESULTS_MOST], count = 0;
    Position at = tokens->token->at;
    Values operands = {0};
    Op marks;
    do {
        if (count == RESULTS_MOST) return parse_fail(parser, "fewer results");
        if (!parse_new_id(parser, &ids[count++])) return false;
    } while (tokens_take(tokens, ","));
    if (!tokens_expect(tokens, "=", "after the results")) return false;
    const OpDef *def = parse_def_name(parser);
    if (!def) return false;
    Attr *attrs = arena_array(parser->arena, Attr, def->attr_count + 1);
    if (!parse_operands(parser, &operands) || !parse_attrs(parser, def, attrs) ||
        !parse_marks(parser, &marks))
        return false;
    Op *op = make_op(parser, def, &operands, attrs, &marks);
    if (!op || !parse_results(parser, op, ids, count) || !ir_verify_op(parser->module, op, at))
        return false;
    if (op->convert.plan) {
        PlannedConversion *conversion =
            parser->module->devices->conversions.at[op->convert.plan->number];
        conversion_use(conversion, op->convert.tensor, op);
        conversion_plan(parser->module, conversion);
    }
    if (parser->function) array_push(parser->arena, &parser->function->ops, op);
    else array_push(parser->arena, &parser->module->ops, op);
    return true;
}
