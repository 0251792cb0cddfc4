/* Statement `optimizer NAME`: trained parameters and optimizer states keep the layouts that the
 * strategy NAME gives the states. A switch between the two strategies then moves no states.
 *
 *     strategy long   ... optimizer short            strategy short  ... zero
 *     w under short: states {dup:tp, ffn:dp}         w under long, computing: {ffn:tp}
 *
 *     before    y = x * w                            w : {ffn:tp}
 *     after     w' = reshard(w), y = x * w'          w : {dup:tp, ffn:dp}, w' : {ffn:tp}
 *
 * A trained parameter, its states and values that an optimizer rule keeps get the layout of the
 * states under NAME. Operators read a conversion of the parameter to the layout that it would have
 * without the statement. The conversion runs once, at the beginning of a step. */
#include "passes/seed_layouts/seed_layouts.h"

#include <string.h>

static bool same_extents(Type a, Type b) {
    bool same = a.rank == b.rank;
    for (int d = 0; same && d < a.rank; d++) same = a.extent[d] == b.extent[d];
    return same;
}

/* Returns a device of the layout that the strategy does not use; -1: there is none. */
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

/* Returns whether a tensor may have its layout of the other strategy; reports an error if not. */
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

/* Returns, under the other strategy, the layout of a parameter's states; its own if it has none. */
static const Layout *layout_there(const Parameter *there) {
    return there->state_count ? there->states[0]->layout : there->value->layout;
}

/* Replaces a value by another one in all operators that read it, except operators of the update. */
static void replace_readers(Module *module, const Value *value, Value *by) {
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        for (int k = 0; op->section != SECTION_UPDATE && op != by->def && k < op->operand_count;
             k++)
            if (op->operands[k] == value) op->operands[k] = by;
    }
}

/* Converts a parameter to `layout` before all operators. All but the update read the result. */
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
    const Parameter *there = module_param(program, here->name);
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
    // one mistake usually concerns all parameters: report it once
    int errors = diag_errors(module->diag);
    for (int p = 0; program && p < module->params.count && diag_errors(module->diag) == errors; p++)
        keep_parameter(module, program, module->params.at[p]);
}
