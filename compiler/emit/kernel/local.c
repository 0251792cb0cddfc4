/* What an operator is on one device. */
#include "emit/emitter.h"
#include "rule/expr.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int64_t tensor_count(const Tensor *tensor)
{
    int64_t count = 1;
    for (int d = 0; tensor->value && d < tensor->bound->rank; d++)
        count *= tensor->extent[d];
    return tensor->value && !tensor->empty ? count : 0;
}

int operand_of(const LocalOp *local, int index)
{
    for (int k = 0; k < local->operand_count; k++)
        if (local->operands[k].value && local->operands[k].bound->access == index)
            return k;
    return -1;
}

bool value_turns(const Module *module, const Op *op, const Value *value)
{
    const Value *owner = value_storage(value);
    return module->microbatches > 1 && owner->kind == VALUE_INPUT && owner->micro > 0 && op->turn == TURN_EACH;
}

/* Whether generated functions use a name themselves: words of a back end, counters of loops, and numbered ones as i0. */
static bool is_own_name(const char *name, bool loops)
{
    if (backend_word(name) || (loops && strlen(name) == 1 && strchr("ijke", *name)))
        return true;
    const char *digits = name + (strncmp(name, "at", 2) ? 1 : 2);
    return strchr("aik", name[0]) && *digits && strspn(digits, "0123456789") == strlen(digits);
}

/* Whether a name ends as those of the variables that generated functions keep a tensor's elements in: NAME_v, NAME_w, NAME_h, NAME_s. */
static bool is_variable(const char *name)
{
    size_t length = strlen(name);
    return length > 2 && name[length - 2] == '_' && strchr("vwhs", name[length - 1]);
}

/* A name for a tensor in emitted C that stands beside the names that generated functions use. */
static const char *tensor_name(Arena *arena, const Rule *rule, const char *name, int number)
{
    bool taken = is_variable(name) || is_own_name(name, rule->kind != RULE_CALL);
    return number < 0 ? arena_format(arena, "%s%s", name, taken ? "_" : "") : arena_format(arena, "%s_%d", name, number);
}

/* Fills in one tensor, and the extents of its factors where this device holds something of it. A kernel's tensor may have dimensions of no
 * one factor, which are never cut (passes/refine/refine.c). */
static bool local_tensor(LocalOp *local, Target *target, Tensor *tensor, const Value *value, const BoundAccess *bound, const Access *access,
                         int number)
{
    *tensor = (Tensor){
        .value = value, .access = access, .bound = bound, .name = tensor_name(target->emitter->arena, local->rule, access->name, number)};
    if (!value)
        return true;
    if (!value_local(target->module, value, local->device, tensor->extent)) {
        diag_error(target->module->diag, local->op->at,
                   "\"%s\" would run on pieces that are several boxes; an operator needs one box a device", local->op->def->name);
        diag_note(target->module->diag, value->at, "the pieces are those of this value; convert it with `reshard` before");
        return false;
    }
    tensor->empty = !value_region(target->module, value, local->device)->box_count;
    for (int d = 0; d < bound->rank && !tensor->empty; d++) {
        if (!bound->dims[d].count && local->rule->kind == RULE_CALL)
            continue;
        if (bound->dims[d].count != 1)
            BUG("%s: dimension %d of %s is not refined", local->op->def->name, d, access->name);
        int64_t *extent = &local->extent[bound->dims[d].factors[0]];
        if (*extent >= 0 && *extent != tensor->extent[d])
            BUG("%s: pieces of %s differ in factor %s: %lld and %lld", local->op->def->name, access->name,
                local->rule->factors[local->op->binding->factors[bound->dims[d].factors[0]].factor].name, (long long)*extent,
                (long long)tensor->extent[d]);
        *extent = tensor->extent[d];
    }
    return true;
}

/* Of an empty piece only the other tensors tell which factors are not empty. */
static void local_empty_tensor(LocalOp *local, Tensor *tensor)
{
    for (int d = 0; tensor->empty && d < tensor->bound->rank; d++) {
        int64_t *extent = tensor->bound->dims[d].count ? &local->extent[tensor->bound->dims[d].factors[0]] : NULL;
        if (extent)
            *extent = *extent < 0 ? 0 : *extent;
        tensor->extent[d] = extent ? *extent : tensor->value->type.extent[d];
    }
}

static uint32_t bound_factors(const BoundAccess *bound)
{
    uint32_t set = 0;
    for (int d = 0; d < bound->rank; d++)
        for (int f = 0; f < bound->dims[d].count; f++)
            set |= 1u << bound->dims[d].factors[f];
    return set;
}

