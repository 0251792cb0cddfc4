/* Pass deduce: every value gets a layout by the rules of its operator; where operands need another, a conversion is inserted.
 *
 * Requires: pass place. Leaves: a layout on every value; conversions (operators of module->reshard_def) before their first use, each made
 * once for all users. The loss is whole on every device, outputs are complete, and a parameter's new value has the parameter's layout.
 */
#include "passes/deduce/assign.h"
#include "passes/pipeline.h"
#include "passes/place/place.h"

#include <string.h>

typedef struct Deduce {
    Module *module;
    Mesh *mesh;
    Arena *arena; // scratch
    Intern *shared;
    Version **forms; // by value id of the original value
    Array(Op *) out;
} Deduce;

/* ---- versions ---- */

static void add_version(Deduce *deduce, const Value *original, Value *value, const Sharding *sharding)
{
    Version *version = arena_new(deduce->arena, Version);
    version->value = value;
    version->known = sharding != NULL;
    if (sharding)
        version->sharding = *sharding;
    version->next = deduce->forms[original->id];
    deduce->forms[original->id] = version;
}

/* Whether a value is known before the loop over micro-batches. */
static bool is_known_before(const Value *value) { return value->micro == 0 && (value->def ? value->def->turn == TURN_BEFORE : true); }

/* Puts an operator in front of the loop over micro-batches. */
static void push_before_loop(Deduce *deduce, Op *op)
{
    int first = 0;
    while (first < deduce->out.count && deduce->out.at[first]->turn == TURN_BEFORE)
        first++;
    array_push(deduce->module->arena, &deduce->out, op);
    memmove(deduce->out.at + first + 1, deduce->out.at + first, sizeof *deduce->out.at * (size_t)(deduce->out.count - 1 - first));
    deduce->out.at[first] = op;
}

/* An operator that converts `from`, placed here, or in front of the loop over micro-batches where it is the same in each; it has the place
 * of `user` in the source. */
static Value *insert_conversion(Deduce *deduce, Value *from, const Op *user, const char *reason)
{
    Op *op = ir_op_like(deduce->module, deduce->module->reshard_def, &from, 1, NULL, user);
    if (user->turn == TURN_EACH && is_known_before(from))
        op->turn = TURN_BEFORE;
    op->reason = reason;
    op->results[0]->micro = from->micro;
    op->results[0]->type = from->type;
    op->results[0]->dims = from->dims;
    op->results[0]->name = from->name;
    if (op->turn == user->turn)
        array_push(deduce->module->arena, &deduce->out, op);
    else
        push_before_loop(deduce, op);
    return op->results[0];
}

/* `original` in the form `to`: one that exists, or a new conversion of the cheapest. */
static Value *converted(Deduce *deduce, Value *original, const Sharding *to, const Op *user, const char *reason)
{
    double price = 0;
    const Version *from = cheapest_version(deduce->mesh, deduce->forms[original->id], to, &price);
    if (!from)
        BUG("value %%%d is used before it is made", original->id);
    if (from->known && sharding_equal(deduce->mesh, &from->sharding, to))
        return from->value;
    Value *value = insert_conversion(deduce, from->value, user, reason);
    value->layout = sharding_layout(deduce->mesh, to, deduce->shared);
    add_version(deduce, original, value, to);
    return value;
}

/* ---- operators ---- */

static const char *operand_reason(Deduce *deduce, const Op *op, int k)
{
    const Access *access = op->def->rule->kind == RULE_VIEW ? NULL : &op->def->rule->operands[op->binding->operands[k].access];
    return arena_format(deduce->module->arena, "operand %s of %s", access && access->name ? access->name : "x", op->def->name);
}

/* The result takes the layout of `shard` where one is written, beside its own. */
static void finish_result(Deduce *deduce, const Op *op, Value *value, const Sharding *sharding)
{
    value->layout = sharding_layout(deduce->mesh, sharding, deduce->shared);
    add_version(deduce, value, value, sharding);
    if (!value->shard || layout_equal(value->shard, value->layout, type_shape(value->type)))
        return;
    Sharding known;
    Value *wanted = insert_conversion(deduce, value, op, NULL);
    wanted->layout = value->shard;
    deduce->forms[value->id] = NULL;
    add_version(deduce, value, wanted, sharding_of_layout(deduce->mesh, value->shard, &known) ? &known : NULL);
}

