/* The verifier, except for storage (storage.c): names, bindings, types, conversions, order. After a
 * problem, the checks that rely on its absence are skipped. */
#include "ir/verify/verify.h"

#include "ir/analysis/phases.h"
#include "ir/programs/conversions.h"
#include "ir/text/text.h"

#include <stdio.h>
#include <string.h>

void verify_problem(Verifier *verifier, const Op *op, const char *format, ...) {
    enum { MOST = 10 };
    if (++verifier->problems > MOST) return;
    va_list arguments;
    va_start(arguments, format);
    const char *what = arena_vformat(verifier->scratch, format, arguments);
    va_end(arguments);
    if (verifier->at.file) {
        diag_error(verifier->module->diag, verifier->at, "malformed IR: %s", what);
        return;
    }
    fprintf(stderr, "%s: malformed IR: %s\n", verifier->module->name, what);
    if (!op) return;
    Text line = {.arena = verifier->scratch};
    Printer printer = {.out = &line, .scratch = verifier->scratch, .module = verifier->module};
    print_references(&printer, op);
    print_op(&printer, op);
    fprintf(stderr, "%s", text_bytes(&line));
}

static bool id_valid(const Verifier *verifier, const Value *value) {
    return value->id >= 0 && value->id < verifier->module->next_id;
}

/* Registers a value as made. A second value of the same id is a problem. */
static void make(Verifier *verifier, const Op *op, const Value *value) {
    if (!id_valid(verifier, value))
        verify_problem(verifier, op, "%%%d is not below %d", value->id, verifier->module->next_id);
    else if (verifier->made[value->id])
        verify_problem(verifier, op, "%%%d is made twice", value->id);
    else verifier->made[value->id] = value;
}

/* Reports a value that is used before it is made, or not of the module. `where`: for messages. */
static void use(Verifier *verifier, const Op *op, const Value *value, const char *where) {
    if (value && (!id_valid(verifier, value) || verifier->made[value->id] != value))
        verify_problem(verifier, op, "%%%d is used %s before it is made, or belongs elsewhere",
                       value->id, where);
}

/* ---- bindings ---- */

/* Returns whether an operator belongs to a template with padding lengths: its tensors may be
 * shorter than its factors. */
static bool is_shorter(const Verifier *verifier, const Op *op) {
    const PipelineTemplates *bodies = verifier->module->templates;
    return op->stage >= 0 && op->stage < bodies->stages.count &&
           bodies->at.at[bodies->stages.at[op->stage].template_index].short_rows;
}

/* Checks a tensor against its access: rank, factors, and extents as products of factors. */
static void check_access(Verifier *verifier, const Op *op, const BoundAccess *access,
                         const Value *value) {
    if (!value) {
        if (access->rank)
            verify_problem(verifier, op, "an absent operand is bound to %d dimensions",
                           access->rank);
        return;
    }
    if (access->rank != value->type.rank) {
        verify_problem(verifier, op, "%%%d has %d dimensions, but its binding has %d", value->id,
                       value->type.rank, access->rank);
        return;
    }
    for (int d = 0; d < access->rank; d++) {
        int64_t extent = 1;
        if (access->dims[d].written < (d ? access->dims[d - 1].written : 0) ||
            access->dims[d].written >= access->written_rank)
            verify_problem(verifier, op, "dimension %d of %%%d is written dimension %d of %d", d,
                           value->id, access->dims[d].written, access->written_rank);
        for (int k = 0; k < access->dims[d].count; k++) {
            int factor = access->dims[d].factors[k];
            if (factor < 0 || factor >= op->binding->factor_count) {
                verify_problem(verifier, op, "the binding names factor %d of %d", factor,
                               op->binding->factor_count);
                return;
            }
            if (__builtin_mul_overflow(extent, op->binding->factors[factor].extent, &extent))
                verify_problem(verifier, op, "the factors of dimension %d of %%%d are too large", d,
                               value->id);
        }
        bool shorter = value->type.extent[d] < extent && is_shorter(verifier, op);
        if (access->dims[d].count && extent != value->type.extent[d] &&
            !value_cut_along(value, d) && !shorter)
            verify_problem(verifier, op,
                           "dimension %d of %%%d has extent %lld, but its factors give %lld", d,
                           value->id, (long long)value->type.extent[d], (long long)extent);
    }
}

