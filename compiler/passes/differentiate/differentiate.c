/* Pass differentiate: adds the backward and update sections.
 *
 *     before    y = linear(x, w)                   forward
 *               loss = mean(y)
 *     after     ... dy = fill(1 / n)               backward
 *               dw = linear_dw(dy, x)
 *               w', m', v' = adamw(w, dw, m, v)    update
 *
 * Requires: the forward section, with a gradient function on each operator that has one.
 *
 * Leaves: the gradient of every trained parameter on which the loss depends, and its update.
 * Gradient functions and operators without readers are removed. */
#include "passes/differentiate/differentiate.h"

#include "passes/differentiate/gradient_rule.h"
#include "passes/pass_manager.h"
#include "rule/build.h"

#include <string.h>

#define uthash_malloc(size) arena_alloc(diff->module->arena, (size))
#define uthash_free(pointer, size) ((void)(pointer))
#include <uthash.h>

typedef struct RuleKey {
    const OpDef *def;
    const Binding *binding; // equal calls share it, so it identifies types and arguments
    const Attr *attrs;
    int64_t operand;
    int64_t types; // element types of the gradients of result and operand, as one number
} RuleKey;

typedef struct RuleEntry {
    RuleKey key;
    GradientRule rule;
    UT_hash_handle hh;
} RuleEntry;

static bool no_gradient(const Rule *rule) {
    return rule->grad.function && !strcmp(rule->grad.function, "none");
}

/* Returns whether the operator's rule lets gradients through: it does not say grad(none). */
static bool op_differentiable(const Module *module, const Op *op) {
    return op->def == module->builtin->reshard || !no_gradient(op->def->rule);
}

/* ---- operands that need gradients ---- */

/* Returns whether a gradient can flow from the results to an operand that needs one. */
static bool flows_to(const Differentiator *diff, const Op *op, int operand) {
    const Value *value = op->operands[operand];
    if (!value || !diff->needs[value->id]) return false;
    return !op->gradient || op->gradient->returns.at[operand];
}

static void find_needs(Differentiator *diff) {
    Module *module = diff->module;
    for (int i = 0; i < module->params.count; i++)
        diff->needs[module->params.at[i]->value->id] = !module->params.at[i]->frozen;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        bool needs = false;
        for (int k = 0; k < op->operand_count; k++) needs |= flows_to(diff, op, k);
        needs = needs && op_differentiable(module, op);
        for (int k = 0; k < op->result_count; k++)
            diff->needs[op->results[k]->id] = needs && dtype_is_float(op->results[k]->type.dtype);
    }
}

/* ---- building ---- */

Value *emit_op(Differentiator *diff, const OpDef *def, Value *const *operands, int operand_count,
               const Attr *attrs) {
    Op *op =
        ir_op_like(diff->module, &(OpCall){def, operands, operand_count, attrs}, diff->forward);
    op->section = diff->section;
    array_push(diff->module->arena, &diff->module->ops, op);
    return op->results[0];
}

Value *emit_sum(Differentiator *diff, Value *a, Value *b) {
    if (!diff->sum)
        diff->sum = rule_inserted(diff->module->arena, "add_gradients", "y[i..] = a[i..] + b[i..]");
    return emit_op(diff, diff->sum, (Value *[]){a, b}, 2, NULL);
}

Value *emit_fill(Differentiator *diff, const char *name, Type type, double number) {
    Arena *arena = diff->module->arena;
    RuleDraft *draft = rule_draft(arena);
    int *factors = arena_array(arena, int, type.rank + 1);
    for (int d = 0; d < type.rank; d++)
        factors[d] =
            draft_factor(draft, (Factor){.name = arena_format(arena, "i%d", d),
                                         .size = expr_number(arena, (double)type.extent[d], NULL)});
    Access y = draft_access(draft, "y", type.rank, factors);
    if (type.dtype != DTYPE_F32) y.element = (Element){ELEMENT_FIXED, (int)type.dtype};
    draft_result(draft, y);
    draft_body(draft, expr_number(arena, number, NULL));
    return emit_op(diff, draft_op(draft, name), NULL, 0, NULL);
}

