/* Prints a module as IR text (--emit=ir, --print-after). A new attribute goes here and into
 * parse_op.c or parse_value.c. */
#include "ir/text/text.h"

#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_malloc(size) arena_alloc(printer->scratch, (size))
#define uthash_free(pointer, size) ((void)(pointer))
#include <uthash.h>

/* ---- values ---- */

static void print_quoted(Text *out, const char *string) {
    text_string(out, "\"");
    for (; *string; string++) switch (*string) {
        case '"':
        case '\\': text_print(out, "\\%c", *string); break;
        case '\n': text_string(out, "\\n"); break;
        case '\t': text_string(out, "\\t"); break;
        case '\r': text_string(out, "\\r"); break;
        default: text_append(out, string, 1);
        }
    text_string(out, "\"");
}

void print_number(Text *out, double number) {
    char digits[40];
    for (int precision = 6; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number) break;
    }
    text_string(out, digits);
}

/* Prints a position; a position without file and line as 0:0. */
static void print_any_position(Printer *printer, Position at) {
    text_string(printer->out, " @");
    if (!at.file && !at.line) {
        text_string(printer->out, "0:0");
        return;
    }
    if (!at.file || !printer->module->source->file ||
        strcmp(at.file, printer->module->source->file)) {
        print_quoted(printer->out, at.file ? at.file : "");
        text_string(printer->out, ":");
    }
    text_print(printer->out, "%d:%d", at.line, at.column);
}

static void print_position(Printer *printer, Position at) {
    if (at.file || at.line) print_any_position(printer, at);
}

static void print_type(Text *out, Type type) {
    text_print(out, "%s[", dtype_name(type.dtype));
    for (int d = 0; d < type.rank; d++)
        text_print(out, d ? ", %lld" : "%lld", (long long)type.extent[d]);
    text_string(out, "]");
}

static void print_ref(Text *out, const Value *value) {
    if (value) text_print(out, "%%%d", value->id);
    else text_string(out, "-");
}

static void print_dim_name(Text *out, DimName name) {
    text_string(out, name.name ? name.name : "_");
    if (name.part) text_print(out, ":%d", name.part);
}

static void print_dims(Text *out, const Value *value) {
    text_string(out, " dims(");
    for (int d = 0; d < value->type.rank; d++) {
        const Dim *dim = &value->dims[d];
        text_string(out, d ? ", " : "");
        text_string(out, dim->count > 1 ? "(" : "");
        for (int i = 0; i < dim->count; i++) {
            text_string(out, i ? " " : "");
            print_dim_name(out, dim->names[i]);
        }
        text_string(out, dim->count > 1 ? ")" : !dim->count ? "_" : "");
    }
    text_string(out, ")");
}

static bool position_equal(Position a, Position b) {
    return a.line == b.line && a.column == b.column &&
           (a.file == b.file || (a.file && b.file && !strcmp(a.file, b.file)));
}

/* Prints a value's part after the colon: type, name, dims ..., and its position if not `known`. */
static void print_value(Printer *printer, const Value *value, bool named, Position known) {
    Text *out = printer->out;
    print_type(out, value->type);
    if (named && value->name) {
        text_string(out, " ");
        print_quoted(out, value->name);
    }
    if (value->dims) print_dims(out, value);
    if (value->user_layout) {
        text_string(out, " shard<");
        user_layout_print(out, value->user_layout);
        text_string(out, ">");
        print_any_position(printer, value->user_layout->at);
    }
    if (value->layout) {
        text_string(out, " layout<");
        layout_print(out, value->layout);
        text_string(out, ">");
    }
    if (value->micro.kind == MICRO_SUM) text_string(out, " micro sum");
    if (value->micro.kind == MICRO_ROWS) text_print(out, " micro rows %d", value->micro.dim);
    if (value->chunk)
        text_print(out, " chunk %d %lld %lld", value->chunk->dim, (long long)value->chunk->start,
                   (long long)value->chunk->extent);
    if (value->storage) text_print(out, " storage %%%d", value->storage->id);
    if (value->subview)
        text_print(out, " subview %%%d %d %lld", value->subview->whole->id, value->subview->dim,
                   (long long)value->subview->start);
    if (!position_equal(value->at, known)) print_any_position(printer, value->at);
}

