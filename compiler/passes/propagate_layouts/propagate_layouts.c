/* Pass propagate_layouts: gives every value a layout by the rule of its operator, and inserts a
 * conversion where an operand needs another layout.
 *
 *     y = linear(x, w)     x {batch:dp, dup:tp}, w {dup:dp, ffn:tp}
 *                          y {batch:dp, ffn:tp}    no communication
 *     z = linear(y, v)     v {dup:dp, ffn:tp}: tp cuts the sum over ffn
 *                          z {batch:dp, sum:tp}    partial sums
 *     z' = reshard(z)      z' {batch:dp, dup:tp}   an all-reduce, for the residual
 *
 * Requires: pass seed_layouts. A value that already has a layout keeps it.
 *
 * Leaves: a layout on every value, and conversions (operators of module->builtin->reshard) before
 * their first use, each made once for all users. The loss is whole on every device, outputs are
 * complete, and a parameter's new value has the parameter's layout. Under `zero 2` each micro-batch
 * converts a gradient to the layout of the optimizer's states. Under `zero 3` each layer gathers
 * its parameters and does not keep them.
 *
 * assign_axes.h decides which axis cuts which dimension of an operator, and so its result's layout.
 * propagate_union adds gradients of pipelines with different tp degrees. */
#include "ir/analysis/phases.h"
#include "passes/propagate_layouts/propagate_layouts.h"
#include "passes/seed_layouts/seed_layouts.h"
#include "passes/pass_manager.h"

#include <string.h>

/* ---- versions ---- */

static void add_version(Propagation *propagation, const Value *original, Value *value,
                        const Sharding *sharding) {
    Version *version = arena_new(propagation->arena, Version);
    version->value = value;
    version->mesh = sharding ? propagation->mesh : NULL;
    if (sharding) version->sharding = *sharding;
    version->next = propagation->forms[original->id];
    propagation->forms[original->id] = version;
}

static bool is_known(const Propagation *propagation, const Version *version) {
    return VERSION_KNOWN(&propagation->assigner, version);
}

const Version *propagate_newest(const Propagation *propagation, const Value *value) {
    return newest_version(&propagation->assigner, propagation->forms[value->id]);
}

/* Makes an operator the current one: uses the mesh and the split rules of its stage. */
static void enter_stage(Propagation *propagation, const Op *op) {
    propagation->assigner.reader = op;
    propagation->mesh = propagation->assigner.mesh = op_mesh(propagation->module, op);
    propagation->assigner.rules =
        propagation->rules[op->stage == STAGE_ALL ? propagation->module->templates->stages.count
                                                  : op->stage];
}

/* Returns whether a value exists before the loop over micro-batches. */
static bool is_known_before(const Value *value) {
    return value->micro.kind == MICRO_WHOLE &&
           (value->def ? value->def->loop == LOOP_BEFORE : true);
}

/* Inserts an operator before the loop over micro-batches. */
static void push_before_loop(Propagation *propagation, Op *op) {
    int first = 0;
    while (first < propagation->out.count && (propagation->out.at[first]->loop == LOOP_BEFORE ||
                                              propagation->out.at[first]->loop == LOOP_COUNT))
        first++;
    array_push(propagation->module->arena, &propagation->out, op);
    memmove(propagation->out.at + first + 1, propagation->out.at + first,
            sizeof *propagation->out.at * (size_t)(propagation->out.count - 1 - first));
    propagation->out.at[first] = op;
}

/* Sets the origin of an operator's results: the greatest origin of its operands. */
static void note_origin(Propagation *propagation, const Op *op) {
    Origin origin = ORIGIN_CONSTANTS;
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && propagation->origin[op->operands[k]->id] > origin)
            origin = propagation->origin[op->operands[k]->id];
    for (int r = 0; r < op->result_count; r++) propagation->origin[op->results[r]->id] = origin;
}

/* Returns whether conversions of a value on its stage serve only one layer in one section: gathered
 * parameters under `zero 3`. Values of other stages are kept, not sent again. */
static bool is_passing(const Propagation *propagation, const Value *original) {
    return module_zero(propagation->module) == 3 &&
           propagation->origin[original->id] == ORIGIN_PARAMETERS;
}

/* Drops the versions (converted copies) that only the operators of one layer may read. */
static void end_layer(Propagation *propagation) {
    for (int i = 0; i < propagation->passing.count; i++) {
        Version **version = &propagation->forms[propagation->passing.at[i]->id];
        while (*version)
            if ((*version)->passing) *version = (*version)->next;
            else version = &(*version)->next;
    }
    propagation->passing.count = 0;
}