static void name_dims(Value *gradient, const Value *value) {
    if (gradient->kind == VALUE_RESULT && gradient->def->section != SECTION_FORWARD &&
        !gradient->dims)
        gradient->dims = value->dims;
}

void add_gradient(Differentiator *diff, Value *value, Value *contribution) {
    Value **gradient = &diff->gradient[value->id];
    if (!diff->needs[value->id] || !contribution) return;
    if (!type_converts(value->type, contribution->type)) {
        diag_error(diff->module->diag, diff->forward->at,
                   "the gradient of %s has another shape or element type than the operand that it "
                   "belongs to",
                   diff->forward->def->name);
        return;
    }
    if (contribution->type.dtype != gradient_dtype(value))
        contribution = emit_op(diff, rule_convert(diff->module->arena, gradient_dtype(value)),
                               &contribution, 1, NULL);
    name_dims(contribution, value);
    *gradient = *gradient ? emit_sum(diff, *gradient, contribution) : contribution;
    name_dims(*gradient, value);
}

/* ---- gradients by kind of rule ---- */

static const GradientRule *known_rule(Differentiator *diff, int operand) {
    const Op *op = diff->forward;
    RuleKey key;
    RuleEntry *entry;
    memset(&key, 0, sizeof key);
    key.def = op->def;
    key.binding = op->binding;
    key.attrs = op->attrs;
    key.operand = operand;
    key.types =
        gradient_dtype(op->results[0]) * DTYPE_COUNT + gradient_dtype(op->operands[operand]);
    HASH_FIND(hh, diff->rules, &key, sizeof key, entry);
    if (!entry) {
        entry = arena_new(diff->module->arena, RuleEntry);
        entry->key = key;
        entry->rule = gradient_rule(diff->module, op, operand);
        HASH_ADD(hh, diff->rules, key, sizeof key, entry);
    }
    return &entry->rule;
}

static void body_gradient(Differentiator *diff, int operand) {
    const Op *op = diff->forward;
    const GradientRule *rule = known_rule(diff, operand);
    Value *dy = diff->gradient[op->results[0]->id];
    if (rule->kind == GRADIENT_ZERO) return;
    if (rule->kind == GRADIENT_SAME) {
        add_gradient(diff, op->operands[operand], dy);
        return;
    }
    Value **operands = arena_array(diff->module->arena, Value *, rule->operand_count + 1);
    for (int i = 0; i < rule->operand_count; i++)
        operands[i] = rule->operands[i] == GRADIENT_OF_RESULT ? dy
                      : rule->operands[i] == THE_RESULT       ? op->results[0]
                                                              : op->operands[rule->operands[i]];
    add_gradient(diff, op->operands[operand],
                 emit_op(diff, rule->def, operands, rule->operand_count, NULL));
}

/* Adds the gradient of a view: a view of dy in the shape of the operand. */
static void view_gradient(Differentiator *diff) {
    const Op *op = diff->forward;
    Arena *arena = diff->module->arena;
    Attr *attrs = arena_copy(arena, op->attrs, sizeof *op->attrs * (size_t)op->def->attr_count);
    Type type = op->operands[0]->type;
    attrs[op->def->rule->shape_attr] = (Attr){.count = type.rank, .ints = type.extent};
    add_gradient(diff, op->operands[0],
                 emit_op(diff, op->def, &diff->gradient[op->results[0]->id], 1, attrs));
}

/* Returns whether the value is a parameter, or a parameter converted to another element type. */
static bool is_parameter(const Value *value) {
    const Op *copy = value->def && rule_is_copy(value->def->def->rule) ? value->def : NULL;
    return value->kind == VALUE_PARAM || (copy && copy->operands[0]->kind == VALUE_PARAM);
}

/* Adds gradients of operands, of parameters first: their operators may read an activation last. */
static void body_gradients(Differentiator *diff) {
    const Op *op = diff->forward;
    for (int k = 0; k < op->operand_count; k++)
        if (flows_to(diff, op, k) && is_parameter(op->operands[k])) body_gradient(diff, k);
    for (int k = 0; k < op->operand_count; k++)
        if (flows_to(diff, op, k) && !is_parameter(op->operands[k])) body_gradient(diff, k);
}