/* Returns whether bound accesses are in the order of the rule's accesses. Optional accesses may be
 * missing, variadic ones may occur any number of times. */
static bool accesses_fit(const BoundAccess *bound, int count, const Access *accesses,
                         int access_count) {
    int next = 0;
    for (int i = 0; i < count; i++) {
        bool again = next && bound[i].access == next - 1 && accesses[next - 1].variadic;
        for (; !again && next < access_count && bound[i].access > next; next++)
            if (!accesses[next].optional && !accesses[next].variadic) return false;
        if (!again && (bound[i].access != next++ || next > access_count)) return false;
        if (bound[i].written_rank < 0 || bound[i].written_rank > IR_MAX_RANK ||
            bound[i].rank > IR_MAX_RANK)
            return false;
    }
    for (; next < access_count; next++)
        if (!accesses[next].optional && !accesses[next].variadic) return false;
    return true;
}

static bool factors_fit(const Rule *rule, const Binding *binding) {
    bool fit = binding->factor_count <= IR_MAX_FACTORS;
    for (int f = 0; f < binding->factor_count && fit; f++) {
        int factor = binding->factors[f].factor;
        fit = binding->factors[f].extent >= 0 && factor < rule->factor_count &&
              factor >= (rule->kind == RULE_VIEW ? -1 : 0);
    }
    return fit;
}

static bool binding_fits(const Op *op) {
    const Binding *binding = op->binding;
    const Rule *rule = op->def->rule;
    return binding && binding->operand_count == op->operand_count &&
           binding->result_count == op->result_count && factors_fit(rule, binding) &&
           accesses_fit(binding->operands, op->operand_count, rule->operands,
                        rule->operand_count) &&
           accesses_fit(binding->results, op->result_count, rule->results, rule->result_count);
}

static void check_binding(Verifier *verifier, const Op *op) {
    if (!binding_fits(op)) {
        verify_problem(verifier, op, "the binding does not fit the operator");
        return;
    }
    for (int i = 0; i < op->operand_count; i++)
        check_access(verifier, op, &op->binding->operands[i], op->operands[i]);
    for (int i = 0; i < op->result_count; i++)
        check_access(verifier, op, &op->binding->results[i], op->results[i]);
}

/* ---- element types ---- */

static void check_dtypes(Verifier *verifier, const Op *op) {
    DType wanted;
    for (int i = 0; i < op->operand_count; i++)
        if (op->operands[i] && op_operand_dtype(verifier->scratch, op, i, &wanted) &&
            op->operands[i]->type.dtype != wanted)
            verify_problem(verifier, op, "%%%d is %s, but the rule asks for %s",
                           op->operands[i]->id, dtype_name(op->operands[i]->type.dtype),
                           dtype_name(wanted));
    for (int i = 0; i < op->result_count; i++) {
        wanted = op_result_dtype(verifier->scratch, op, i);
        if (op->results[i]->type.dtype != wanted)
            verify_problem(verifier, op, "%%%d is %s, but the rule makes %s", op->results[i]->id,
                           dtype_name(op->results[i]->type.dtype), dtype_name(wanted));
    }
}

/* ---- conversions ---- */

static const char *conversion_text(Verifier *verifier, Type type, const Layout *from,
                                   const Layout *to) {
    Text text = {.arena = verifier->scratch};
    print_conversion(&text, type, from, to);
    return text_bytes(&text);
}

/* Checks that the plan of a conversion is for the layouts of its operand and its result. If the IR
 * was read from text, the error is at the plan's line. */
static void check_conversion(Verifier *verifier, const Op *op) {
    const PlannedConversion *planned = op->convert.plan;
    const Value *from = op->operands[0], *to = op->results[0];
    if (op->def != verifier->module->builtin->reshard || !from->layout || !to->layout) {
        verify_problem(verifier, op, "plan %d is of an operator that converts no layout",
                       planned->number);
        return;
    }
    Type type = to->type;
    const ConvertedTensor *tensor = &planned->tensors.at[op->convert.tensor];
    if (type_equal(type, tensor->type) && from->layout == tensor->from && to->layout == tensor->to)
        return;
    Position user = verifier->at;
    verifier->at = user.file ? planned->at : user;
    verify_problem(verifier, op, "plan %d is %s, but %%%d to %%%d is %s", planned->number,
                   conversion_text(verifier, tensor->type, tensor->from, tensor->to), from->id,
                   to->id, conversion_text(verifier, type, from->layout, to->layout));
    verifier->at = user;
    if (user.file) diag_note(verifier->module->diag, user, "the operator that it is the plan of");
}