static const char *text_or_empty(const char *text) { return text ? text : ""; }

static bool layer_equal(const Layer *a, const Layer *b) {
    return a == b || (a && b && a->number == b->number &&
                      !strcmp(text_or_empty(a->name), text_or_empty(b->name)) &&
                      !strcmp(text_or_empty(a->tower), text_or_empty(b->tower)));
}

/* Returns whether two operators belong to one layer, section and loop position. */
static bool same_layer(const Op *a, const Op *b) {
    return a->section == b->section && a->loop == b->loop &&
           layer_equal(a->source->layer, b->source->layer);
}

/* Returns `from`, or its reduced and replicated copy if one layout has sums, the other maxima. */
static Value *reducible(Propagation *propagation, Value *from, const Layout *to, const Op *user,
                        const char *reason) {
    StateKind before = layout_partial(from->layout), after = layout_partial(to);
    Sharding whole = sharding_whole();
    if (before == STATE_DUP || after == STATE_DUP || before == after) return from;
    return propagate_conversion(propagation, from,
                                sharding_layout(propagation->mesh, &whole, propagation->shared),
                                user, reason);
}

/* Inserts a conversion of `from` to a layout, before `user` or, if `turn` is LOOP_BEFORE, before
 * the loop over micro-batches. The conversion has the source position of `user`. */
static Value *insert_at(Propagation *propagation, Value *from, const Layout *to, const Op *user,
                        LoopPosition turn, const char *reason) {
    from = reducible(propagation, from, to, user, reason);
    Op *op = ir_op_like(propagation->module,
                        &(OpCall){propagation->module->builtin->reshard, &from, 1, NULL}, user);
    op->loop = turn;
    op_change_source(propagation->module->arena, op)->reason = reason;
    op->results[0]->micro = from->micro;
    op->results[0]->type = from->type;
    op->results[0]->dims = from->dims;
    op->results[0]->chunk = from->chunk;
    op->results[0]->name = from->name;
    op->results[0]->layout = to;
    if (op->loop == user->loop) array_push(propagation->module->arena, &propagation->out, op);
    else push_before_loop(propagation, op);
    return op->results[0];
}

Value *propagate_conversion(Propagation *propagation, Value *from, const Layout *to, const Op *user,
                            const char *reason) {
    bool before = user->loop == LOOP_EACH && is_known_before(from);
    return insert_at(propagation, from, to, user, before ? LOOP_BEFORE : user->loop, reason);
}

bool propagate_crosses_stages(const Value *value, const Op *user) {
    return value->def && value->def->stage != STAGE_ALL && user->stage != STAGE_ALL &&
           value->def->stage != user->stage;
}

/* Adds and returns a version of `from` without pending reductions, on the stage that makes it. */
static const Version *completed(Propagation *propagation, const Value *original,
                                const Version *from, const Op *user) {
    const Op *maker = from->value->def;
    enter_stage(propagation, maker);
    Sharding complete =
        is_known(propagation, from) ? sharding_complete(from->sharding) : sharding_whole();
    Value *value =
        propagate_conversion(propagation, from->value,
                             sharding_layout(propagation->mesh, &complete, propagation->shared),
                             maker, "what goes to another stage");
    add_version(propagation, original, value, &complete);
    enter_stage(propagation, user);
    return propagation->forms[original->id];
}

Value *propagate_converted(Propagation *propagation, Value *original, const Sharding *to,
                           const Op *user, const char *reason) {
    double price = 0;
    const Version *from =
        cheapest_version(&propagation->assigner, propagation->forms[original->id], to, &price);
    if (!from) BUG("value %%%d is used before it is made", original->id);
    if (is_known(propagation, from) && sharding_equal(propagation->mesh, &from->sharding, to))
        return from->value;
    if (propagate_crosses_stages(from->value, user) &&
        layout_partial(from->value->layout) != STATE_DUP)
        from = completed(propagation, original, from, user);
    const Layout *layout = sharding_layout(propagation->mesh, to, propagation->shared);
    bool passing =
        is_passing(propagation, original) && !propagate_crosses_stages(from->value, user);
    Value *value = passing ? insert_at(propagation, from->value, layout, user, user->loop, reason)
                           : propagate_conversion(propagation, from->value, layout, user, reason);
    add_version(propagation, original, value, to);
    propagation->forms[original->id]->passing = passing;
    if (passing) array_push(propagation->arena, &propagation->passing, original);
    return value;
}