static void deduce_op(Deduce *deduce, Op *op)
{
    Version *versions[op->operand_count + 1];
    for (int k = 0; k < op->operand_count; k++)
        versions[k] = op->operands[k] ? deduce->forms[op->operands[k]->id] : NULL;
    Assignment assignment = assign_axes(deduce->mesh, op, versions);
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k]) {
            Sharding need = assignment_operand(deduce->mesh, op, &assignment, k);
            op->operands[k] = converted(deduce, op->operands[k], &need, op, operand_reason(deduce, op, k));
        }
    array_push(deduce->module->arena, &deduce->out, op);
    for (int k = 0; k < op->result_count; k++) {
        Sharding made = assignment_result(deduce->mesh, op, &assignment, k);
        finish_result(deduce, op, op->results[k], &made);
    }
}

/* Whether the operator takes an input as a whole, in front of the loop over micro-batches; inside it, the input's versions are parts. */
static bool takes_whole(const Deduce *deduce, const Op *op)
{
    return op->def == deduce->module->reshard_def && op->operands[0]->micro > 0 && op->turn == TURN_BEFORE;
}

/* A sum over micro-batches is kept in the layout of what is added, and the whole of an input is in the input's. */
static void deduce_same(Deduce *deduce, Op *op)
{
    const Version *from = deduce->forms[op->operands[0]->id];
    op->operands[0] = from->value;
    op->results[0]->layout = from->value->layout;
    array_push(deduce->module->arena, &deduce->out, op);
    add_version(deduce, op->results[0], op->results[0], from->known ? &from->sharding : NULL);
}

/* A `reshard` of the source: the layout is the one written. */
static void deduce_reshard(Deduce *deduce, Op *op)
{
    Value *result = op->results[0];
    const Version *from = deduce->forms[op->operands[0]->id];
    Sharding known;
    op->operands[0] = from->value;
    result->layout = result->shard;
    array_push(deduce->module->arena, &deduce->out, op);
    add_version(deduce, result, result, sharding_of_layout(deduce->mesh, result->layout, &known) ? &known : NULL);
}

/* ---- the update ---- */

/* The operand of an update in the layout of the parameter's states. */
static Value *update_operand(Deduce *deduce, const Op *op, Value *value, const Sharding *states, const Layout *layout)
{
    const char *reason =
        arena_format(deduce->module->arena, value->kind == VALUE_PARAM ? "the part of %s that is updated here" : "the gradient of %s",
                     op->operands[0]->name);
    if (states)
        return converted(deduce, value, states, op, reason);
    const Version *from = deduce->forms[value->id];
    if (value->layout == layout)
        return value;
    for (const Version *version = from; version; version = version->next)
        if (layout_equal(version->value->layout, layout, type_shape(value->type)))
            return version->value;
    Value *wanted = insert_conversion(deduce, from->value, op, reason);
    wanted->layout = layout;
    return wanted;
}

/* The new value of a parameter, in the parameter's own layout and place. */
static void finish_update(Deduce *deduce, const Op *op, Parameter *parameter)
{
    Value *updated = op->results[0];
    if (op->operands[0] != parameter->value || !layout_equal(updated->layout, parameter->value->layout, type_shape(updated->type))) {
        const char *reason = arena_format(deduce->module->arena, "the updated %s", parameter->name);
        updated = insert_conversion(deduce, updated, op, reason);
        updated->layout = parameter->value->layout;
    }
    parameter->updated = updated;
    for (int s = 0; s < parameter->state_count; s++)
        parameter->states_updated[s] = op->results[1 + s];
}

static void deduce_update(Deduce *deduce, Op *op)
{
    Parameter *parameter = deduce->module->params.at[op->operands[0]->index];
    Sharding stored, states, whole = sharding_whole();
    bool known = place_stored(deduce->mesh, parameter->value, &stored);
    const Layout *layout = parameter->value->layout;
    if (known) {
        states = place_states(deduce->mesh, parameter->value, stored);
        layout = sharding_layout(deduce->mesh, &states, deduce->shared);
    }
    Value *before[op->operand_count + 1];
    memcpy(before, op->operands, sizeof *before * (size_t)op->operand_count);
    Op user = *op;
    user.operands = before;
    for (int k = 0; k < op->operand_count; k++)
        if (before[k] && k < 2)
            op->operands[k] = update_operand(deduce, &user, before[k], known ? &states : NULL, layout);
        else if (before[k] && before[k]->kind != VALUE_STATE)
            op->operands[k] = converted(deduce, before[k], &whole, op, "the norm of the gradients");
    array_push(deduce->module->arena, &deduce->out, op);
    for (int k = 0; k < op->result_count; k++)
        op->results[k]->layout = layout;
    finish_update(deduce, op, parameter);
}