static void check_conversions(Verifier *verifier) {
    const Module *module = verifier->module;
    for (int i = 0; i < module->devices->conversions.count; i++)
        if (!module->devices->conversions.at[i]->user) {
            verifier->at =
                verifier->at.file ? module->devices->conversions.at[i]->at : verifier->at;
            verify_problem(verifier, NULL, "plan %d is of no operator", i);
        }
}

/* ---- operators ---- */

static bool def_listed(const Module *module, const OpDef *def) {
    for (int i = 0; i < module->library->defs.count; i++)
        if (module->library->defs.at[i] == def) return true;
    return false;
}

static void check_value(Verifier *verifier, const Op *op, const Value *value) {
    for (int d = 0; d < value->type.rank; d++)
        if (value->type.extent[d] < 0)
            verify_problem(verifier, op, "%%%d has an extent below 0", value->id);
    if (value->micro.kind == MICRO_ROWS &&
        (value->micro.dim < 0 || value->micro.dim >= value->type.rank))
        verify_problem(verifier, op, "%%%d has no dimension %d for the loop", value->id,
                       value->micro.dim);
}

/* Checks that only the section update reads states of the optimizer. */
static void check_states(Verifier *verifier, const Op *op) {
    for (int i = 0; i < op->operand_count; i++)
        if (op->operands[i] && op->operands[i]->kind == VALUE_STATE &&
            op->section != SECTION_UPDATE)
            verify_problem(verifier, op, "%%%d is a state, which only the section update reads",
                           op->operands[i]->id);
}

/* Checks that an operator reads values of another visit of its stage only through messages. */
static void check_visit(Verifier *verifier, const Op *op, const Value *operand) {
    const Op *maker = operand ? operand->def : NULL;
    if (maker && op->stage != STAGE_ALL && maker->stage == op->stage &&
        op->def != verifier->module->builtin->reshard && !op_may_read(verifier->module, maker, op))
        verify_problem(verifier, op, "%%%d is of another visit", operand->id);
}

/* Checks that a message goes from forward to forward of a later visit, or from backward to backward
 * of an earlier visit. Schedules support no other messages. */
static void check_crossing(Verifier *verifier, const Op *op) {
    const Op *maker = op_crosses_stages(verifier->module, op) && op->loop == LOOP_EACH
                          ? op->operands[0]->def
                          : NULL;
    Phase phase = op_phase(verifier->module, op);
    if (!maker || op_gathers(verifier->module, maker) || maker->loop != LOOP_EACH) return;
    bool forward = phase == PHASE_FORWARD && maker->visit < op->visit,
         backward = phase == PHASE_BACKWARD && maker->visit > op->visit;
    if (op_phase(verifier->module, maker) != phase || !(forward || backward))
        verify_problem(
            verifier, op,
            "%%%d is handed against the order of parts: from %s of visit %d to %s of visit %d",
            op->operands[0]->id, phase_name(op_phase(verifier->module, maker)), maker->visit,
            phase_name(phase), op->visit);
}

/* Checks an operator, and registers its results as made. */
static void check_op(Verifier *verifier, const Op *op) {
    if (op->result_count != op->def->rule->result_count)
        verify_problem(verifier, op, "%s has %d results, its rule %d", op->def->name,
                       op->result_count, op->def->rule->result_count);
    for (int i = 0; i < op->operand_count; i++) use(verifier, op, op->operands[i], "");
    for (int i = 0; i < op->operand_count && !verifier->problems; i++)
        check_visit(verifier, op, op->operands[i]);
    if (!verifier->problems) check_crossing(verifier, op);
    check_binding(verifier, op);
    check_states(verifier, op);
    if (!verifier->problems && op->convert.plan) check_conversion(verifier, op);
    if (!verifier->problems) check_dtypes(verifier, op);
    for (int i = 0; i < op->result_count; i++) {
        const Value *result = op->results[i];
        if (result->kind != VALUE_RESULT || result->def != op || result->index != i)
            verify_problem(verifier, op, "%%%d does not say that it is result %d of this operator",
                           result->id, i);
        make(verifier, op, result);
        check_value(verifier, op, result);
    }
}

