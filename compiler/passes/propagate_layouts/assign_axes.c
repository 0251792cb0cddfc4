/* Decides for each operator which mesh axis cuts which dimension: split rules first, then layouts
 * of the source (user_constraints.c), then the price (price.c). ulysses_or_ring.c chooses ring or
 * Ulysses. */
#include "passes/propagate_layouts/assign_axes.h"
#include "ir/analysis/phases.h"

#include <string.h>

/* ---- prices ---- */

/* Returns whether an operator passes a value between visits of a stage (passes/stage). */
static bool hands(const Assigner *assigner, const Op *op) {
    return op->def == assigner->module->builtin->reshard && op->stage != STAGE_ALL &&
           op->loop == LOOP_EACH && !op->results[0]->layout;
}

/* Returns whether `maker` runs on the stage and in the phase of `reader`, in an earlier visit. */
static bool runs_before(const Assigner *assigner, const Op *maker, const Op *reader) {
    bool forward = op_phase(assigner->module, reader) == PHASE_FORWARD;
    return maker->stage == reader->stage &&
           op_phase(assigner->module, maker) == op_phase(assigner->module, reader) &&
           (forward ? maker->visit < reader->visit : maker->visit > reader->visit);
}

bool version_reaches(const Assigner *assigner, const Version *version) {
    const Op *maker = version->value->def, *reader = assigner->reader;
    if (maker && hands(assigner, reader)) return runs_before(assigner, maker, reader);
    return !maker || maker->stage != reader->stage || op_may_read(assigner->module, maker, reader);
}

const Version *newest_version(const Assigner *assigner, const Version *versions) {
    for (const Version *version = versions; version; version = version->next)
        if (version_reaches(assigner, version)) return version;
    return versions;
}

const Version *cheapest_version(const Assigner *assigner, const Version *versions,
                                const Sharding *to, double *price) {
    const Version *newest = newest_version(assigner, versions), *best = NULL;
    bool some_reach = newest && version_reaches(assigner, newest);
    for (const Version *version = newest; version; version = version->next) {
        if (some_reach && !version_reaches(assigner, version)) continue;
        bool known = VERSION_KNOWN(assigner, version);
        double own = known && sharding_equal(assigner->mesh, &version->sharding, to) ? -1
                     : known ? price_conversion(assigner, version->value, &version->sharding, to)
                             : price_crossing(assigner, version->value, to);
        if (!best || own < *price) {
            best = version;
            *price = own;
        }
    }
    if (best && *price < 0) *price = 0;
    return best;
}

/* ---- shardings of an assignment ---- */

/* Returns the factor that an axis cuts in a tensor, ASSIGN_NONE, or a number up to ASSIGN_PASS (see
 * Assignment). */
static int axis_factor(const Assignment *assignment, const BoundAccess *access, int axis) {
    bool turned =
        assignment->ring_axes >> axis & 1 && factor_dim(access, assignment->ring_factor) >= 0;
    return turned ? assignment->ring_factor : assignment->factor[axis];
}

static void cut_access(const Mesh *mesh, const Assignment *assignment, const BoundAccess *access,
                       Sharding *sharding) {
    for (int i = 0; i < assignment->order_count; i++) {
        int a = assignment->order[i], d = factor_dim(access, axis_factor(assignment, access, a));
        if (d >= 0) sharding_cut(mesh, sharding, a, d, assignment->zigzag[a]);
    }
}

/* The kind of an operand along an axis, for passing partial sums through an operator: a partial
 * sum; a scalar, which one device could keep while all other devices use 0; or neither. */
typedef enum Share { SHARE_NO, SHARE_SCALAR, SHARE_SUM } Share;

static Share share_of(const Assigner *assigner, const Op *op, Version *const *versions, int k,
                      int axis) {
    if (!VERSION_KNOWN(assigner, versions[k])) return SHARE_NO;
    if (versions[k]->sharding.at[axis] == AXIS_SUM) return SHARE_SUM;
    return op->operands[k]->type.rank == 0 && versions[k]->sharding.at[axis] == AXIS_DUP
               ? SHARE_SCALAR
               : SHARE_NO;
}

/* Returns a group of operands in which the rule is linear (rule_linear), and which are partial sums
 * along the axis, or scalars, with at least one partial sum. 0: there is none. */