Value *propagate_laid_out(Propagation *propagation, Value *original, const Layout *layout,
                          const Op *user, const char *reason) {
    Sharding sharding;
    if (sharding_of_layout(propagation->mesh, layout, &sharding))
        return propagate_converted(propagation, original, &sharding, user, reason);
    for (const Version *version = propagation->forms[original->id]; version;
         version = version->next)
        if (version_reaches(&propagation->assigner, version) &&
            module_layouts_equal(propagation->module, version->value->layout, layout,
                                 original->type))
            return version->value;
    Value *from =
        original->kind == VALUE_PARAM ? original : propagate_newest(propagation, original)->value;
    Value *value = propagate_conversion(propagation, from, layout, user, reason);
    add_version(propagation, original, value, NULL);
    return value;
}

/* Registers a value that has a layout as the first version of itself. */
static void add_laid_out(Propagation *propagation, Value *value) {
    Sharding sharding;
    add_version(propagation, value, value,
                sharding_of_layout(propagation->mesh, value->layout, &sharding) ? &sharding : NULL);
}

/* Returns whether the operator updates a parameter. */
static bool is_update(const Module *module, const Op *op) {
    return op->section == SECTION_UPDATE && module->optimizer->op &&
           op->def == module->optimizer->op;
}

/* ---- operators ---- */

const char *propagate_reason(Propagation *propagation, const Op *op, int k) {
    const Access *access = op->def->rule->kind == RULE_VIEW
                               ? NULL
                               : &op->def->rule->operands[op->binding->operands[k].access];
    return arena_format(propagation->module->arena, "operand %s of %s",
                        access && access->name ? access->name : "x", op->def->name);
}

static const char *gradient_reason(const Propagation *propagation, const Parameter *parameter) {
    return arena_format(propagation->module->arena, "the gradient of %s", parameter->name);
}

void propagate_result(Propagation *propagation, Op *op, int k, const Layout *made,
                      const Sharding *known) {
    Value *value = op->results[k];
    const Layout *given = value->layout;
    if (!given || module_layouts_equal(propagation->module, given, made, value->type)) {
        value->layout = given ? given : made;
        add_version(propagation, value, value, known);
        return;
    }
    Value *own = op->results[k] =
        ir_value(propagation->module, VALUE_RESULT, value->name, value->type, value->at);
    int id = own->id;
    *own = *value;
    own->id = id;
    own->layout = made;
    Op *conversion = propagate_conversion(propagation, own, given, op, NULL)->def;
    conversion->results[0] = value;
    value->def = conversion;
    value->index = 0;
    add_laid_out(propagation, value);
}

/* Returns the assignment of an operator. An operator that is recomputed gets the assignment of its
 * first run, so that it gives the same bits. */
static Assignment assignment_of(Propagation *propagation, const Op *op) {
    Assignment **known =
        &propagation->assigned[op->source->recomputes ? op->source->recomputes->index : op->index];
    if (op->source->recomputes && *known) return **known;
    Version *versions[op->operand_count + 1];
    for (int k = 0; k < op->operand_count; k++)
        versions[k] = op->operands[k] ? propagation->forms[op->operands[k]->id] : NULL;
    Assignment assignment = assign_axes(&propagation->assigner, op, versions);
    if (propagation->recomputed[op->index])
        *known = arena_copy(propagation->arena, &assignment, sizeof assignment);
    return assignment;
}

static void propagate_op(Propagation *propagation, Op *op) {
    if (propagate_non_mesh(propagation, op)) return;
    Assignment assignment = assignment_of(propagation, op);
    if (assignment.ring_axes && propagate_ring(propagation, op, &assignment)) return;
    assignment.ring_axes = 0;
    // pass constraints of the source from operands to results
    for (int k = 0; k < op->operand_count; k++)
        propagate_user_constraints(propagation, op, k, op->results, &assignment);
    // convert operands
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k]) {
            Sharding need = assignment_operand(propagation->mesh, op, &assignment, k);
            op->operands[k] = propagate_converted(propagation, op->operands[k], &need, op,
                                                  propagate_reason(propagation, op, k));
        }
    array_push(propagation->module->arena, &propagation->out, op);
    // lay out results
    for (int k = 0; k < op->result_count; k++) {
        Sharding made = assignment_result(propagation->mesh, op, &assignment, k);
        propagate_result(propagation, op, k,
                         sharding_layout(propagation->mesh, &made, propagation->shared), &made);
    }
}

/* Returns the layout in which a parameter is updated: the layout of its states, or of its new value
 * if it has no states; if these have no layout, its own. NULL: the parameter is not updated. */
static const Layout *update_layout(const Propagation *propagation, const Parameter *parameter) {
    const Op *op = propagation->update[parameter->value->index];
    if (!op) return NULL;
    const Value *like = parameter->state_count ? parameter->states[0] : op->results[0];
    return like->layout ? like->layout : parameter->value->layout;
}