/* Gradients go to the layout of their states before the norm is taken, so that it is taken of what is updated. */
static void convert_gradients(Deduce *deduce, const Op *first)
{
    for (int i = 0; i < deduce->module->params.count; i++) {
        Parameter *parameter = deduce->module->params.at[i];
        Sharding stored;
        if (!parameter->gradient || !deduce->forms[parameter->gradient->id] || !place_stored(deduce->mesh, parameter->value, &stored))
            continue;
        Sharding states = place_states(deduce->mesh, parameter->value, stored);
        Value *gradient = converted(deduce, parameter->gradient, &states, first,
                                    arena_format(deduce->module->arena, "the gradient of %s", parameter->name));
        deduce->forms[parameter->gradient->id] = NULL;
        add_version(deduce, parameter->gradient, gradient, &states);
    }
}

/* ---- the pass ---- */

static void begin_value(Deduce *deduce, Value *value)
{
    Sharding sharding;
    add_version(deduce, value, value, place_stored(deduce->mesh, value, &sharding) ? &sharding : NULL);
}

/* Notes where a parameter's gradient goes. */
static void begin_gradient(Deduce *deduce, const Parameter *parameter)
{
    Sharding stored;
    if (!parameter->gradient || !place_stored(deduce->mesh, parameter->value, &stored))
        return;
    Sharding states = place_states(deduce->mesh, parameter->value, stored);
    deduce->mesh->gradient[parameter->gradient->id] = arena_copy(deduce->arena, &states, sizeof states);
}

static void begin(Deduce *deduce)
{
    Module *module = deduce->module;
    deduce->forms = arena_array(deduce->arena, Version *, module->next_id);
    deduce->mesh->gradient = arena_array(deduce->arena, const Sharding *, module->next_id);
    for (int i = 0; i < module->params.count; i++) {
        begin_value(deduce, module->params.at[i]->value);
        begin_gradient(deduce, module->params.at[i]);
    }
    for (int i = 0; i < module->inputs.count; i++)
        begin_value(deduce, module->inputs.at[i]);
}

/* The loss whole everywhere, outputs without pending reductions. */
static void finish(Deduce *deduce)
{
    Module *module = deduce->module;
    Op end = op_place_at(module->at);
    end.section = module->kind == MODULE_TRAIN ? SECTION_UPDATE : SECTION_FORWARD;
    end.turn = module->microbatches > 1 ? TURN_AFTER : TURN_BEFORE;
    Sharding whole = sharding_whole();
    if (module->loss)
        module->loss = converted(deduce, module->loss, &whole, &end, "the loss");
    for (int i = 0; i < module->outputs.count; i++) {
        const Version *version = deduce->forms[module->outputs.at[i].value->id];
        Sharding complete = version->known ? version->sharding : whole;
        for (int a = 0; a < MESH_MOST; a++)
            if (complete.at[a] < AXIS_DUP)
                complete.at[a] = AXIS_DUP;
        module->outputs.at[i].value =
            version->known ? converted(deduce, module->outputs.at[i].value, &complete, &end, "an output") : version->value;
    }
}

/* Split rules that no operator's rule let through. */
static void report_refused(Deduce *deduce)
{
    for (int i = 0; i < deduce->mesh->rules.count; i++) {
        const MeshRule *rule = &deduce->mesh->rules.at[i];
        if (rule->used || !rule->refused)
            continue;
        diag_error(deduce->module->diag, rule->at, "the dimension \"%s\" may not be cut: no operator that has it allows it", rule->dim);
        diag_note(deduce->module->diag, rule->refused->at, "%s needs it whole (its rule says `replicate`)", rule->refused->def->name);
    }
}

static void deduce_all(Deduce *deduce)
{
    Module *module = deduce->module;
    bool updating = false;
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        if (op->section == SECTION_UPDATE && !updating && module->clip)
            convert_gradients(deduce, op);
        updating |= op->section == SECTION_UPDATE;
        if (op->section == SECTION_UPDATE && op->def == module->update)
            deduce_update(deduce, op);
        else if ((module->accumulate_def && op->def == module->accumulate_def) || takes_whole(deduce, op))
            deduce_same(deduce, op);
        else if (op->def == module->reshard_def && op->results[0]->shard)
            deduce_reshard(deduce, op);
        else
            deduce_op(deduce, op);
    }
}

void pass_deduce(Module *module)
{
    Deduce deduce = {.module = module, .arena = arena_create(), .shared = module_shared(module)};
    deduce.mesh = mesh_create(module);
    if (deduce.mesh) {
        begin(&deduce);
        deduce_all(&deduce);
        finish(&deduce);
        report_refused(&deduce);
        module->ops.at = deduce.out.at;
        module->ops.count = deduce.out.count;
        module->ops.capacity = deduce.out.capacity;
        ir_number(module);
    }
    arena_destroy(deduce.arena);
}
