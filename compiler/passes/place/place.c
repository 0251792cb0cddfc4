/* Pass place: parameters, inputs and optimizer states get their layouts, and so do values for which the source writes one.
 *
 * Requires: pass refine. Leaves: the module's mesh; a layout on every parameter, state and input, and on every value with a `shard` or
 * `reshard`; on the new value of a parameter without states the layout in which it is updated. Whoever edits the text after this pass may
 * give any value a layout.
 */
#include "passes/place/place.h"

#include "ir/verify/verify.h"
#include "passes/pipeline.h"

#include <string.h>

/* ---- what the source writes ---- */

/* Whether the strategy knows an axis of this name at all: one that the stage's mesh lacks has size 1. */
static bool known_axis(const Module *module, const char *name)
{
    for (int i = 0; module->strategy && i < module->strategy->splits.count; i++)
        for (int k = 0; k < module->strategy->splits.at[i].axis_count; k++)
            if (!strcmp(module->strategy->splits.at[i].axes[k], name))
                return true;
    return !module->strategy;
}

/* Puts all parts of a mesh axis to the use that a state has for them. False when the strategy has no such axis. */
static bool use_axis(const Module *module, const WrittenState *state, const char *name, Sharding *sharding)
{
    static const int8_t uses[] = {[STATE_DUP] = AXIS_DUP, [STATE_SUM] = AXIS_SUM, [STATE_MAX] = AXIS_MAX};
    bool found = false;
    for (int a = 0; a < module->mesh->axis_count; a++)
        if (!strcmp(module->mesh->axis[a].name, name)) {
            found = true;
            if (state->kind == STATE_SPLIT)
                sharding_cut(module->mesh, sharding, a, state->dim);
            else
                sharding->at[a] = uses[state->kind];
        }
    return found || known_axis(module, name);
}

static const Layout *layout_over_axes(Module *module, const WrittenLayout *written)
{
    Sharding sharding = sharding_whole();
    for (int s = 0; s < written->state_count; s++)
        for (int i = 0; i < written->states[s].axis_count; i++)
            if (!use_axis(module, &written->states[s], written->states[s].axes[i].name, &sharding)) {
                diag_error(module->diag, written->states[s].axes[i].at, "the strategy has no mesh axis \"%s\"",
                           written->states[s].axes[i].name);
                return NULL;
            }
    return sharding_layout(module->mesh, &sharding, module_shared(module));
}

/* Gives a value the layout that the source writes for it, where there is one. */
static void place_written(Module *module, Value *value)
{
    const WrittenLayout *written = value->written;
    if (!written)
        return;
    const Layout *layout = written->layout ? layout_shared(module_shared(module), written->layout) : layout_over_axes(module, written);
    if (layout && ir_verify_layout(module, value, layout, written->at))
        value->layout = layout;
    value->written = NULL;
}

/* ---- the pass ---- */

static void place_value(Module *module, Value *value)
{
    place_written(module, value);
    if (value->layout)
        return;
    Sharding sharding = sharding_named(module->mesh, value);
    value->layout = sharding_layout(module->mesh, &sharding, module_shared(module));
}

/* Under `zero 3` a parameter lies as its states would, unless the source says where it lies. */
static void place_parameter(Module *module, Parameter *parameter)
{
    bool written = parameter->value->written;
    place_value(module, parameter->value);
    const Layout *states = states_layout(module, parameter->value);
    for (int s = 0; s < parameter->state_count; s++)
        parameter->states[s]->layout = states;
    if (module_zero(module) == 3 && !written)
        parameter->value->layout = states;
}

/* What an operator makes: where the source says so, and a parameter that is updated without states. */
static void place_results(Module *module, const Op *op)
{
    for (int r = 0; r < op->result_count; r++)
        place_written(module, op->results[r]);
    if (module->update && op->def == module->update && !module->state_count)
        op->results[0]->layout = states_layout(module, op->operands[0]);
}

void pass_place(Module *module)
{
    module->mesh = mesh_create(module);
    if (!module->mesh)
        return;
    for (int i = 0; i < module->params.count; i++)
        place_parameter(module, module->params.at[i]);
    for (int i = 0; i < module->inputs.count; i++)
        place_value(module, module->inputs.at[i]);
    for (int i = 0; i < module->ops.count; i++)
        place_results(module, module->ops.at[i]);
}