static int partial_group(const Assigner *assigner, const Op *op, Version *const *versions,
                         int axis) {
    int group[64] = {0};
    if (op->def->rule->kind == RULE_VIEW) group[0] = 1;
    else if (op->def->rule->operand_count <= 64) rule_linear(op->def->rule, group);
    for (int g = 1; g <= 64; g++) {
        int members = 0, sums = 0, scalars = 0;
        for (int k = 0; k < op->operand_count; k++)
            if (op->operands[k] && group[op->binding->operands[k].access] == g) {
                Share own = share_of(assigner, op, versions, k, axis);
                members++;
                sums += own == SHARE_SUM;
                scalars += own == SHARE_SCALAR;
            }
        if (sums && members == sums + scalars) return g;
    }
    return 0;
}

static bool in_group(const Op *op, int k, int wanted) {
    int group[64] = {0};
    if (op->def->rule->kind == RULE_VIEW) return wanted == 1;
    rule_linear(op->def->rule, group);
    return group[op->binding->operands[k].access] == wanted;
}

Sharding assignment_operand(const Mesh *mesh, const Op *op, const Assignment *assignment, int k) {
    Sharding sharding = sharding_whole();
    cut_access(mesh, assignment, &op->binding->operands[k], &sharding);
    for (int a = 0; a < mesh->axis_count; a++)
        if (assignment->factor[a] <= ASSIGN_PASS &&
            in_group(op, k, ASSIGN_PASS + 1 - assignment->factor[a]))
            sharding.at[a] = AXIS_SUM;
    return sharding;
}

Sharding assignment_result(const Mesh *mesh, const Op *op, const Assignment *assignment, int k) {
    Sharding sharding = sharding_whole();
    const BoundAccess *access = &op->binding->results[k];
    cut_access(mesh, assignment, access, &sharding);
    for (int a = 0; a < mesh->axis_count; a++) {
        int f = axis_factor(assignment, access, a);
        if (f <= ASSIGN_PASS) sharding.at[a] = AXIS_SUM;
        else if (f >= 0 && factor_dim(access, f) < 0)
            sharding.at[a] =
                op->def->rule->factors[op->binding->factors[f].factor].reduction == REDUCE_MAX
                    ? AXIS_MAX
                    : AXIS_SUM;
    }
    return sharding;
}

/* The use of an axis: the factor as in an Assignment, and whether it cuts in a zigzag. */
typedef struct Use {
    int factor;
    bool zigzag;
} Use;

static void put(Assignment *assignment, int axis, Use use) {
    assignment->factor[axis] = use.factor;
    assignment->zigzag[axis] = use.zigzag;
    if (use.factor >= 0) assignment->order[assignment->order_count++] = axis;
}

static void take_back(Assignment *assignment, int axis) {
    if (assignment->factor[axis] >= 0) assignment->order_count--;
    assignment->factor[axis] = ASSIGN_NONE;
}

/* Returns the sharding to which result k is converted next: the sharding of the parameter's states
 * for a gradient, otherwise `made` without partial sums. */
static Sharding next_sharding(const Assigner *assigner, const Op *op, int k, Sharding made) {
    const Sharding *gradient = assigner->gradient[op->results[k]->id];
    return gradient ? *gradient : sharding_complete(made);
}

/* Returns the price of an assignment: conversions, later reductions of results, and computing. */
static double price_of(const Assigner *assigner, const Op *op, Version *const *versions,
                       const Assignment *assignment) {
    const Mesh *mesh = assigner->mesh;
    // computing
    double total = price_computing(assigner, op, assignment);
    // conversions of operands, from their cheapest versions
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k]) {
            Sharding need = assignment_operand(mesh, op, assignment, k);
            double price = 0;
            cheapest_version(assigner, versions[k], &need, &price);
            total += price;
        }
    // reductions of results
    for (int k = 0; k < op->result_count; k++) {
        Sharding made = assignment_result(mesh, op, assignment, k),
                 next = next_sharding(assigner, op, k, made);
        total += price_conversion(assigner, op->results[k], &made, &next);
    }
    return total;
}

/* ---- selection of cuts ---- */

/* Returns whether some operand has a version in which the axis has this use. */
static bool already_cut(const Assigner *assigner, const Op *op, Version *const *versions, int axis,
                        Use use) {
    for (int k = 0; k < op->operand_count; k++)
        for (const Version *version = versions[k]; op->operands[k] && version;
             version = version->next)
            if (VERSION_KNOWN(assigner, version) && version->sharding.at[axis] >= 0 &&
                version->sharding.zigzag[axis] == use.zigzag &&
                factor_dim(&op->binding->operands[k], use.factor) == version->sharding.at[axis])
                return true;
    return false;
}