/* Writes to *sharding the sharding to which a gradient, or a stage's contribution to it, is
 * converted for the update. Returns false if there is none. */
static bool reduced_sharding(const Propagation *propagation, const Mesh *mesh,
                             const Value *gradient, Sharding *sharding) {
    const Layout *layout = propagation->reduced[gradient->id];
    return layout && sharding_of_layout(mesh, layout, sharding);
}

/* Returns the layout in which a sum over micro-batches is accumulated; NULL: the terms' layout.
 * From `zero 2` on, each stage cuts a gradient like its states. Along axes that replicate states,
 * the gradient stays a partial sum, which is reduced once after the loop. */
static const Layout *kept_layout(const Propagation *propagation, const Value *sum,
                                 const Version *added) {
    Sharding kept;
    if (sum->layout || !zero_cuts_gradients(propagation->module) || !propagation->gradient[sum->id])
        return sum->layout;
    if (!is_known(propagation, added) ||
        !reduced_sharding(propagation, propagation->mesh, sum, &kept))
        return propagation->reduced[sum->id];
    for (int a = 0; a < propagation->mesh->axis_count; a++)
        if (kept.at[a] == AXIS_DUP && added->sharding.at[a] == AXIS_SUM) kept.at[a] = AXIS_SUM;
    return sharding_layout(propagation->mesh, &kept, propagation->shared);
}

/* Lays out a sum over micro-batches like its terms, or converts the terms to the sum's layout. */
static void propagate_same(Propagation *propagation, Op *op) {
    Value *operand = op->operands[0];
    const Version *from = propagate_newest(propagation, operand);
    const Parameter *parameter = propagation->gradient[op->results[0]->id];
    const Layout *kept = kept_layout(propagation, op->results[0], from);
    const char *reason =
        parameter && !op->results[0]->layout ? gradient_reason(propagation, parameter) : NULL;
    op->operands[0] =
        kept ? propagate_laid_out(propagation, operand, kept, op, reason) : from->value;
    array_push(propagation->module->arena, &propagation->out, op);
    Sharding sharding;
    bool known = sharding_of_layout(propagation->mesh, op->operands[0]->layout, &sharding);
    propagate_result(propagation, op, 0, op->operands[0]->layout, known ? &sharding : NULL);
}

/* Lays out the collected rows of an output, after completing their reductions. */
static void propagate_collection(Propagation *propagation, Op *op) {
    const Version *from = propagate_newest(propagation, op->operands[0]);
    Sharding complete =
        is_known(propagation, from) ? sharding_complete(from->sharding) : sharding_whole();
    op->operands[0] = propagate_converted(propagation, op->operands[0], &complete, op, "an output");
    array_push(propagation->module->arena, &propagation->out, op);
    op->results[0]->layout = op->operands[0]->layout;
    add_version(propagation, op->results[0], op->results[0], &complete);
}

/* Returns the parameter that a value holds; NULL: none. The value is the parameter, or its
 * converted copy under `optimizer NAME` (passes/seed_layouts/optimizer_statement.c). */
static const Value *computing_of(const Module *module, const Value *value) {
    if (value->def && value->def->def == module->builtin->reshard &&
        value->def->loop == LOOP_BEFORE && value->def->stage == STAGE_ALL)
        value = value->def->operands[0];
    return value->kind == VALUE_PARAM ? value : NULL;
}

/* Lays out a part of a value: the part of one stage or micro-batch. Parts of parameters and inputs
 * have layouts from pass seed_layouts or from the IR text. Any other value is first replicated on
 * all devices. */
static void propagate_part(Propagation *propagation, Op *op) {
    const Module *module = propagation->module;
    Value *result = op->results[0];
    Sharding whole = sharding_whole();
    if (op->operands[0]->kind == VALUE_RESULT && !computing_of(module, op->operands[0])) {
        Op all = *op;
        all.stage = STAGE_ALL;
        enter_stage(propagation, &all);
        op->operands[0] =
            propagate_converted(propagation, op->operands[0], &whole, &all, "what all stages read");
        enter_stage(propagation, op);
    }
    array_push(propagation->module->arena, &propagation->out, op);
    if (op->operands[0]->micro.kind != MICRO_WHOLE && op->operands[0]->layout)
        result->layout = op->operands[0]->layout;
    if (!result->layout)
        result->layout = sharding_layout(propagation->mesh, &whole, propagation->shared);
    add_laid_out(propagation, result);
}

/* Returns the newest version of a value on the stage that makes it. Versions on other stages do not
 * count: in a union they would give a device a second piece. */