static bool local_tensors(LocalOp *local, Target *target)
{
    const Op *op = local->op;
    const Binding *binding = op->binding;
    bool ok = true;
    for (int k = 0; k < op->result_count; k++)
        ok = local_tensor(local, target, &local->results[k], op->results[k], &binding->results[k],
                          &local->rule->results[binding->results[k].access], -1) &&
             ok;
    int number = 0;
    for (int k = 0; k < op->operand_count; k++) {
        const Access *access = &local->rule->operands[binding->operands[k].access];
        number = access->variadic ? number : -1;
        ok = local_tensor(local, target, &local->operands[k], op->operands[k], &binding->operands[k], access,
                          access->variadic ? number : -1) &&
             ok;
        number++;
    }
    for (int k = 0; k < op->result_count; k++)
        local_empty_tensor(local, &local->results[k]);
    for (int k = 0; k < op->operand_count; k++)
        local_empty_tensor(local, &local->operands[k]);
    return ok;
}

/* The operands that an expression reads, as a set of indices into the call's operands; *absent is set when it reads one that is absent. */
static uint64_t expr_operands(const LocalOp *local, const Expr *expr, bool *absent)
{
    uint64_t set = 0;
    if (expr->kind == EXPR_ACCESS) {
        int k = operand_of(local, expr->index);
        *absent = *absent || k < 0;
        return k < 0 ? 0 : UINT64_C(1) << k;
    }
    for (int a = 0; a < expr->arg_count; a++)
        set |= expr_operands(local, expr->arg[a], absent);
    return set;
}

/* How many terms `expr` adds up at most. */
static int term_most(const Expr *expr)
{
    if (expr->kind == EXPR_ADD || expr->kind == EXPR_SUB)
        return term_most(expr->arg[0]) + term_most(expr->arg[1]);
    return expr->kind == EXPR_NEG ? term_most(expr->arg[0]) : 1;
}

/* Whether an expression divides by the extent of a contracted factor that has none in the whole tensor: a mean of nothing. */
static bool is_mean_of_nothing(const LocalOp *local, const Expr *expr)
{
    const Binding *binding = local->op->binding;
    for (int f = 0; f < binding->factor_count && expr->kind == EXPR_DIV; f++)
        if (local->contracted >> f & 1 && !binding->factors[f].extent && expr_mentions(expr->arg[1], EXPR_SIZE, binding->factors[f].factor))
            return true;
    for (int a = 0; a < expr->arg_count; a++)
        if (is_mean_of_nothing(local, expr->arg[a]))
            return true;
    return false;
}

/* Collects the terms that `expr` adds up; those that read an absent operand are left out. */
static void collect_terms(LocalOp *local, const Expr *expr, bool minus)
{
    if (expr->kind == EXPR_ADD || expr->kind == EXPR_SUB) {
        collect_terms(local, expr->arg[0], minus);
        collect_terms(local, expr->arg[1], minus != (expr->kind == EXPR_SUB));
        return;
    }
    if (expr->kind == EXPR_NEG) {
        collect_terms(local, expr->arg[0], !minus);
        return;
    }
    bool absent = false;
    uint64_t operands = expr_operands(local, expr, &absent);
    if (absent)
        return;
    Term *term = &local->terms[local->term_count++];
    *term = (Term){.expr = expr, .minus = minus};
    for (int k = 0; k < local->operand_count; k++)
        if (operands >> k & 1)
            term->contracted |= bound_factors(&local->op->binding->operands[k]) & local->contracted;
    if (is_mean_of_nothing(local, expr))
        *term = (Term){.expr = expr_number(local->module->arena, NAN, "NAN"), .minus = minus};
}

/* ---- which devices add a term ---- */

static void region_key(Text *key, const Region *region)
{
    text_append(key, (const char *)&region->box_count, sizeof region->box_count);
    for (int i = 0; i < region->box_count; i++)
        text_append(key, (const char *)region->boxes[i].dim, sizeof(Range) * (size_t)region->rank);
}

/* What devices have in common that would add the same contribution of a term to the same piece of the result, as bytes. */
static Text contribution_key(Arena *arena, const LocalOp *local, uint64_t operands, int device)
{
    Text key = {.arena = arena};
    const Region *mine = value_region(local->module, local->results[0].value, device);
    text_append(&key, (const char *)(int[]){mine->member, mine->replica}, 2 * sizeof(int));
    region_key(&key, mine);
    for (int k = 0; k < local->operand_count; k++) {
        if (!(operands >> k & 1))
            continue;
        const Region *region = value_region(local->module, local->operands[k].value, device);
        text_append(&key, (const char *)(int[]){region->member, region->partial}, 2 * sizeof(int));
        region_key(&key, region);
    }
    return key;
}