/* If two split rules give an axis to factors that all tensors of the operator have, takes the
 * factor that already cuts an operand. */
static void follow_operands(Assigner *assigner, const Op *op, Version *const *versions,
                            NamedCut *cut) {
    Use now = {cut->factor, cut->zigzag};
    int rule, other = factor_in_all(op, cut->factor)
                          ? factor_beside(assigner->mesh, op, cut, 0, &rule)
                          : -1;
    if (other < 0 || already_cut(assigner, op, versions, cut->axis, now) ||
        !already_cut(assigner, op, versions, cut->axis, (Use){other, cut->zigzag}))
        return;
    cut->factor = other;
    assigner->rules[rule].used = true;
}

const UserConstraint *constraint_operand(const Assigner *assigner, const Op *op, int k) {
    const UserConstraint *held =
        op->operands[k] ? assigner->constraints[op->operands[k]->id] : NULL;
    return held && held->mesh == assigner->mesh ? held : NULL;
}

/* Returns the factor of an operand that an axis cuts by constraint; ASSIGN_NONE: it cuts none. */
static int constraint_factor(const Op *op, int k, const UserConstraint *held, int axis) {
    int d = held->sharding.at[axis];
    for (int f = 0; d >= 0 && f < op->binding->factor_count; f++)
        if (factor_dim(&op->binding->operands[k], f) == d) return f;
    return ASSIGN_NONE;
}

/* Returns whether the layout that the source gives operand k takes precedence over a split rule.
 * The operand must have the rule's dimension. Or the operator must be a batched matrix product
 * whose batch the layout cuts, and some tensor must lack the rule's dimension. */
static bool goes_before(const Op *op, int k, int held, const NamedCut *cut) {
    bool travels = factor_dim(&op->binding->operands[k], cut->factor) >= 0;
    return travels || (held >= 0 && factor_numbers(op, held) && !factor_in_all(op, cut->factor));
}

/* Returns an operand whose layout from the source decides about an axis instead of a split rule;
 * -1: none. `gradient`: looks only at constraints of gradients, else only at all others. */
static int holding_operand(const Assigner *assigner, const Op *op, const NamedCut *cut,
                           bool gradient) {
    for (int k = 0; k < op->operand_count; k++) {
        const UserConstraint *held = constraint_operand(assigner, op, k);
        int factor = held ? constraint_factor(op, k, held, cut->axis) : ASSIGN_NONE;
        if (held && held->gradient == gradient && held->axes >> cut->axis & 1 &&
            goes_before(op, k, factor, cut))
            return k;
    }
    return -1;
}

/* Replaces the cut of a split rule by the cut that a layout in the source gives, if there is one.
 * Returns false if that layout has copies along the axis. */
static bool follow_held(const Assigner *assigner, const Op *op, NamedCut *cut) {
    int k = holding_operand(assigner, op, cut, false);
    k = k < 0 ? holding_operand(assigner, op, cut, true) : k;
    if (k < 0) return true;
    const UserConstraint *held = constraint_operand(assigner, op, k);
    int factor = constraint_factor(op, k, held, cut->axis);
    if (factor < 0) return held->sharding.at[cut->axis] != AXIS_DUP;
    if (factor_may_cut(op, factor))
        *cut = (NamedCut){cut->axis, factor, held->sharding.zigzag[cut->axis]};
    return true;
}

/* Assigns the axes that split rules give to factors of this operator. */
static void assign_named(Assigner *assigner, const Op *op, Version *const *versions,
                         Assignment *assignment) {
    NamedCut cuts[MESH_MOST];
    int count = factors_named(assigner->mesh, op, assigner->rules, cuts);
    for (int i = 0; i < count; i++) follow_operands(assigner, op, versions, &cuts[i]);
    for (int i = 0; i < count; i++)
        if (follow_held(assigner, op, &cuts[i]) &&
            !(op_unwanted(assigner->consumers, op) >> cuts[i].axis & 1))
            put(assignment, cuts[i].axis, (Use){cuts[i].factor, cuts[i].zigzag});
}

/* The possible uses of a free axis in one operator. */
typedef struct Candidates {
    int axis, count;
    Use *use; // the first is ASSIGN_NONE
} Candidates;