static const Version *newest_at_home(const Propagation *propagation, const Value *value) {
    for (const Version *version = propagation->forms[value->id]; version; version = version->next)
        if (version->value->def && version->value->def->stage == value->def->stage &&
            version_reaches(&propagation->assigner, version))
            return version;
    BUG("the stage that made a value has no version of it");
}

/* Lays out a union of values from stages. The stages' values are contributions to a sum. For
 * collected rows, which no operator reads, the union lists the devices that have rows. */
static void propagate_union(Propagation *propagation, Op *op) {
    bool rows = op->operands[0]->def->def == propagation->module->builtin->collect;
    for (int k = 0; k < op->operand_count; k++) {
        enter_stage(propagation, op->operands[k]->def);
        const Version *version = newest_at_home(propagation, op->operands[k]);
        Sharding whole = sharding_whole();
        op->operands[k] = layout_partial(version->value->layout) != STATE_MAX
                              ? version->value
                              : propagate_converted(propagation, op->operands[k], &whole,
                                                    op->operands[k]->def, "a union of stages");
    }
    enter_stage(propagation, op);
    array_push(propagation->module->arena, &propagation->out, op);
    op->results[0]->layout = union_layout(propagation->module, rows ? TOP_DUP : TOP_SUM,
                                          op->operands, op->operand_count);
    add_laid_out(propagation, op->results[0]);
}

/* Lays out a `reshard` of the source, whose result has the written layout. */
static void propagate_reshard(Propagation *propagation, Op *op) {
    op->operands[0] = reducible(propagation, propagate_newest(propagation, op->operands[0])->value,
                                op->results[0]->layout, op, NULL);
    array_push(propagation->module->arena, &propagation->out, op);
    add_laid_out(propagation, op->results[0]);
}

/* ---- the update ---- */

/* From `zero 2` on, converts gradients to the layout of their states as soon as they are made. */
static void reduce_gradients(Propagation *propagation, const Op *op, Value *const *made) {
    for (int k = 0; k < op->result_count && zero_cuts_gradients(propagation->module); k++) {
        const Parameter *parameter = propagation->gradient[made[k]->id];
        const Layout *layout = propagation->reduced[made[k]->id];
        if (layout && op->def != propagation->module->builtin->accumulate &&
            op->def != propagation->module->builtin->stage_union)
            propagate_laid_out(propagation, made[k], layout, op,
                               gradient_reason(propagation, parameter));
    }
}

/* Returns `made`, the new value of `old`, in the layout of `old`. Inserts a conversion, unless the
 * layout is the same and the update read `old` itself (`operand`). */
static Value *stored(Propagation *propagation, const Op *op, Value *made, const Value *operand,
                     const Value *old) {
    if (operand == old &&
        module_layouts_equal(propagation->module, made->layout, old->layout, old->type))
        return made;
    return propagate_conversion(
        propagation, made, old->layout, op,
        arena_format(propagation->module->arena, "the updated %s", old->name));
}

/* Converts parameter, gradient and states to the layout of the update, and replicates the norm. */
static void update_operands(Propagation *propagation, Op *op, const Layout *layout) {
    Arena *arena = propagation->module->arena;
    const char *name = op->operands[0]->name;
    Sharding whole = sharding_whole();
    for (int k = 0; k < op->operand_count; k++) {
        Value *value = op->operands[k];
        if (value && k > 1 && value->kind != VALUE_STATE)
            op->operands[k] =
                propagate_converted(propagation, value, &whole, op, "the norm of the gradients");
        else if (value)
            op->operands[k] = propagate_laid_out(
                propagation, value, layout, op,
                arena_format(arena,
                             k == 1 ? "the gradient of %s" : "the part of %s that is updated here",
                             name));
    }
}

static void propagate_update(Propagation *propagation, Op *op) {
    Parameter *parameter = propagation->module->params.at[op->operands[0]->index];
    const Layout *layout = update_layout(propagation, parameter);
    Value *made[op->result_count];
    memcpy(made, op->results, sizeof *made * (size_t)op->result_count);
    update_operands(propagation, op, layout);
    array_push(propagation->module->arena, &propagation->out, op);
    for (int k = 0; k < op->result_count; k++) propagate_result(propagation, op, k, layout, NULL);
    parameter->updated = stored(propagation, op, made[0], op->operands[0], parameter->value);
    for (int s = 0; s < parameter->state_count; s++)
        parameter->states_updated[s] =
            stored(propagation, op, made[1 + s], op->operands[2 + s], parameter->states[s]);
}

/* Converts gradients to the layout of their states before the norm is computed. So the norm is that
 * of the values that the update reads. */