/* ---- shared objects: call stacks, factored bindings, gradients ---- */

typedef struct NumberEntry {
    const void *object;
    int number;
    UT_hash_handle hh;
} NumberEntry;

typedef struct TextEntry {
    int number;
    UT_hash_handle hh;
} TextEntry;

enum { NOT_FOUND = -2 };

static int find_number(NumberEntry *table, const void *object) {
    NumberEntry *entry;
    HASH_FIND_PTR(table, &object, entry);
    return entry ? entry->number : NOT_FOUND;
}

static int remember(Printer *printer, NumberEntry **table, const void *object, int number) {
    NumberEntry *entry = arena_new(printer->scratch, NumberEntry);
    *entry = (NumberEntry){.object = object, .number = number};
    HASH_ADD_PTR(*table, object, entry);
    return number;
}

/* Returns the number of the object with this text. Prints a new object: `KIND NUMBER TEXT`. */
static int number_text(Printer *printer, const char *kind, int *count, const char *text) {
    TextEntry *entry;
    char *key = arena_format(printer->scratch, "%s %s", kind, text);
    HASH_FIND_STR(printer->texts, key, entry);
    if (entry) return entry->number;
    entry = arena_new(printer->scratch, TextEntry);
    entry->number = (*count)++;
    HASH_ADD_KEYPTR(hh, printer->texts, key, strlen(key), entry);
    text_print(printer->out, "%s %d %s\n", kind, entry->number, text);
    return entry->number;
}

/* Prints the frames of a call stack, the outermost first, and returns the number of the innermost.
 * Loops instead of recursing, because recursive models have deep stacks. */
static int print_frame(Printer *printer, const Frame *frame) {
    int known = find_number(printer->frames, frame);
    if (known != NOT_FOUND) return known;
    Array(const Frame *) chain = {0};
    int caller = -1;
    for (const Frame *at = frame; at; at = at->caller) {
        int number = find_number(printer->frames, at);
        if (number != NOT_FOUND) {
            caller = number;
            break;
        }
        array_push(printer->scratch, &chain, at);
    }
    for (int i = chain.count - 1; i >= 0; i--) {
        Text text = {.arena = printer->scratch};
        Printer inner = {.out = &text, .module = printer->module};
        print_quoted(&text, chain.at[i]->function ? chain.at[i]->function : "");
        if (caller >= 0) text_print(&text, " in %d", caller);
        print_position(&inner, chain.at[i]->at);
        caller = remember(printer, &printer->frames, chain.at[i],
                          number_text(printer, "frame", &printer->frame_count, text_bytes(&text)));
    }
    return caller;
}

static bool dims_equal(const BoundAccess *a, const BoundAccess *b) {
    if (a->access != b->access || a->rank != b->rank || a->written_rank != b->written_rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d].count != b->dims[d].count || a->dims[d].written != b->dims[d].written ||
            memcmp(a->dims[d].factors, b->dims[d].factors, sizeof(int) * (size_t)a->dims[d].count))
            return false;
    return true;
}

static bool binding_equal(const Binding *a, const Binding *b) {
    if (a->factor_count != b->factor_count || a->operand_count != b->operand_count ||
        a->result_count != b->result_count)
        return false;
    for (int i = 0; i < a->factor_count; i++)
        if (a->factors[i].factor != b->factors[i].factor ||
            a->factors[i].extent != b->factors[i].extent)
            return false;
    for (int i = 0; i < a->operand_count; i++)
        if (!dims_equal(&a->operands[i], &b->operands[i])) return false;
    for (int i = 0; i < a->result_count; i++)
        if (!dims_equal(&a->results[i], &b->results[i])) return false;
    return true;
}

