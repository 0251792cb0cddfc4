/* Groups of operators: their index spaces, and the conditions under which two groups become one. */
#include "ir/analysis/phases.h"
#include "passes/fuse/fuse.h"

#include "rule/equations.h"

#include <string.h>

/* Limits of a group: the number of operators from its first to its last member (so that values are
 * not kept for long), and the number of its tensors. */
enum { SPAN = 24, MOST_TENSORS = 24 };

/* Returns whether an operator is a member. */
static bool group_has(const FuseGroup *group, const Op *op) {
    for (int i = 0; i < group->members.count; i++)
        if (group->members.at[i].op == op) return true;
    return false;
}

bool group_gives(const Fuse *fuse, const FuseGroup *group, const Value *value) {
    const Users *users = &fuse->users[value->id];
    if (fuse->wanted[value->id]) return true;
    for (int i = 0; i < users->count; i++)
        if (!group_has(group, users->at[i])) return true;
    return false;
}

/* ---- single operators ---- */

static bool is_number(const Value *value) {
    return value->type.dtype == DTYPE_F32 || value->type.dtype == DTYPE_BF16;
}

/* Returns whether every dimension is one factor. */
static bool is_plain(const BoundAccess *access) {
    for (int d = 0; d < access->rank; d++)
        if (access->dims[d].count != 1) return false;
    return true;
}

bool value_is_complete(const Value *value, const BoundAccess *access) {
    return is_plain(access) && value->layout && layout_partial(value->layout) == STATE_DUP;
}

static bool tensors_fit(const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && (op->operands[k]->type.dtype == DTYPE_F64 ||
                                !value_is_complete(op->operands[k], &op->binding->operands[k])))
            return false;
    for (int r = 0; r < op->result_count; r++)
        if (!is_number(op->results[r]) ||
            !value_is_complete(op->results[r], &op->binding->results[r]))
            return false;
    return true;
}

/* Returns whether the operator is elementwise: no factor is contracted. */
static bool is_elementwise(const Op *op) {
    return op->def->rule->kind == RULE_BODY &&
           op->binding->results[0].rank == op->binding->factor_count;
}

static bool may_fuse(const Module *module, const Op *op) {
    if (op->def == module->builtin->reshard || op_gathers(module, op) ||
        op->def == module->builtin->local_part || op->def == module->builtin->stage_union ||
        op->def == module->optimizer->op || op->run_in_place)
        return false;
    return (is_elementwise(op) || op->def->rule->equations.count) && tensors_fit(op);
}

/* Returns the bound factors along rows; bit f: bound factor f. */
static uint32_t inner_factors(Fuse *fuse, const Op *op) {
    if (!op->def->rule->equations.count) return 0;
    EquationPlan plan = equations_plan(fuse->arena, op->def->rule);
    uint32_t inner = 0;
    for (int f = 0; f < op->binding->factor_count; f++)
        if (plan.inner[op->binding->factors[f].factor]) inner |= UINT32_C(1) << f;
    return inner;
}

FuseGroup *group_of_op(Fuse *fuse, Op *op) {
    if (!may_fuse(fuse->module, op)) return NULL;
    int count = op->binding->factor_count, *loop = arena_array(fuse->arena, int, count + 1);
    int64_t *extent = arena_array(fuse->arena, int64_t, count + 1);
    FuseGroup *group = arena_new(fuse->arena, FuseGroup);
    for (int f = 0; f < count; f++) {
        loop[f] = f;
        extent[f] = op->binding->factors[f].extent;
    }
    *group = (FuseGroup){.rank = count, .extent = extent, .inner = inner_factors(fuse, op)};
    group->rows = op->def->rule->equations.count && group->inner;
    array_push(fuse->arena, &group->members, (Member){op, loop});
    return group;
}

/* ---- one index space ---- */

/* Writes the loop of each dimension of an access to loops[]. */
static void access_loops(const Member *member, const BoundAccess *access, int *loops) {
    for (int d = 0; d < access->rank; d++) loops[d] = member->loop[access->dims[d].factors[0]];
}

/* Writes the loop of each dimension of a value to loops[]. Returns false unless a member reads or
 * makes the value, and the value has as many dimensions as the group has loops. */
static bool value_loops(const FuseGroup *group, const Value *value, int *loops) {
    if (value->type.rank != group->rank) return false;
    for (int i = 0; i < group->members.count; i++) {
        const Member *member = &group->members.at[i];
        const Op *op = member->op;
        for (int k = 0; k < op->operand_count + op->result_count; k++) {
            const Value *own =
                k < op->operand_count ? op->operands[k] : op->results[k - op->operand_count];
            if (own != value) continue;
            access_loops(member,
                         k < op->operand_count ? &op->binding->operands[k]
                                               : &op->binding->results[k - op->operand_count],
                         loops);
            return true;
        }
    }
    return false;
}

/* Returns a member with the loops of another group; `to` maps old loops to new ones. */
static Member moved(Fuse *fuse, const Member *member, const int *to) {
    int count = member->op->binding->factor_count, *loop = arena_array(fuse->arena, int, count + 1);
    for (int f = 0; f < count; f++) loop[f] = to[member->loop[f]];
    return (Member){member->op, loop};
}

/* Merges the members of two groups in the order of the module. */
static void merge_members(Fuse *fuse, FuseGroup *joined, const FuseGroup *a, const FuseGroup *b,
                          const int *to) {
    for (int i = 0, k = 0; i < a->members.count || k < b->members.count;) {
        bool first =
            k == b->members.count ||
            (i < a->members.count && a->members.at[i].op->index < b->members.at[k].op->index);
        Member member = first ? a->members.at[i++] : moved(fuse, &b->members.at[k++], to);
        array_push(fuse->arena, &joined->members, member);
    }
}