static void convert_gradients(Propagation *propagation, const Op *first) {
    for (int i = 0; i < propagation->module->params.count; i++) {
        Parameter *parameter = propagation->module->params.at[i];
        const Layout *layout = parameter->gradient && propagation->forms[parameter->gradient->id]
                                   ? update_layout(propagation, parameter)
                                   : NULL;
        if (!layout) continue;
        Sharding states;
        bool known = sharding_of_layout(propagation->mesh, layout, &states);
        Value *gradient = propagate_laid_out(propagation, parameter->gradient, layout, first,
                                             gradient_reason(propagation, parameter));
        propagation->forms[parameter->gradient->id] = NULL;
        add_version(propagation, parameter->gradient, gradient, known ? &states : NULL);
    }
}

/* ---- the pass ---- */

/* Records that a value is a parameter's gradient or a stage's contribution to it. Also records the
 * mesh layout to which the value, and from `zero 2` on each micro-batch's term, is converted. */
static void begin_sum(Propagation *propagation, const Parameter *parameter, const Value *sum,
                      const Mesh *mesh, const Layout *layout) {
    const Op *def = sum->def;
    Sharding sharding;
    propagation->gradient[sum->id] = parameter;
    propagation->reduced[sum->id] = layout;
    if (!reduced_sharding(propagation, mesh, sum, &sharding)) return;
    propagation->assigner.gradient[sum->id] =
        arena_copy(propagation->arena, &sharding, sizeof sharding);
    if (def && def->def == propagation->module->builtin->accumulate &&
        zero_cuts_gradients(propagation->module))
        propagation->assigner.gradient[def->operands[0]->id] =
            propagation->assigner.gradient[sum->id];
}

/* Returns the part of a parameter that a stage has; NULL: the stage does not read it. */
static const Value *part_of_stage(const Module *module, const Parameter *parameter, int stage) {
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op->def == module->builtin->local_part && op->stage == stage &&
            computing_of(module, op->operands[0]) == parameter->value)
            return op->results[0];
    }
    return NULL;
}

/* Records the layouts of all contributions to a gradient, from `zero 2` on: each stage cuts its
 * contribution like the states on its mesh. */
static void begin_summands(Propagation *propagation, const Parameter *parameter,
                           const Value *value) {
    Module *module = propagation->module;
    const Op *def = value->def;
    bool adds = def && (def->def == module->builtin->stage_union ||
                        (op_is_addition(def) && def->loop == LOOP_AFTER));
    for (int k = 0; adds && k < def->operand_count; k++)
        begin_summands(propagation, parameter, def->operands[k]);
    const Value *part = !adds && def && def->stage != STAGE_ALL
                            ? part_of_stage(module, parameter, def->stage)
                            : NULL;
    if (part)
        begin_sum(propagation, parameter, value, op_mesh(module, def),
                  states_layout(module, op_mesh(module, def), part));
}

/* Records that the gradient of a parameter is converted to the layout of the states. */
static void begin_gradient(Propagation *propagation, const Parameter *parameter) {
    begin_sum(propagation, parameter, parameter->gradient, propagation->module->devices->mesh,
              update_layout(propagation, parameter));
    if (zero_cuts_gradients(propagation->module))
        begin_summands(propagation, parameter, parameter->gradient);
}

static void begin_parameter(Propagation *propagation, const Parameter *parameter) {
    add_laid_out(propagation, parameter->value);
    propagate_user_layout(propagation, parameter->value);
    propagation->origin[parameter->value->id] = ORIGIN_PARAMETERS;
    for (int s = 0; s < parameter->state_count; s++)
        add_laid_out(propagation, parameter->states[s]);
    if (parameter->gradient) begin_gradient(propagation, parameter);
}