/* Checks operators in order. Neighbours often share a definition, so the last lookup is kept. */
static void check_ops(Verifier *verifier, Op *const *ops, int count) {
    const OpDef *listed = NULL;
    for (int i = 0; i < count; i++) {
        if (ops[i]->def != listed && !def_listed(verifier->module, ops[i]->def))
            verify_problem(verifier, ops[i], "%s is not in the module's definitions",
                           ops[i]->def->name);
        listed = ops[i]->def;
        check_op(verifier, ops[i]);
    }
}

static void check_sections(Verifier *verifier) {
    const Module *module = verifier->module;
    for (int i = 1; i < module->ops.count && !module->builtin->accumulate; i++)
        if (module->ops.at[i]->section < module->ops.at[i - 1]->section)
            verify_problem(verifier, module->ops.at[i], "the sections are not in order");
}

/* Checks that values of one micro-batch are made and read inside the loop over micro-batches. */
static void check_turn(Verifier *verifier, const Op *op) {
    for (int r = 0; r < op->result_count; r++)
        if (op->results[r]->micro.kind != MICRO_WHOLE && !loop_repeats(op->loop))
            verify_problem(verifier, op,
                           "%%%d belongs to a micro-batch, but is made outside of the loop",
                           op->results[r]->id);
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->micro.kind != MICRO_WHOLE &&
            !loop_repeats(op->loop))
            verify_problem(verifier, op,
                           "%%%d belongs to a micro-batch, but is read outside of the loop",
                           op->operands[k]->id);
}

static void check_turns(Verifier *verifier) {
    const Module *module = verifier->module;
    for (int i = 0; i < module->ops.count && module->builtin->accumulate; i++)
        check_turn(verifier, module->ops.at[i]);
}

/* ---- the module around the operators ---- */

static void make_starts(Verifier *verifier) {
    const Module *module = verifier->module;
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *param = module->params.at[i];
        make(verifier, NULL, param->value);
        for (int k = 0; k < param->state_count; k++) make(verifier, NULL, param->states[k]);
    }
    for (int i = 0; i < module->inputs.count; i++) make(verifier, NULL, module->inputs.at[i]);
}

/* Unregisters the values that a gradient made, because the module may not read them. */
static void forget_function(Verifier *verifier, const Function *function) {
    for (int i = 0; i < function->params.count; i++)
        if (function->params.at[i] && id_valid(verifier, function->params.at[i]))
            verifier->made[function->params.at[i]->id] = NULL;
    for (int i = 0; i < function->ops.count; i++)
        for (int r = 0; r < function->ops.at[i]->result_count; r++)
            if (id_valid(verifier, function->ops.at[i]->results[r]))
                verifier->made[function->ops.at[i]->results[r]->id] = NULL;
}

static void check_function(Verifier *verifier, const Function *function) {
    for (int i = 0; i < function->params.count; i++)
        if (function->params.at[i]) make(verifier, NULL, function->params.at[i]);
    check_ops(verifier, function->ops.at, function->ops.count);
    for (int i = 0; i < function->returns.count; i++)
        use(verifier, NULL, function->returns.at[i], "as what a gradient returns");
    forget_function(verifier, function);
}

static void check_param(Verifier *verifier, const Parameter *param) {
    use(verifier, NULL, param->gradient, "as a gradient");
    use(verifier, NULL, param->updated, "as a parameter's new value");
    for (int k = 0; k < param->state_count; k++)
        use(verifier, NULL, param->states_updated[k], "as a state's new value");
    if (param->updated && !type_equal(param->updated->type, param->value->type))
        verify_problem(verifier, NULL, "the new value of %s has another type than the parameter",
                       param->name);
}

static void check_ends(Verifier *verifier) {
    const Module *module = verifier->module;
    use(verifier, NULL, module->loss, "as the loss");
    for (int i = 0; i < module->outputs.count; i++)
        use(verifier, NULL, module->outputs.at[i].value, "as an output");
    for (int i = 0; i < module->params.count; i++) check_param(verifier, module->params.at[i]);
}

/* Checks the rows, slots and deadlocks of the schedules of a text. False: reported. */
static bool check_schedules(const Verifier *verifier) {
    Module *module = verifier->module;
    bool good = true;
    for (int r = 0; r < module->templates->runs.count; r++) {
        const PipelineRun *run = &module->templates->runs.at[r];
        if (!run->schedule || (r && run->schedule == run[-1].schedule)) continue;
        StageGraph graph = template_graph(verifier->scratch, module, run->template_index);
        good &=
            schedule_check(module->diag, verifier->at, &graph, run->schedule, run->microbatches);
    }
    return good;
}