/* Returns whether ir_bind computes the binding and the result types that an operator has. */
static bool is_plain(Printer *printer, const Op *op) {
    Type *types = arena_array(printer->scratch, Type, op->def->rule->result_count);
    const Binding *again =
        ir_bind(printer->scratch, NULL, op->at,
                &(OpCall){op->def, op->operands, op->operand_count, op->attrs}, types);
    if (!again || !binding_equal(again, op->binding)) return false;
    for (int i = 0; i < op->result_count; i++)
        if (!type_equal(types[i], op->results[i]->type)) return false;
    return true;
}

static void print_access(Text *out, const BoundAccess *access) {
    text_print(out, " %d(", access->access);
    for (int d = 0; d < access->rank; d++) {
        const BoundDim *dim = &access->dims[d];
        text_string(out, d ? ", " : "");
        for (int k = 0; k < dim->count; k++) text_print(out, k ? " %d" : "%d", dim->factors[k]);
        if (dim->written != d) text_print(out, "/%d", dim->written);
    }
    text_string(out, ")");
    if (access->written_rank != access->rank) text_print(out, "/%d", access->written_rank);
}

static const char *binding_text(Printer *printer, const Op *op) {
    Text text = {.arena = printer->scratch};
    const Binding *binding = op->binding;
    text_print(&text, "%s [", op->def->name);
    for (int i = 0; i < binding->factor_count; i++)
        text_print(&text, "%s%d:%lld", i ? ", " : "", binding->factors[i].factor,
                   (long long)binding->factors[i].extent);
    text_string(&text, "]");
    for (int i = 0; i < binding->operand_count; i++) print_access(&text, &binding->operands[i]);
    text_string(&text, " ->");
    for (int i = 0; i < binding->result_count; i++) print_access(&text, &binding->results[i]);
    return text_bytes(&text);
}

/* Prints a new factored binding, and returns its number; -1: none, because ir_bind computes it. */
static int print_binding(Printer *printer, const Op *op) {
    int known = find_number(printer->bindings, op->binding);
    if (known != NOT_FOUND) return known;
    int number = is_plain(printer, op) ? -1
                                       : number_text(printer, "binding", &printer->binding_count,
                                                     binding_text(printer, op));
    return remember(printer, &printer->bindings, op->binding, number);
}

static int print_gradient_number(Printer *printer, const Function *function) {
    int known = find_number(printer->gradients, function);
    for (int i = 0; known == NOT_FOUND && i < printer->module->library->gradients.count; i++)
        if (printer->module->library->gradients.at[i] == function)
            known = remember(printer, &printer->gradients, function, i);
    if (known == NOT_FOUND) BUG("the gradient %s is not listed in the module", function->name);
    return known;
}

void print_references(Printer *printer, const Op *op) {
    if (op->source->frames) print_frame(printer, op->source->frames);
    print_binding(printer, op);
}

/* ---- operators ---- */

static void print_attr(Text *out, ParamKind kind, const Attr *attr) {
    switch (kind) {
    case PARAM_FLOAT: print_number(out, attr->f); break;
    case PARAM_DTYPE: text_string(out, dtype_name((DType)attr->i)); break;
    case PARAM_SHAPE:
        text_string(out, "[");
        for (int i = 0; i < attr->count; i++)
            text_print(out, i ? ", %lld" : "%lld", (long long)attr->ints[i]);
        text_string(out, "]");
        break;
    default: text_print(out, "%lld", (long long)attr->i);
    }
}

static void print_attrs(Text *out, const Op *op) {
    if (!op->def->attr_count) return;
    text_string(out, " {");
    for (int i = 0, next = 0; i < op->def->param_count; i++) {
        const OpParam *param = &op->def->params[i];
        if (param->kind == PARAM_TENSOR || param->kind == PARAM_TENSORS) continue;
        text_string(out, next ? ", " : "");
        print_attr(out, param->kind, &op->attrs[next++]);
    }
    text_string(out, "}");
}