static void begin(Propagation *propagation) {
    Module *module = propagation->module;
    // 1: side tables
    propagation->forms = arena_array(propagation->arena, Version *, module->next_id);
    propagation->update = arena_array(propagation->arena, Op *, module->params.count);
    propagation->gradient = arena_array(propagation->arena, const Parameter *, module->next_id);
    propagation->reduced = arena_array(propagation->arena, const Layout *, module->next_id);
    propagation->origin = arena_array(propagation->arena, Origin, module->next_id);
    propagation->recomputed = arena_array(propagation->arena, bool, module->ops.count);
    propagation->assigned = arena_array(propagation->arena, Assignment *, module->ops.count);
    propagation->ring_ops = arena_array(propagation->arena, RingOps, module->ops.count);
    propagation->assigner = (Assigner){
        .module = module,
        .mesh = module->devices->mesh,
        .arena = propagation->arena,
        .replica_groups = intern_create(propagation->arena),
        .alike = module_equivalent_devices(module),
        .prices = intern_create(propagation->arena),
        .consumers = wanted_of(propagation->arena, module),
        .constraints = arena_array(propagation->arena, const UserConstraint *, module->next_id),
        .gradient = arena_array(propagation->arena, const Sharding *, module->next_id)};
    // 2: operators that are recomputed, split rules of each stage, updates of parameters
    ir_number(module);
    for (int i = 0; i < module->ops.count; i++)
        if (module->ops.at[i]->source->recomputes)
            propagation->recomputed[module->ops.at[i]->source->recomputes->index] = true;
    int stages = module->templates->stages.count;
    propagation->rules = arena_array(propagation->arena, RuleUse *, stages + 1);
    for (int s = 0; s < stages; s++)
        propagation->rules[s] = arena_array(propagation->arena, RuleUse,
                                            module->templates->stages.at[s].mesh->rules.count);
    propagation->rules[stages] =
        arena_array(propagation->arena, RuleUse, module->devices->mesh->rules.count);
    propagation->assigner.rules = propagation->rules[stages];
    for (int i = 0; i < module->ops.count; i++)
        if (is_update(module, module->ops.at[i]))
            propagation->update[module->ops.at[i]->operands[0]->index] = module->ops.at[i];
    // 3: parameters and inputs, which have layouts
    for (int i = 0; i < module->params.count; i++)
        begin_parameter(propagation, module->params.at[i]);
    for (int i = 0; i < module->inputs.count; i++) {
        if (module->inputs.at[i]->layout) add_laid_out(propagation, module->inputs.at[i]);
        propagate_user_layout(propagation, module->inputs.at[i]);
        propagation->origin[module->inputs.at[i]->id] = ORIGIN_INPUTS;
    }
}

/* Converts values that are assigned to parameters to the parameters' layouts. */
static void finish_assigned(Propagation *propagation, Op end) {
    end.section = SECTION_UPDATE;
    for (int i = 0; i < propagation->module->params.count; i++) {
        Parameter *parameter = propagation->module->params.at[i];
        if (!parameter->updated || propagation->update[i]) continue;
        end.at = parameter->updated->at;
        parameter->updated = propagate_laid_out(
            propagation, parameter->updated, parameter->value->layout, &end,
            arena_format(propagation->module->arena, "the new %s", parameter->name));
    }
}

/* Makes the loss whole on every device, and completes the reductions of outputs. */
static void finish(Propagation *propagation) {
    Module *module = propagation->module;
    Op end = op_place_at(module->source->at);
    bool updates = propagation->out.count &&
                   propagation->out.at[propagation->out.count - 1]->section == SECTION_UPDATE;
    end.section = module->kind == MODULE_TRAIN || updates ? SECTION_UPDATE : SECTION_FORWARD;
    end.loop = module->templates->at.count ? LOOP_AFTER : LOOP_BEFORE;
    enter_stage(propagation, &end);
    finish_assigned(propagation, end);
    Sharding whole = sharding_whole();
    if (module->loss)
        module->loss = propagate_converted(propagation, module->loss, &whole, &end, "the loss");
    for (int i = 0; i < module->outputs.count; i++) {
        Output *output = &module->outputs.at[i];
        const Version *version = propagation->forms[output->value->id];
        bool known = is_known(propagation, version);
        Sharding complete = known ? sharding_complete(version->sharding) : whole;
        bool pending = known || layout_partial(version->value->layout) != STATE_DUP;
        output->value =
            pending ? propagate_converted(propagation, output->value, &complete, &end, "an output")
                    : version->value;
    }
}

/* Reports the split rules of a mesh that no operator's rule allows. */
static void report_refused(Propagation *propagation, const Mesh *mesh, const RuleUse *uses) {
    for (int i = 0; i < mesh->rules.count; i++) {
        if (uses[i].used || !uses[i].refused) continue;
        diag_error(propagation->module->diag, mesh->rules.at[i].at,
                   "the dimension \"%s\" may not be cut: no operator that has it allows it",
                   mesh->rules.at[i].dim.name);
        diag_note(propagation->module->diag, uses[i].refused->at,
                  "%s needs it whole (its rule says `replicate`)", uses[i].refused->def->name);
    }
}

/* Reports refused split rules of the meshes of all stages and of the mesh of all devices. */
static void report_all_refused(Propagation *propagation) {
    const PipelineTemplates *bodies = propagation->module->templates;
    for (int s = 0; s < bodies->stages.count; s++)
        if (bodies->stages.at[s].mesh != propagation->module->devices->mesh)
            report_refused(propagation, bodies->stages.at[s].mesh, propagation->rules[s]);
    report_refused(propagation, propagation->module->devices->mesh,
                   propagation->rules[bodies->stages.count]);
}