/* Joins two groups to one index space with the same loops for `value`; NULL: spaces differ. */
static FuseGroup *aligned(Fuse *fuse, const FuseGroup *a, const FuseGroup *b, const Value *value) {
    int in_a[IR_MAX_FACTORS], in_b[IR_MAX_FACTORS], to[IR_MAX_FACTORS];
    if (a->rank != b->rank || !value_loops(a, value, in_a) || !value_loops(b, value, in_b))
        return NULL;
    uint32_t inner = 0;
    for (int d = 0; d < a->rank; d++) {
        to[in_b[d]] = in_a[d];
        inner |= b->inner >> in_b[d] & 1 ? UINT32_C(1) << in_a[d] : 0;
    }
    if (a->rows && b->rows && a->inner != inner) return NULL;
    FuseGroup *joined = arena_new(fuse->arena, FuseGroup);
    *joined = (FuseGroup){.rank = a->rank,
                          .extent = a->extent,
                          .rows = a->rows || b->rows,
                          .inner = a->rows ? a->inner : inner};
    merge_members(fuse, joined, a, b, to);
    return joined;
}

/* ---- conditions for fusion ---- */

static const Member *maker_of(const FuseGroup *group, const Value *value) {
    for (int i = 0; value->def && i < group->members.count; i++)
        if (group->members.at[i].op == value->def) return &group->members.at[i];
    return NULL;
}

/* Returns whether members read the group's values at the indices at which they are computed. */
static bool reads_in_place(const FuseGroup *group) {
    int made[IR_MAX_FACTORS], read[IR_MAX_FACTORS];
    for (int i = 0; i < group->members.count; i++) {
        const Member *member = &group->members.at[i];
        for (int k = 0; k < member->op->operand_count; k++) {
            const Value *value = member->op->operands[k];
            const Member *maker = value ? maker_of(group, value) : NULL;
            if (!maker) continue;
            access_loops(maker, &maker->op->binding->results[value->index], made);
            access_loops(member, &member->op->binding->operands[k], read);
            if (memcmp(made, read, sizeof *made * (size_t)value->type.rank)) return false;
        }
    }
    return true;
}

static bool is_small(const Fuse *fuse, const FuseGroup *group) {
    int tensors = 0, results = 0;
    for (int i = 0; i < group->members.count; i++) {
        const Op *op = group->members.at[i].op;
        for (int k = 0; k < op->operand_count; k++)
            tensors += op->operands[k] && !maker_of(group, op->operands[k]);
        for (int r = 0; r < op->result_count; r++)
            results += group_gives(fuse, group, op->results[r]);
    }
    int first = group->members.at[0].op->index,
        last = group->members.at[group->members.count - 1].op->index;
    return fuse->place[last] - fuse->place[first] <= SPAN && results <= IR_MAX_RESULTS &&
           results + tensors <= MOST_TENSORS;
}

/* Returns whether all members run on the same stage, in the same visit, phase and chunk. */
static bool same_time(const FuseGroup *group) {
    const Op *first = group->members.at[0].op;
    for (int i = 1; i < group->members.count; i++) {
        const Op *op = group->members.at[i].op;
        if (op->section != first->section || op->loop != first->loop || op->stage != first->stage ||
            op->visit != first->visit || op->is_wgrad != first->is_wgrad ||
            op->source->chunk != first->source->chunk)
            return false;
    }
    return true;
}

static bool leads_back(Fuse *fuse, const FuseGroup *group, const Op *from, int end);

/* Returns whether a path through an operator outside the group, or through other members of that
 * operator's group, leads back to a member. Operators after `end` lead to no member. */
static bool goes_back(Fuse *fuse, const FuseGroup *group, const Op *op, int end) {
    const FuseGroup *own = fuse->group[op->index];
    if (fuse->place[op->index] > end || fuse->visited[op->index] == fuse->walk) return false;
    for (int m = 0; own && m < own->members.count; m++)
        fuse->visited[own->members.at[m].op->index] = fuse->walk;
    fuse->visited[op->index] = fuse->walk;
    for (int m = 0; own && m < own->members.count; m++)
        if (leads_back(fuse, group, own->members.at[m].op, end)) return true;
    return !own && leads_back(fuse, group, op, end);
}

/* Returns whether a path from the operator's results leaves the group and returns to a member. */
static bool leads_back(Fuse *fuse, const FuseGroup *group, const Op *from, int end) {
    bool outside = !group_has(group, from);
    for (int r = 0; r < from->result_count; r++) {
        const Users *users = &fuse->users[from->results[r]->id];
        for (int i = 0; i < users->count; i++)
            if (group_has(group, users->at[i]) ? outside
                                               : goes_back(fuse, group, users->at[i], end))
                return true;
    }
    return false;
}

/* Returns whether an operator outside the group would have to run between its members. */
static bool is_interrupted(Fuse *fuse, const FuseGroup *group) {
    int end = fuse->place[group->members.at[group->members.count - 1].op->index] + SPAN;
    fuse->walk++;
    for (int i = 0; i < group->members.count; i++)
        if (leads_back(fuse, group, group->members.at[i].op, end)) return true;
    return false;
}

bool group_is_sound(Fuse *fuse, const FuseGroup *group) {
    return same_time(group) && reads_in_place(group) && is_small(fuse, group) &&
           !is_interrupted(fuse, group);
}

FuseGroup *groups_joined(Fuse *fuse, const FuseGroup *a, const FuseGroup *b, const Value *value) {
    FuseGroup *joined = aligned(fuse, a, b, value);
    return joined && group_is_sound(fuse, joined) ? joined : NULL;
}