enum { MOST_TOGETHER = 4096 }; // limit of assignments that are compared at once

/* Search for the cheapest assignment of free axes; the other axes are fixed. */
typedef struct Search {
    const Assigner *assigner;
    const Op *op;
    Version *const *versions;
    Candidates free[MESH_MOST]; // for each free axis
    Assignment at, best;
    double least; // price of `best`; negative: none yet
} Search;

static Candidates candidates_of(const Search *search, int axis) {
    const Op *op = search->op;
    int group = partial_group(search->assigner, op, search->versions, axis);
    Candidates candidates = {
        .axis = axis,
        .use = arena_array(search->assigner->arena, Use, 2 * op->binding->factor_count + 2)};
    // leave the operator whole along the axis, or pass partial sums through it
    candidates.use[candidates.count++] = (Use){ASSIGN_NONE, false};
    if (group) candidates.use[candidates.count++] = (Use){ASSIGN_PASS + 1 - group, false};
    // keep a cut of an operand
    for (int i = 0; i < 2 * op->binding->factor_count; i++) {
        Use use = {i / 2, i % 2};
        if (factor_may_cut(op, use.factor) &&
            already_cut(search->assigner, op, search->versions, axis, use))
            candidates.use[candidates.count++] = use;
    }
    return candidates;
}

static int count_passes(const Mesh *mesh, const Assignment *assignment) {
    int count = 0;
    for (int a = 0; a < mesh->axis_count; a++) count += assignment->factor[a] <= ASSIGN_PASS;
    return count;
}

/* Returns whether `at` passes on more partial sums than `best`, which has the same price. True only
 * if partial sums of the result are later reduced together. */
static bool passes_more(const Search *search) {
    const Value *result = search->op->results[0];
    return (result->type.rank == 0 || result->micro.kind == MICRO_SUM) &&
           count_passes(search->assigner->mesh, &search->at) >
               count_passes(search->assigner->mesh, &search->best);
}

static void compare_assignment(Search *search) {
    const double rounding = 1e-12;
    double price = price_of(search->assigner, search->op, search->versions, &search->at),
           margin = rounding * search->least;
    bool equal =
        search->least >= 0 && price <= search->least + margin && price >= search->least - margin;
    if (search->least >= 0 && (equal ? !passes_more(search) : price > search->least)) return;
    search->least = price;
    search->best = search->at;
}

/* Compares all assignments of the free axes `first` to `last` - 1. */
static void search_axes(Search *search, int first, int last) {
    if (first == last) {
        compare_assignment(search);
        return;
    }
    const Candidates *candidates = &search->free[first];
    for (int i = 0; i < candidates->count; i++) {
        put(&search->at, candidates->axis, candidates->use[i]);
        search_axes(search, first + 1, last);
        take_back(&search->at, candidates->axis);
    }
}

/* Assigns the free axes by price, in groups of axes. Compares all combinations of the uses of a
 * group's axes; a group has at most MOST_TOGETHER combinations. */
static void assign_by_price(const Assigner *assigner, const Op *op, Version *const *versions,
                            Assignment *assignment) {
    const Mesh *mesh = assigner->mesh;
    Search search = {.assigner = assigner, .op = op, .versions = versions, .at = *assignment};
    int count = 0;
    for (int a = 0; a < mesh->axis_count; a++)
        if (assignment->factor[a] == ASSIGN_NONE && mesh->axis[a].count > 1)
            search.free[count++] = candidates_of(&search, a);
    for (int first = 0, last; first < count; first = last) {
        int together = 1;
        for (last = first;
             last < count && (last == first || together * search.free[last].count <= MOST_TOGETHER);
             last++)
            together *= search.free[last].count;
        search.least = -1;
        search_axes(&search, first, last);
        search.at = search.best;
    }
    *assignment = search.at;
}

Assignment assign_axes(Assigner *assigner, const Op *op, Version *const *versions) {
    Assignment assignment;
    memset(&assignment, 0, sizeof assignment);
    assignment.ring_factor = ASSIGN_NONE;
    for (int a = 0; a < MESH_MOST; a++) assignment.factor[a] = ASSIGN_NONE;
    // 1: axes with split rules; 2: all other axes; 3: axes along which pieces move in a ring
    assign_named(assigner, op, versions, &assignment);
    assign_by_price(assigner, op, versions, &assignment);
    choose_ring(assigner, op, versions, &assignment);
    return assignment;
}
