/* Pass seed_layouts: gives layouts to parameters, inputs, optimizer states, and to every value for
 * which the source writes one. Data parallelism, tensor parallelism, sequence parallelism, context
 * parallelism and expert parallelism begin here.
 *
 *     split batch:dp heads:tp ffn:tp
 *     stage devices(0-3) mesh(dp:2, tp:2)
 *
 *     before    x : [batch, seq, embed]                      after    {batch:dp, dup:tp}
 *               w : [ffn, embed]                                      {dup:dp, ffn:tp}
 *
 * Requires: pass stage.
 *
 * Leaves:
 * - the mesh of each stage, and the mesh of all devices;
 * - a layout on every parameter, state and input, on the parts of them that stages have, and on
 *   values with `shard` or `reshard`. A value that several stages read has the union of their
 *   layouts;
 * - a layout on the new value of a parameter without states, which is updated in that layout.
 *
 * An input that micro-batches read in parts has no layout of its own. Layouts in the IR text after
 * this pass may be edited by hand: propagation starts from them. */
#include "passes/seed_layouts/seed_layouts.h"
#include "passes/seed_layouts/consumer_constraints.h"

#include "ir/verify/verify.h"
#include "passes/pass_manager.h"

#include <string.h>

typedef Array(Value *) Values;

typedef struct Place {
    Module *module;
    const Module *program; // the model under the strategy that `optimizer` names; NULL: none
    Arena *arena;          // scratch
    Values *parts;         // by value id: the results of local_part operators on it
    const ConsumerConstraints *wanted;
} Place;

/* Applies a state of a written layout to all parts of a mesh axis, if the strategy has the axis. */
static void use_axis(const Mesh *mesh, const UserLayoutState *state, const char *name,
                     Sharding *sharding) {
    static const int8_t uses[] = {
        [STATE_DUP] = AXIS_DUP, [STATE_SUM] = AXIS_SUM, [STATE_MAX] = AXIS_MAX};
    for (int a = 0; a < mesh->axis_count; a++)
        if (!strcmp(mesh->axis[a].name, name)) {
            if (state->kind == STATE_SPLIT)
                sharding_cut(mesh, sharding, a, state->dim, state->zigzag);
            else sharding->at[a] = uses[state->kind];
        }
}

static const Layout *layout_over_axes(Module *module, const Mesh *mesh, const UserLayout *written) {
    Sharding sharding = sharding_whole();
    for (int s = 0; s < written->state_count; s++)
        for (int i = 0; i < written->states[s].axis_count; i++)
            use_axis(mesh, &written->states[s], written->states[s].axes[i].name, &sharding);
    return sharding_layout(mesh, &sharding, module_interned(module));
}

/* Gives a value the layout that the source writes for it, if there is one. */
static void place_written(Module *module, const Mesh *mesh, Value *value) {
    const UserLayout *written = value->user_layout;
    if (!written) return;
    const Layout *layout = written->layout ? layout_intern(module_interned(module), written->layout)
                                           : layout_over_axes(module, mesh, written);
    if (layout && ir_verify_layout(module, value, layout, written->at)) value->layout = layout;
    value->layout_at = written->at;
    value->user_layout = NULL;
}

static void place_value(Place *place, const Mesh *mesh, Value *value) {
    place_written(place->module, mesh, value);
    if (value->layout) return;
    Sharding sharding = sharding_named(mesh, value, place->wanted->unwanted[value->id]);
    value->layout = sharding_layout(mesh, &sharding, module_interned(place->module));
}

static Values parts_of(Place *place, const Value *whole) { return place->parts[whole->id]; }

/* Returns whether a value lies on all devices and stages have parts of it. */
static bool is_staged(Place *place, const Value *value) {
    Values parts = parts_of(place, value);
    return value->micro.kind == MICRO_WHOLE && parts.count && parts.at[0]->def->stage != STAGE_ALL;
}

/* Gives a layout to a value and its parts on stages. Each part gets a layout on its stage's mesh
 * (if `cut`, the layout of states), and the value gets the union of these layouts. */