/* Prints `tower "vision" layer 3` or `layer "head"`. */
static void print_layer(Text *out, const Layer *layer) {
    if (layer && layer->tower) {
        text_string(out, " tower ");
        print_quoted(out, layer->tower);
    }
    if (layer) text_string(out, " layer ");
    if (layer && layer->name) print_quoted(out, layer->name);
    else if (layer) text_print(out, "%d", layer->number);
}

/* Prints the attributes of an operator, as parse_mark of parse_op.c reads them. */
static void print_marks(Printer *printer, const Op *op) {
    Text *out = printer->out;
    int binding = print_binding(printer, op);
    if (binding >= 0) text_print(out, " binding %d", binding);
    if (op->convert.plan)
        text_print(out, op->convert.tensor ? " plan %d tensor %d" : " plan %d",
                   op->convert.plan->number, op->convert.tensor);
    if (op->gradient) text_print(out, " gradient %d", print_gradient_number(printer, op->gradient));
    print_layer(out, op->source->layer);
    if (op->source->recompute) text_print(out, " recompute %d", op->source->recompute);
    if (op->source->recomputes)
        text_print(out, " recomputes %%%d", op->source->recomputes->results[0]->id);
    if (op->source->scope) {
        text_string(out, " scope ");
        print_quoted(out, op->source->scope);
    }
    static const char *const turns[] = {[LOOP_BEFORE] = "",
                                        [LOOP_EACH] = " loop each",
                                        [LOOP_AFTER] = " loop after",
                                        [LOOP_COUNT] = " loop count"};
    text_string(out, turns[op->loop]);
    if (op->source->op >= 0) text_print(out, " source_op %d", op->source->op);
    if (op->stage != STAGE_ALL) text_print(out, " stage %d visit %d", op->stage, op->visit);
    if (op->source->chunk) text_print(out, " chunk %d", op->source->chunk);
    text_string(out, op->is_wgrad ? " wgrad" : "");
    text_string(out, op->run_in_place ? " in_place" : "");
    if (op->source->frames) text_print(out, " from %d", print_frame(printer, op->source->frames));
    if (op->source->reason) {
        text_string(out, " for ");
        print_quoted(out, op->source->reason);
    }
    if (op->source->fused_count) text_print(out, " also %d", op->source->fused_count);
    for (int i = 0; i < op->source->fused_count; i++)
        print_any_position(printer, op->source->fused_at[i]);
    print_position(printer, op->at);
}

void print_op(Printer *printer, const Op *op) {
    Text *out = printer->out;
    text_string(out, "  ");
    for (int i = 0; i < op->result_count; i++) {
        text_string(out, i ? ", " : "");
        print_ref(out, op->results[i]);
    }
    text_print(out, " = %s(", op->def->name);
    for (int i = 0; i < op->operand_count; i++) {
        text_string(out, i ? ", " : "");
        print_ref(out, op->operands[i]);
    }
    text_string(out, ")");
    print_attrs(out, op);
    print_marks(printer, op);
    for (int i = 0; i < op->result_count; i++) {
        text_string(out, i ? ", " : " : ");
        print_value(printer, op->results[i], true, op->at);
    }
    text_string(out, "\n");
}

/* ---- the module in front of the operators ---- */

static void print_head(Printer *printer) {
    const Module *module = printer->module;
    Text *out = printer->out;
    text_string(out, "module ");
    print_quoted(out, module->name);
    text_string(out, module->kind == MODULE_TRAIN ? " train" : " infer");
    if (module->source->file) {
        text_string(out, " source ");
        print_quoted(out, module->source->file);
    }
    if (module->precision != DTYPE_F32)
        text_print(out, " precision %s", dtype_name(module->precision));
    if (module->devices->target.cluster_file) {
        text_string(out, " cluster ");
        print_quoted(out, module->devices->target.cluster_file);
    }
    if (module->last_pass) text_print(out, " after %s", module->last_pass);
    text_print(out, " next %d", module->next_id);
    print_position(printer, module->source->at);
    text_string(out, "\n");
    if (module->strategy) strategy_print(out, module->strategy, "");
}