/* By device of the roles, whether it adds a term to the partial result: of those whose contributions to the same piece would be the same,
 * the one with the lowest partial id does. */
static const bool *devices_adding(Arena *arena, const LocalOp *local, uint64_t operands)
{
    const Roles *roles = local->module->roles;
    bool *adding = arena_array(arena, bool, roles->device_count);
    Arena *scratch = arena_create();
    Intern *lowest = intern_create(scratch);
    Text *keys = arena_array(scratch, Text, roles->device_count);
    for (int i = 0; i < roles->device_count; i++) {
        keys[i] = contribution_key(scratch, local, operands, roles->devices[i]);
        const Region **slot = intern_slot(lowest, text_bytes(&keys[i]), keys[i].length);
        const Region *mine = value_region(local->module, local->results[0].value, roles->devices[i]);
        if (!*slot || mine->partial < (*slot)->partial)
            *slot = mine;
    }
    for (int i = 0; i < roles->device_count; i++) {
        const Region **slot = intern_slot(lowest, text_bytes(&keys[i]), keys[i].length);
        adding[i] = value_region(local->module, local->results[0].value, roles->devices[i])->partial == (*slot)->partial;
    }
    arena_destroy(scratch);
    return adding;
}

static const bool *term_added(Target *target, const LocalOp *local, const Term *term)
{
    Emitter *emitter = target->emitter;
    bool absent = false;
    uint64_t operands = expr_operands(local, term->expr, &absent);
    Text key = {.arena = emitter->arena};
    text_print(&key, "%p %d", (const void *)local->results[0].value->layout, local->results[0].value->type.rank);
    for (int d = 0; d < local->results[0].value->type.rank; d++)
        text_print(&key, ",%lld", (long long)local->results[0].value->type.extent[d]);
    for (int k = 0; k < local->operand_count; k++)
        if (operands >> k & 1) {
            text_print(&key, " %p", (const void *)local->operands[k].value->layout);
            for (int d = 0; d < local->operands[k].value->type.rank; d++)
                text_print(&key, ",%lld", (long long)local->operands[k].value->type.extent[d]);
        }
    const bool **slot = intern_slot(target->flags, text_bytes(&key), key.length);
    if (!*slot)
        *slot = devices_adding(emitter->arena, local, operands);
    return *slot;
}

static int device_index(const Roles *roles, int device)
{
    for (int i = 0; i < roles->device_count; i++)
        if (roles->devices[i] == device)
            return i;
    BUG("device %d is not in the strategy", device);
}

/* Marks the terms that some device of the role leaves out. */
static void flag_terms(LocalOp *local, Target *target)
{
    if (layout_partial(local->results[0].value->layout) != STATE_SUM)
        return;
    for (int t = 0; t < local->term_count; t++) {
        const bool *added = term_added(target, local, &local->terms[t]);
        for (int i = 0; i < target->role->device_count; i++)
            if (!added[device_index(target->module->roles, target->role->devices[i])])
                local->terms[t].flagged = true;
    }
}

/* The expression of which a rule adds up the terms: a body, or the product in front of an epilogue. */
static const Expr *summed_body(const Rule *rule)
{
    return rule->kind == RULE_BODY ? rule->body : rule->kind == RULE_EQUATIONS && rule->epilogue ? rule->equations[0].expr : NULL;
}

bool local_op(LocalOp *local, Target *target, const Op *op)
{
    memset(local, 0, sizeof *local);
    local->module = target->module;
    local->backend = target->emitter->backend;
    local->op = op;
    local->device = target->role->devices[0];
    local->rule = op->def->rule;
    local->result_count = op->result_count;
    local->operand_count = op->operand_count;
    local->factor_count = op->binding->factor_count;
    if (op->operand_count > EMIT_MAX_TENSORS || op->result_count > IR_MAX_RESULTS || local->factor_count > EMIT_MAX_FACTORS)
        BUG("%s: too many operands, results or factors", op->def->name);
    for (int f = 0; f < local->factor_count; f++)
        local->extent[f] = -1;
    if (!local_tensors(local, target))
        return false;
    uint32_t kept = 0;
    for (int k = 0; k < op->result_count; k++)
        kept |= bound_factors(&op->binding->results[k]);
    for (int f = 0; f < local->factor_count; f++) {
        local->extent[f] = local->extent[f] < 0 ? 1 : local->extent[f];
        local->contracted |= kept >> f & 1 ? 0 : 1u << f;
    }
    const Expr *body = summed_body(local->rule);
    if (body) {
        local->terms = arena_array(target->emitter->arena, Term, term_most(body));
        collect_terms(local, body, false);
        flag_terms(local, target);
    }
    return true;
}