static void op_gradient(Differentiator *diff) {
    const Op *op = diff->forward;
    if (op->def == diff->module->builtin->reshard)
        add_gradient(diff, op->operands[0], diff->gradient[op->results[0]->id]);
    else if (op->gradient) inline_gradient(diff);
    else if (op->def->rule->kind == RULE_VIEW) view_gradient(diff);
    else if (op->def->rule->kind == RULE_BODY) body_gradients(diff);
    else {
        diag_error(diff->module->diag, op->at,
                   "the gradient of %s is needed, but the operator has none", op->def->name);
        diag_note(diff->module->diag, op->def->at,
                  "say grad(g), the C function that builds it, or grad(none) if no gradient flows");
    }
}

/* ---- the pass ---- */

static bool gradient_arrives(const Differentiator *diff, const Op *op) {
    bool arrives = false, needed = false;
    for (int k = 0; k < op->result_count; k++)
        arrives |= diff->gradient[op->results[k]->id] != NULL;
    for (int k = 0; k < op->operand_count; k++) needed |= flows_to(diff, op, k);
    return arrives && needed;
}

static void walk_back(Differentiator *diff) {
    Module *module = diff->module;
    int forward_count = module->ops.count;
    diff->section = SECTION_BACKWARD;
    diff->forward = module->loss->def ? module->loss->def : &diff->place;
    // the gradient of the loss is 1
    if (diff->needs[module->loss->id])
        add_gradient(diff, module->loss, emit_fill(diff, "seed", module->loss->type, 1));
    // visit every operator after all readers of its results
    for (int i = forward_count - 1; i >= 0; i--)
        if (gradient_arrives(diff, module->ops.at[i])) {
            diff->forward = module->ops.at[i];
            op_gradient(diff);
        }
}

static bool check_loss(const Module *module) {
    const Value *loss = module->loss;
    if (loss && loss->type.rank == 0 && loss->type.dtype == DTYPE_F32) return true;
    diag_error(module->diag, loss ? loss->at : module->source->at,
               "the loss of %s must be one number of type f32 (a tensor of no dimensions)",
               module->name);
    return false;
}

static void forget_functions(Module *module) {
    for (int i = 0; i < module->ops.count; i++) module->ops.at[i]->gradient = NULL;
    module->library->gradients.count = 0;
}

/* Numbers the operators of a multi-stage model (OpSource.op). Gradient operators copy these. */
static void number_units(Module *module) {
    bool stages = false;
    for (int p = 0; module->strategy && p < module->strategy->pipelines.count; p++)
        stages |= module->strategy->pipelines.at[p].stages.count > 1;
    for (int i = 0; stages && i < module->ops.count; i++)
        op_change_source(module->arena, module->ops.at[i])->op = i;
}

/* Removes the operators of section update, which come last, from the module and returns them. */
static Ops take_updates(Module *module) {
    Ops updates = {0};
    int count = module->ops.count;
    while (count && module->ops.at[count - 1]->section == SECTION_UPDATE) count--;
    for (int i = count; i < module->ops.count; i++)
        array_push(module->arena, &updates, module->ops.at[i]);
    module->ops.count = count;
    return updates;
}

static void differentiate(Module *module) {
    Ops updates = take_updates(module);
    int count = module->next_id;
    Arena *arena = module->arena;
    Differentiator diff = {.module = module,
                           .needs = arena_array(arena, bool, count),
                           .gradient = arena_array(arena, Value *, count),
                           .place = op_place_at(module->source->at),
                           .mapped = arena_array(arena, Value *, count),
                           .wanted = arena_array(arena, bool, count),
                           .vanishes = arena_array(arena, bool, count)};
    number_units(module);
    find_needs(&diff);
    walk_back(&diff);
    for (int i = 0; i < module->params.count; i++)
        module->params.at[i]->gradient = diff.gradient[module->params.at[i]->value->id];
    insert_updates(&diff, &updates);
}

void pass_differentiate(Module *module, const PassContext *context) {
    (void)context;
    if (module->kind == MODULE_TRAIN) {
        if (!check_loss(module)) return;
        differentiate(module);
    }
    forget_functions(module);
    remove_dead_ops(module);
    ir_number(module);
}