static const char *const param_kinds[] = {
    [PARAM_TENSOR] = "tensor", [PARAM_TENSORS] = "tensors", [PARAM_INT] = "int",
    [PARAM_FLOAT] = "float",   [PARAM_SHAPE] = "shape",     [PARAM_DTYPE] = "dtype"};

static void print_def(Printer *printer, const OpDef *def) {
    Text *out = printer->out;
    text_print(out, "op %s(", def->name);
    for (int i = 0; i < def->param_count; i++)
        text_print(out, "%s%s %s", i ? ", " : "", param_kinds[def->params[i].kind],
                   def->params[i].name);
    text_string(out, ")");
    print_position(printer, def->at);
    text_print(out, "\n    %s\n", def->rule->text);
}

static void print_defs(Printer *printer) {
    const Module *module = printer->module;
    for (int i = 0; i < module->library->defs.count; i++)
        print_def(printer, module->library->defs.at[i]);
    if (module->optimizer->op)
        text_print(printer->out, "update %s states %d%s%s\n", module->optimizer->op->name,
                   module->optimizer->state_count, module->optimizer->clip ? " clip" : "",
                   module->optimizer->norm ? " norm" : "");
    if (module->builtin->reshard)
        text_print(printer->out, "reshard %s\n", module->builtin->reshard->name);
    const struct {
        const char *word;
        const OpDef *def;
    } own[] = {{"accumulate", module->builtin->accumulate},
               {"part", module->builtin->local_part},
               {"union", module->builtin->stage_union},
               {"collect", module->builtin->collect}};
    for (int i = 0; i < 4; i++)
        if (own[i].def) text_print(printer->out, "%s %s\n", own[i].word, own[i].def->name);
}

static void print_mesh(Printer *printer, const Mesh *mesh) {
    Text *out = printer->out;
    text_string(out, "mesh ");
    layout_print_devices(out, mesh->devices, mesh->device_count, 3);
    for (int a = 0; a < mesh->axis_count; a++) {
        text_print(out, "%s%s:%d", a ? ", " : " axes ", mesh->axis[a].name, mesh->axis[a].count);
        layout_print_weights(out, mesh->axis[a].weights, mesh->axis[a].count);
    }
    text_string(out, "\n");
    for (int i = 0; i < mesh->rules.count; i++) {
        text_string(out, "split ");
        print_dim_name(out, mesh->rules.at[i].dim);
        text_print(out, " axis %d%s", mesh->rules.at[i].axis,
                   mesh->rules.at[i].zigzag ? " zigzag" : "");
        print_position(printer, mesh->rules.at[i].at);
        text_string(out, "\n");
    }
}

static void print_body(Text *out, const Body *body) {
    text_print(out, "template rows %lld first %d stages %d", (long long)body->rows,
               body->first_stage, body->stage_count);
    text_string(out, body->short_rows ? " short_rows" : "");
    for (int v = 0; v < body->visit_count; v++)
        text_print(out, "%s%d", v ? " " : " visits ", body->visit_stage[v]);
    text_string(out, "\n");
}

/* Prints the schedule of a pipeline, unless it has none or an earlier pipeline has the same one. */
static void print_schedule(Text *out, const PipelineTemplates *bodies, int number) {
    const PipelineRun *run = &bodies->runs.at[number];
    for (int r = 0; r < number; r++)
        if (bodies->runs.at[r].schedule == run->schedule) return;
    if (!run->schedule) return;
    text_print(out, "schedule template %d microbatches %lld\n", run->template_index,
               (long long)run->microbatches);
    schedule_print(out, run->schedule, "    ");
}

