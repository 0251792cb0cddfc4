/* The statement `optimizer NAME`: what training keeps lies as it does under the strategy NAME.
 *
 * A parameter that is trained, its states and what a rule of the optimizer keeps get the layouts
 * that the states have there. What computes is a conversion of the parameter to the layout that it
 * would have without the statement, made once at the beginning of a step; the new value is made
 * where the states are, and stays there.
 */
#include "passes/seed_layouts/seed_layouts.h"

#include <string.h>

/* The parameter under the other strategy; NULL: it lacks it. */
static const Parameter *find_there(const Module *home, const char *name) {
    for (int p = 0; p < home->params.count; p++)
        if (!strcmp(home->params.at[p]->name, name)) return home->params.at[p];
    return NULL;
}

static bool same_extents(Type a, Type b) {
    bool same = a.rank == b.rank;
    for (int d = 0; same && d < a.rank; d++) same = a.extent[d] == b.extent[d];
    return same;
}

/* A device that the layout names and the strategy does not use; -1: none. */
static int missing_device(Arena *arena, const Mesh *mesh, const Layout *layout) {
    int count;
    const int *devices = layout_devices(arena, layout, &count);
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < mesh->device_count && mesh->devices[k] != devices[i]) k++;
        if (k == mesh->device_count) return devices[i];
    }
    return -1;
}

/* Whether a tensor can lie here as it does there; an error at the statement otherwise. */
static bool may_lie(const Module *module, const Value *here, const Value *there,
                    const Layout *layout) {
    const Strategy *strategy = module->strategy;
    Arena *scratch = arena_create();
    int missing = missing_device(scratch, module->devices->mesh, layout);
    bool same = same_extents(here->type, there->type);
    if (!same) {
        diag_error(module->diag, strategy->optimizer_at,
                   "%s cannot be kept as it lies under \"%s\": one of the two strategies cuts a "
                   "factor of a dimension that is whole in the other",
                   here->name, strategy->optimizer);
    } else if (missing >= 0) {
        diag_error(module->diag, strategy->optimizer_at,
                   "under \"%s\" device %d keeps a part of %s, and \"%s\" does not use that device",
                   strategy->optimizer, missing, here->name, strategy->name);
        diag_note(module->diag, strategy->at,
                  "give it to a stage here, or name a strategy whose devices are among these");
    }
    arena_destroy(scratch);
    return same && missing < 0;
}

/* The layout in which the other strategy keeps the states of a parameter; without any, the
 * parameter itself. */
static const Layout *layout_there(const Parameter *there) {
    return there->state_count ? there->states[0]->layout : there->value->layout;
}

/* Gives all readers of a value but those of the update another one. */
static void replace_readers(Module *module, const Value *value, Value *by) {
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        for (int k = 0; op->section != SECTION_UPDATE && op != by->def && k < op->operand_count;
             k++)
            if (op->operands[k] == value) op->operands[k] = by;
    }
}

/* What computes of a parameter: a conversion to `layout` in front of all else. */
static void add_computing(Module *module, Value *param, const Layout *layout) {
    Op place = op_place_at(param->at);
    Op *op = ir_op_like(module, &(OpCall){module->builtin->reshard, &param, 1, NULL}, &place);
    Value *made = op->results[0];
    op->section = SECTION_FORWARD;
    op->loop = LOOP_BEFORE;
    op_change_source(module->arena, op)->reason =
        arena_format(module->arena, "%s, which is kept as under the strategy %s", param->name,
                     module->strategy->optimizer);
    made->type = param->type;
    made->dims = param->dims;
    made->name = param->name;
    made->layout = layout;
    array_push(module->arena, &module->ops, op);
    memmove(module->ops.at + 1, module->ops.at,
            sizeof *module->ops.at * (size_t)(module->ops.count - 1));
    module->ops.at[0] = op;
    replace_readers(module, param, made);
}

static void keep_parameter(Module *module, const Module *program, Parameter *here) {
    const Parameter *there = find_there(program, here->name);
    bool trained = here->kept || (here->gradient && !here->frozen);
    if (!there || !trained || !may_lie(module, here->value, there->value, layout_there(there)))
        return;
    const Layout *computing = here->value->layout,
                 *kept = layout_intern(module_interned(module), layout_there(there));
    here->value->layout = kept;
    for (int s = 0; s < here->state_count; s++) here->states[s]->layout = kept;
    if (!here->kept && !module_layouts_equal(module, computing, kept, here->value->type))
        add_computing(module, here->value, computing);
}

void place_as_home(Module *module, const Module *program) {
    if (!program)
        diag_error(module->diag, module->strategy->optimizer_at,
                   "there is no program under the strategy \"%s\" here",
                   module->strategy->optimizer);
    int errors = diag_errors(module->diag); // what is wrong with one is wrong with all
    for (int p = 0; program && p < module->params.count && diag_errors(module->diag) == errors; p++)
        keep_parameter(module, program, module->params.at[p]);
}