static bool verify(Module *module, Position at) {
    Verifier verifier = {.module = module, .scratch = arena_create(), .at = at};
    verifier.made = arena_array(verifier.scratch, const Value *, module->next_id + 1);
    make_starts(&verifier);
    for (int i = 0; i < module->library->gradients.count; i++)
        check_function(&verifier, module->library->gradients.at[i]);
    check_ops(&verifier, module->ops.at, module->ops.count);
    check_sections(&verifier);
    check_turns(&verifier);
    check_ends(&verifier);
    check_conversions(&verifier);
    if (!verifier.problems) verify_storage(&verifier);
    bool good = !verifier.problems && (!at.file || check_schedules(&verifier));
    arena_destroy(verifier.scratch);
    return good;
}

bool ir_verify(Module *module) { return verify(module, (Position){0}); }

bool ir_verify_text(Module *module, Position at) { return verify(module, at); }

static bool same_shape(const Value *a, const Value *b) {
    return a && b && a->type.rank == b->type.rank &&
           (!a->type.rank ||
            !memcmp(a->type.extent, b->type.extent, sizeof *a->type.extent * (size_t)a->type.rank));
}

/* Checks the signature of a call's gradient: it takes dy of each result, the results and the
 * operands, and returns the gradients of the operands. */
static void check_gradient(Verifier *verifier, const Op *op) {
    const Function *function = op->gradient;
    bool fits = function->params.count == 2 * op->result_count + op->operand_count &&
                function->returns.count == op->operand_count;
    for (int i = 0; fits && i < function->params.count; i++) {
        int k = i - 2 * op->result_count;
        fits = !function->params.at[i] ||
               same_shape(function->params.at[i],
                          k < 0 ? op->results[i % op->result_count] : op->operands[k]);
    }
    for (int i = 0; fits && i < function->returns.count; i++)
        fits = !function->returns.at[i] || same_shape(function->returns.at[i], op->operands[i]);
    if (!fits)
        verify_problem(verifier, op, "the gradient \"%s\" does not fit the operator",
                       function->name);
}

bool ir_verify_op(Module *module, const Op *op, Position at) {
    Verifier verifier = {.module = module, .scratch = arena_create(), .at = at};
    check_binding(&verifier, op);
    check_states(&verifier, op);
    if (!verifier.problems && op->convert.plan) check_conversion(&verifier, op);
    if (!verifier.problems) check_dtypes(&verifier, op);
    for (int i = 0; i < op->result_count; i++) check_value(&verifier, op, op->results[i]);
    if (op->gradient) check_gradient(&verifier, op);
    arena_destroy(verifier.scratch);
    return verifier.problems == 0;
}

/* ---- layouts ---- */

/* Returns the first device of a layout that is not in the mesh; -1: none. */
static int strange_device(Arena *scratch, const Mesh *mesh, const Layout *layout) {
    int count;
    const int *devices = layout_devices(scratch, layout, &count);
    for (int i = 0; i < count; i++) {
        bool found = i < mesh->device_count && mesh->devices[i] == devices[i];
        for (int k = 0; k < mesh->device_count && !found; k++)
            found = mesh->devices[k] == devices[i];
        if (!found) return devices[i];
    }
    return -1;
}

bool ir_verify_layout(Module *module, const Value *value, const Layout *layout, Position at) {
    Arena *scratch = arena_create();
    int before = diag_errors(module->diag),
        device =
            module->devices->mesh ? strange_device(scratch, module->devices->mesh, layout) : -1;
    if (device >= 0)
        diag_error(module->diag, at, "this layout names device %d, which the strategy does not use",
                   device);
    else if (layout->view_rank)
        diag_error(module->diag, at, "this layout has a view; dimensions are factors already");
    else if (value->kind != VALUE_RESULT && layout_partial(layout) != STATE_DUP)
        diag_error(module->diag, at,
                   "a parameter, a state or an input is stored whole or in pieces, not as "
                   "contributions to a %s",
                   layout_partial(layout) == STATE_SUM ? "sum" : "max");
    arena_destroy(scratch);
    return diag_errors(module->diag) == before;
}