bool local_nothing(const LocalOp *local)
{
    for (int k = 0; k < local->result_count; k++)
        if (tensor_count(&local->results[k]))
            return false;
    return true;
}

/* Whether a factor is one member's of a variadic operand: a member without elements leaves the others. */
static bool is_of_member(const LocalOp *local, int factor)
{
    int rule_factor = local->op->binding->factors[factor].factor;
    if (!local->rule->factors[rule_factor].contracted)
        return false;
    for (int k = 0; k < local->rule->operand_count; k++)
        if (local->rule->operands[k].variadic && access_has(&local->rule->operands[k], rule_factor))
            return true;
    return false;
}

bool local_empty(const LocalOp *local)
{
    for (int f = 0; f < local->factor_count; f++)
        if (!local->extent[f] && !is_of_member(local, f))
            return true;
    return false;
}

/* ---- numbers that differ between the devices of a role ---- */

static const Factor *rule_factor(const LocalOp *local, int bound)
{
    return &local->rule->factors[local->op->binding->factors[bound].factor];
}

bool written_has_offset(const LocalOp *local, const Tensor *tensor, int written)
{
    for (int d = 0; tensor->value && d < tensor->bound->rank; d++)
        if (tensor->bound->dims[d].written == written && tensor->bound->dims[d].count &&
            rule_factor(local, tensor->bound->dims[d].factors[0])->offset)
            return true;
    return false;
}

/* Where the piece of `device` starts in a dimension of a kernel's view. */
static int64_t written_offset(const LocalOp *local, const Tensor *tensor, int written, int device)
{
    const Region *region = value_region(local->module, tensor->value, device);
    int64_t offset = 0;
    for (int d = 0; d < tensor->bound->rank; d++)
        if (tensor->bound->dims[d].written == written)
            offset = offset * tensor->value->type.extent[d] + (region->box_count ? region->boxes[0].dim[d].lo : 0);
    return offset;
}

static int tensor_offsets(const LocalOp *local, const Tensor *tensor, int device, int64_t *numbers)
{
    int count = 0;
    for (int w = 0; tensor->value && w < tensor->bound->written_rank; w++)
        if (written_has_offset(local, tensor, w))
            numbers[count++] = written_offset(local, tensor, w, device);
    return count;
}

int local_pieces(const LocalOp *local, Target *target, int device, int64_t *numbers)
{
    int count = 0;
    for (int t = 0; t < local->term_count; t++)
        if (local->terms[t].flagged)
            numbers[count++] = term_added(target, local, &local->terms[t])[device_index(target->module->roles, device)];
    if (local->rule->kind != RULE_CALL)
        return count;
    for (int k = 0; k < local->result_count; k++)
        count += tensor_offsets(local, &local->results[k], device, numbers + count);
    for (int k = 0; k < local->operand_count; k++)
        count += tensor_offsets(local, &local->operands[k], device, numbers + count);
    return count;
}

enum { MOST_PIECES = (EMIT_MAX_TENSORS + 8) * IR_MAX_RANK };

int piece_column(Target *target, const LocalOp *local)
{
    Arena *arena = target->emitter->arena;
    PieceTable *table = &target->pieces;
    int64_t numbers[MOST_PIECES];
    Text *key = &target->emitter->key;
    key->length = 0;
    int count = 0;
    for (int i = 0; i < table->device_count; i++) {
        count = local_pieces(local, target, target->role->devices[i], numbers);
        text_append(key, (const char *)numbers, sizeof *numbers * (size_t)count);
    }
    if (!count)
        return -1;
    intptr_t *slot = intern_slot(table->known, key->bytes, key->length);
    if (*slot)
        return (int)*slot - 1;
    *slot = table->width + 1;
    table->width += count;
    for (int i = 0; i < table->device_count; i++) {
        local_pieces(local, target, target->role->devices[i], numbers);
        for (int c = 0; c < count; c++)
            array_push(arena, &table->rows[i], numbers[c]);
    }
    return table->width - count;
}
