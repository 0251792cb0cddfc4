/* Walks the operators and refuses a model whose results would change if padding were dropped. */
#include "passes/stage/stage.h"
#include "passes/stage/padding_safety/call.h"

/* Registers a value and returns its blocks, which may have any finite elements so far. */
static Bounds *new_blocks(PaddingCheck *behind, const Value *value, const Value *own) {
    behind->own[value->id] = own;
    int count = 1 << padding_short_dims(behind, value);
    Bounds *blocks = arena_array(behind->arena, Bounds, count);
    for (int b = 0; b < count; b++) blocks[b] = bounds_finite();
    return behind->blocks[value->id] = blocks;
}

static void note_inputs(PaddingCheck *behind) {
    for (int i = 0; i < behind->module->inputs.count; i++) {
        const Value *input = behind->module->inputs.at[i];
        Bounds *blocks = new_blocks(behind, input, behind->other->inputs.at[i]);
        for (int b = 1; input->padding && b < 1 << padding_short_dims(behind, input); b++)
            blocks[b] = bounds_number(*input->padding);
    }
}

static void note_parameters(PaddingCheck *behind) {
    for (int i = 0; i < behind->module->params.count; i++) {
        const Parameter *parameter = behind->module->params.at[i],
                        *own = behind->other->params.at[i];
        new_blocks(behind, parameter->value, own->value);
        for (int s = 0; s < parameter->state_count; s++)
            new_blocks(behind, parameter->states[s], own->states[s]);
    }
}

static bool mentions(const Rule *rule, int attr) {
    bool found = rule->body && expr_mentions(rule->body, EXPR_ATTR, attr);
    for (int e = 0; e < rule->equations.count; e++)
        found = found || expr_mentions(rule->equations.at[e].expr, EXPR_ATTR, attr);
    return found;
}

/* Returns whether an argument is used only as the extent of a result. */
static bool is_extent(const Rule *rule, int attr) {
    bool found = rule->kind == RULE_VIEW;
    for (int f = 0; f < rule->factor_count; f++)
        found = found ||
                (rule->factors[f].size && expr_mentions(rule->factors[f].size, EXPR_ATTR, attr));
    return found && !mentions(rule, attr);
}

/* Returns whether integer arguments that depend on the lengths are only extents of results, as each
 * pipeline has values of its own for them. Reports an error otherwise. */
static bool check_arguments(const Call *call) {
    for (int a = 0; a < call->op->def->attr_count; a++) {
        bool integer = opdef_attr_kind(call->op->def, a) == PARAM_INT;
        if (integer && call->op->attrs[a].i != call->own->attrs[a].i &&
            !is_extent(call->op->def->rule, a))
            return call_refuse(call, 0, "takes a number that depends on the length of a row");
    }
    return true;
}

static void copy_view(Call *call) {
    call->values[0] = arena_array(call->behind->arena, Bounds, 1 << call->count);
    for (unsigned a = 0; a < 1u << call->count; a++) call->values[0][a] = call_operand(call, 0, a);
}

static void keep_results(Call *call) {
    const Op *op = call->op;
    for (int r = 0; r < op->result_count; r++) {
        Bounds *blocks = call->behind->blocks[op->results[r]->id];
        unsigned own = call_bits(call, &op->def->rule->results[op->binding->results[r].access]);
        for (unsigned a = 0; a < 1u << call->count; a++)
            if (op->def->rule->kind == RULE_VIEW || !(a & ~own))
                blocks[call_block(call, op->results[r], &op->binding->results[r], a)] =
                    call->values[op->binding->results[r].access][a];
    }
}

static bool follow(PaddingCheck *behind, const Op *op, const Op *own) {
    const Rule *rule = op->def->rule;
    Call call = {.behind = behind, .op = op, .own = own};
    call.present = arena_array(behind->arena, bool, rule->operand_count + 1);
    call.values =
        arena_array(behind->arena, Bounds *, rule->result_count + rule->equations.local_count);
    for (int k = 0; k < op->operand_count; k++)
        call.present[op->binding->operands[k].access] |= op->operands[k] != NULL;
    call.sizes = arena_array(behind->arena, int64_t, rule->factor_count + 1);
    for (int f = 0; f < rule->factor_count; f++) call.sizes[f] = 1;
    for (int f = 0; f < op->binding->factor_count; f++)
        call.sizes[op->binding->factors[f].factor] *= op->binding->factors[f].extent;
    for (int r = 0; r < op->result_count; r++) new_blocks(behind, op->results[r], own->results[r]);
    // 1: find the shorter factors, and check arguments
    if (!call_find_factors(&call)) return call_refuse(&call, 0, "takes the length of a row apart");
    if (!check_arguments(&call)) return false;
    // 2: ranges of the results
    if (rule->kind == RULE_VIEW) copy_view(&call);
    else if (rule->body || rule->equations.count ? !follow_equations(&call) : !follow_kernel(&call))
        return false;
    keep_results(&call);
    return true;
}

bool padding_is_safe(const Module *module, const Module *other, Position at) {
    Arena *arena = arena_create();
    PaddingCheck behind = {.module = module, .other = other, .arena = arena, .at = at};
    bool fits = true;
    behind.own = arena_array(arena, const Value *, module->next_id);
    behind.blocks = arena_array(arena, Bounds *, module->next_id);
    note_inputs(&behind);
    note_parameters(&behind);
    for (int i = 0; fits && i < module->ops.count; i++)
        if (module->ops.at[i]->section != SECTION_UPDATE)
            fits = follow(&behind, module->ops.at[i], other->ops.at[i]);
    arena_destroy(arena);
    return fits;
}