/* Prints the templates. A stage's mesh follows its line, unless it is the mesh of all devices. */
static void print_bodies(Printer *printer) {
    const Module *module = printer->module;
    const PipelineTemplates *bodies = module->templates;
    if (bodies->at.count)
        text_print(printer->out, "batch unit %lld\n", (long long)bodies->row_unit);
    for (int b = 0; b < bodies->at.count; b++) print_body(printer->out, &bodies->at.at[b]);
    for (int r = 0; r < bodies->runs.count; r++) {
        const PipelineRun *run = &bodies->runs.at[r];
        text_print(printer->out, "run pipeline %d template %d microbatches %lld row %lld\n",
                   run->pipeline, run->template_index, (long long)run->microbatches,
                   (long long)run->first_row);
    }
    for (int s = 0; s < bodies->stages.count; s++) {
        text_print(printer->out, "stage %d of template %d\n", bodies->stages.at[s].number,
                   bodies->stages.at[s].template_index);
        if (bodies->stages.at[s].mesh && bodies->stages.at[s].mesh != module->devices->mesh)
            print_mesh(printer, bodies->stages.at[s].mesh);
    }
    for (int r = 0; r < bodies->runs.count; r++) print_schedule(printer->out, bodies, r);
}

static const char *const init_names[] = {[INIT_ZEROS] = "zeros",
                                         [INIT_CONSTANT] = "constant",
                                         [INIT_NORMAL] = "normal",
                                         [INIT_UNIFORM] = "uniform"};

static void print_param(Printer *printer, const Parameter *param) {
    Text *out = printer->out;
    text_print(out, "param %%%d ", param->value->id);
    print_quoted(out, param->name);
    if (strcmp(param->shape, type_shape_text(printer->scratch, param->value->type))) {
        text_string(out, " shape ");
        print_quoted(out, param->shape);
    }
    text_print(out, " init %s", init_names[param->init]);
    if (param->init != INIT_ZEROS) {
        text_string(out, " ");
        print_number(out, param->a);
    }
    text_string(out, param->no_decay ? " no_decay" : "");
    if (param->group) text_print(out, " group %d", param->group);
    text_string(out, param->kept     ? " kept"
                     : param->state  ? " assigned"
                     : param->frozen ? " frozen"
                                     : "");
    text_string(out, " : ");
    print_value(printer, param->value, false, (Position){0});
    text_string(out, "\n");
    for (int i = 0; i < param->state_count; i++) {
        text_print(out, "state %%%d ", param->states[i]->id);
        print_quoted(out, param->states[i]->name);
        text_print(out, " of %%%d : ", param->value->id);
        print_value(printer, param->states[i], false, (Position){0});
        text_string(out, "\n");
    }
}

static void print_input(Printer *printer, const Value *input) {
    text_print(printer->out, "input %%%d ", input->id);
    print_quoted(printer->out, input->name);
    text_string(printer->out, " : ");
    print_value(printer, input, false, (Position){0});
    text_string(printer->out, "\n");
}

static void print_gradient(Printer *printer, const Function *function) {
    Text *out = printer->out;
    for (int i = 0; i < function->ops.count; i++) print_references(printer, function->ops.at[i]);
    text_string(out, "gradient ");
    print_quoted(out, function->name);
    text_string(out, "\n");
    for (int i = 0; i < function->params.count; i++) {
        text_string(out, "  argument ");
        print_ref(out, function->params.at[i]);
        if (function->params.at[i]) {
            text_string(out, " : ");
            print_value(printer, function->params.at[i], true, (Position){0});
        }
        text_string(out, "\n");
    }
    for (int i = 0; i < function->ops.count; i++) print_op(printer, function->ops.at[i]);
    text_string(out, "  return");
    for (int i = 0; i < function->returns.count; i++) {
        text_string(out, i ? ", " : " ");
        print_ref(out, function->returns.at[i]);
    }
    text_string(out, "\n");
}

/* ---- sections, results of the module ---- */

static const char *const section_names[] = {
    [SECTION_FORWARD] = "forward", [SECTION_BACKWARD] = "backward", [SECTION_UPDATE] = "update"};

void print_conversion(Text *out, Type type, const Layout *from, const Layout *to) {
    print_type(out, type);
    text_string(out, " from<");
    layout_print(out, from);
    text_string(out, "> to<");
    layout_print(out, to);
    text_string(out, ">");
}