static void place_whole(Place *place, Value *value, bool cut) {
    Values parts = parts_of(place, value);
    for (int i = 0; i < parts.count; i++) {
        parts.at[i]->user_layout = value->user_layout;
        const Mesh *mesh = op_mesh(place->module, parts.at[i]->def);
        place_value(place, mesh, parts.at[i]);
        if (cut && is_staged(place, value))
            parts.at[i]->layout = states_layout(place->module, mesh, parts.at[i]);
    }
    if (is_staged(place, value))
        value->layout = union_layout(place->module, TOP_DUP, parts.at, parts.count);
    else if (value->micro.kind == MICRO_WHOLE || !parts.count)
        place_value(place, place->module->devices->mesh, value);
    value->user_layout = NULL;
}

/* Returns the layout of the states of a value on all devices. Under `zero 2` a stage leaves a shard
 * of the gradient on each of its devices; the states are cut in the same way. */
static const Layout *states_of_whole(Place *place, Value *value) {
    Values parts = parts_of(place, value);
    Value whole = *value;
    const Layout *own[parts.count + 1];
    bool cut = module_zero(place->module) == 2 && is_staged(place, value);
    for (int i = 0; cut && i < parts.count; i++) {
        own[i] = parts.at[i]->layout;
        parts.at[i]->layout =
            states_layout(place->module, op_mesh(place->module, parts.at[i]->def), parts.at[i]);
    }
    if (cut) whole.layout = union_layout(place->module, TOP_DUP, parts.at, parts.count);
    for (int i = 0; cut && i < parts.count; i++) parts.at[i]->layout = own[i];
    return states_layout(place->module, place->module->devices->mesh, &whole);
}

/* Gives layouts to a parameter and its states. A parameter that ZeRO cuts has the layout of its
 * states on each stage that reads it. */
static void place_parameter(Place *place, Parameter *parameter) {
    bool cut = zero_cuts_parameter(place->module, parameter);
    place_whole(place, parameter->value, cut);
    const Layout *states = states_of_whole(place, parameter->value);
    for (int s = 0; s < parameter->state_count; s++) parameter->states[s]->layout = states;
    if (cut && !is_staged(place, parameter->value)) parameter->value->layout = states;
}

/* Gives layouts to an operator's results: layouts that the source writes, and the layout of the new
 * value of a parameter without states. */
static void place_results(Place *place, const Op *op) {
    Module *module = place->module;
    for (int r = 0; r < op->result_count; r++)
        place_written(module, op_mesh(module, op), op->results[r]);
    if (module->optimizer->op && op->def == module->optimizer->op &&
        !module->optimizer->state_count)
        op->results[0]->layout =
            place->program ? op->operands[0]->layout : states_of_whole(place, op->operands[0]);
}

/* Sets place->parts: the parts of parameters and inputs that stages have. */
static void find_parts(Place *place) {
    const Module *module = place->module;
    place->parts = arena_array(place->arena, Values, module->next_id);
    for (int i = 0; i < module->ops.count; i++)
        if (module->ops.at[i]->def == module->builtin->local_part)
            array_push(place->arena, &place->parts[module->ops.at[i]->operands[0]->id],
                       module->ops.at[i]->results[0]);
}

static void place_all(Place *place) {
    Module *module = place->module;
    find_parts(place);
    place->wanted = wanted_of(place->arena, module);
    for (int i = 0; i < module->params.count; i++) place_parameter(place, module->params.at[i]);
    for (int i = 0; i < module->inputs.count; i++) place_whole(place, module->inputs.at[i], false);
    if (module->kind == MODULE_TRAIN && module->strategy && module->strategy->optimizer)
        place_as_home(module, place->program);
    for (int i = 0; i < module->ops.count; i++) place_results(place, module->ops.at[i]);
}

void pass_seed_layouts(Module *module, const PassContext *context) {
    Place place = {
        .module = module, .program = context->links->optimizer_program, .arena = arena_create()};
    if (meshes_create(module)) place_all(&place);
    arena_destroy(place.arena);
}