/* Returns what a `turns` rule did on all stages. Sets *cuts if an axis has size 2 or more. */
static RuleUse turns_of(const Propagation *propagation, const char *dim, const char *axis,
                        bool *cuts) {
    const Module *module = propagation->module;
    RuleUse all = {0};
    for (int s = 0; s <= module->templates->stages.count; s++) {
        const Mesh *mesh = s < module->templates->stages.count
                               ? module->templates->stages.at[s].mesh
                               : module->devices->mesh;
        for (int i = 0; i < mesh->rules.count; i++) {
            const MeshRule *rule = &mesh->rules.at[i];
            if (strcmp(rule->dim.name, dim) || strcmp(mesh->axis[rule->axis].name, axis)) continue;
            *cuts = *cuts || mesh->axis[rule->axis].count > 1;
            all.used = all.used || propagation->rules[s][i].used;
            all.turns = all.turns || propagation->rules[s][i].turns;
            all.stayed = all.stayed ? all.stayed : propagation->rules[s][i].stayed;
        }
    }
    return all;
}

/* Reports rules of `turns` without effect. Either operators need the pieces together, or no
 * operator of a trained model has pieces along one dimension and sums over another. */
static void report_turns(const Propagation *propagation) {
    const Module *module = propagation->module;
    for (int i = 0; module->strategy && i < module->strategy->turns.count; i++) {
        const SplitRule *rule = &module->strategy->turns.at[i];
        for (int k = 0; k < rule->axis_count; k++) {
            bool cuts = false;
            RuleUse use = turns_of(propagation, rule->dim, rule->axes[k], &cuts);
            if (use.turns || !cuts || (!use.stayed && (module->kind != MODULE_TRAIN || !use.used)))
                continue;
            diag_error(module->diag, rule->axis_at[k],
                       "no pieces of the dimension \"%s\" move on in turns along the axis \"%s\"",
                       rule->dim, rule->axes[k]);
            if (use.stayed)
                diag_note(module->diag, use.stayed->at,
                          "%s needs them together: its rule says of no merge or reduction of them, "
                          "or one of its tensors is cut by both "
                          "dimensions",
                          use.stayed->def->name);
            else
                diag_note(module->diag, module->source->at,
                          "no operator of %s has pieces of it along one dimension and sums over "
                          "another, as attention does",
                          module->name);
        }
    }
}

static void propagate_any(Propagation *propagation, Op *op) {
    Module *module = propagation->module;
    Value *made[op->result_count];
    memcpy(made, op->results, sizeof *made * (size_t)op->result_count);
    note_origin(propagation, op);
    if (is_update(module, op)) propagate_update(propagation, op);
    else if (op->def == module->builtin->local_part) propagate_part(propagation, op);
    else if (op->def == module->builtin->stage_union) propagate_union(propagation, op);
    else if (op->def == module->builtin->collect) propagate_collection(propagation, op);
    else if (op->def == module->builtin->accumulate) propagate_same(propagation, op);
    else if (op->def == module->builtin->reshard && op->results[0]->layout)
        propagate_reshard(propagation, op);
    else propagate_op(propagation, op);
    for (int r = 0; r < op->result_count; r++) propagate_user_layout(propagation, made[r]);
    reduce_gradients(propagation, op, made);
}

static void propagate_all(Propagation *propagation) {
    Module *module = propagation->module;
    bool updating = false;
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        if (i && !same_layer(op, module->ops.at[i - 1])) end_layer(propagation);
        enter_stage(propagation, op);
        bool updates = op->section == SECTION_UPDATE && op->def != module->builtin->stage_union &&
                       op->stage == STAGE_ALL;
        if (updates && !updating && (module->optimizer->clip || module->optimizer->norm))
            convert_gradients(propagation, op);
        updating |= updates;
        propagate_any(propagation, op);
    }
}

void pass_propagate_layouts(Module *module, const PassContext *context) {
    (void)context;
    Propagation propagation = {.module = module,
                               .mesh = module->devices->mesh,
                               .arena = arena_create(),
                               .shared = module_interned(module)};
    // 1: values with layouts; 2: operators in order; 3: outputs; 4: split rules without effect
    begin(&propagation);
    propagate_all(&propagation);
    finish(&propagation);
    report_all_refused(&propagation);
    report_turns(&propagation);
    module->ops.at = propagation.out.at;
    module->ops.count = propagation.out.count;
    module->ops.capacity = propagation.out.capacity;
    ir_number(module);
    arena_destroy(propagation.arena);
}