static void print_ops(Printer *printer) {
    const Module *module = printer->module;
    for (int i = 0; i < module->devices->conversions.count; i++) {
        const PlannedConversion *conversion = module->devices->conversions.at[i];
        for (int t = 0; t < conversion->tensors.count; t++) {
            text_print(printer->out, t ? "plan %d tensor %d " : "plan %d ", i, t);
            print_conversion(printer->out, conversion->tensors.at[t].type,
                             conversion->tensors.at[t].from, conversion->tensors.at[t].to);
            text_string(printer->out, "\n");
        }
    }
    for (int i = 0; i < module->ops.count; i++) print_references(printer, module->ops.at[i]);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (i == 0 || module->ops.at[i - 1]->section != op->section)
            text_print(printer->out, "section %s\n", section_names[op->section]);
        print_op(printer, op);
    }
}

static void print_trained(Printer *printer, const Parameter *param) {
    Text *out = printer->out;
    if (!param->gradient && !param->updated) return;
    text_print(out, "trained %%%d gradient ", param->value->id);
    print_ref(out, param->gradient);
    text_string(out, " updated ");
    print_ref(out, param->updated);
    for (int i = 0; i < param->state_count; i++) {
        text_string(out, ", ");
        print_ref(out, param->states_updated[i]);
    }
    text_string(out, "\n");
}

static void print_ends(Printer *printer) {
    const Module *module = printer->module;
    for (int i = 0; i < module->outputs.count; i++) {
        text_string(printer->out, "output ");
        print_quoted(printer->out, module->outputs.at[i].name);
        text_print(printer->out, " %%%d\n", module->outputs.at[i].value->id);
    }
    if (module->loss) text_print(printer->out, "loss %%%d\n", module->loss->id);
    for (int i = 0; i < module->params.count; i++) print_trained(printer, module->params.at[i]);
}

/* ---- roles ---- */

static void print_role(Text *out, const Module *module, const Role *role) {
    text_string(out, "role");
    for (int i = 0; i < role->device_count; i++)
        text_print(out, "%s%d", i ? "," : " ", role->devices[i]);
    text_print(out, " arena %lld", (long long)role->arena_bytes);
    if (role->slot_bytes) text_print(out, " slot %lld", (long long)role->slot_bytes);
    text_string(out, "\n");
    text_string(out, role->offset ? "  offsets" : "");
    for (int i = 0; role->offset && i < module->next_id; i++)
        if (role->offset[i] >= 0)
            text_print(out, " %%%d:%lld%s", i, (long long)role->offset[i],
                       role->kept[i] ? " kept" : "");
    text_string(out, role->offset ? "\n" : "");
    text_string(out, role->scratch ? "  scratch" : "");
    for (int i = 0; role->scratch && i < module->ops.count; i++)
        if (role->scratch[i] >= 0) text_print(out, " %d:%lld", i, (long long)role->scratch[i]);
    text_string(out, role->scratch ? "\n" : "");
}

static void print_roles(Printer *printer) {
    const Roles *roles = printer->module->devices->roles;
    for (int i = 0; roles && i < roles->role_count; i++)
        print_role(printer->out, printer->module, &roles->at[i]);
}

void ir_print(Text *out, const Module *module) {
    Printer printer = {.out = out, .scratch = arena_create(), .module = module};
    print_head(&printer);
    print_defs(&printer);
    if (module->devices->mesh) print_mesh(&printer, module->devices->mesh);
    print_bodies(&printer);
    for (int i = 0; i < module->params.count; i++) print_param(&printer, module->params.at[i]);
    for (int i = 0; i < module->inputs.count; i++) print_input(&printer, module->inputs.at[i]);
    for (int i = 0; i < module->library->gradients.count; i++)
        print_gradient(&printer, module->library->gradients.at[i]);
    print_ops(&printer);
    print_ends(&printer);
    print_roles(&printer);
    arena_destroy(printer.scratch);
}
