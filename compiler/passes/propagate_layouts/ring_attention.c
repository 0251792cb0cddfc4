/* Ring attention (context parallelism, clause `turns`): an operator runs in ring steps, one for
 * each piece of a factor, and the pieces move around the devices in between.
 *
 *     turns seq:cp, mesh(cp:4): device c has queries c. In ring step j it reads keys (c + j) % 4,
 *     while keys (c + j + 1) % 4 come from its neighbour. Clause merge joins the results of steps
 *     (ht_attention_merge in ops.h: by their lse).
 *
 *     before    y = attention(q, k, v)
 *     after     k1 = reshard(k); y0 = attention(q, k, v)
 *               k2 = reshard(k1); y1 = attention(q, k1, v1); m1 = merge(y0, y1) ...
 *
 * A zigzag split (layout/zigzag.h) gives each device an early and a late piece of the sequence,
 * which balances the work of causal attention.
 *
 * An axis cuts a factor of the operator (queries), and operands arrive cut by the same axis along
 * another factor (keys). The layouts of ring steps differ only in their devices. Results without
 * the second factor are joined step by step, as clause `reduction` or `merge` says. Results that
 * have it (gradients of keys) go to the device where their piece began, and are joined there as the
 * first factor's clause says. Ring steps along several axes count through the axes' coordinates. */
#include "passes/propagate_layouts/propagate_layouts.h"

#include <string.h>

/* An operator that is replaced by ring steps. */
typedef struct Round {
    Propagation *propagation;
    Op *op;
    const Assignment *assignment;
    int count;                        // number of ring steps
    Op *joiner[IR_MAX_RESULTS];       // by result: the operator that joins it, to be cloned
    int place[IR_MAX_RESULTS];        // by result: its index among the joiner's results
    Value *operands[IR_MAX_OPERANDS]; // in the current ring step
    Value *joined[IR_MAX_RESULTS];    // results of the ring steps so far
    int made;                         // number of operators appended so far
} Round;

/* ---- joining ---- */

static const OpDef *inserted_joiner(const Round *round, FactorReduction reduction) {
    Arena *arena = round->propagation->module->arena;
    return reduction == REDUCE_SUM
               ? rule_inserted(arena, "join_sum", "y[i..] = a[i..] + b[i..]")
               : rule_inserted(
                     arena, "join_max",
                     "y[i..] = a[i..] >= b[i..] ? a[i..] : a[i..] != a[i..] ? a[i..] : b[i..]");
}

static const Factor *factor_of(const Round *round, int f) {
    return &round->op->def->rule->factors[round->op->binding->factors[f].factor];
}

static bool has_turned(const Round *round, const BoundAccess *access) {
    return factor_dim(access, round->assignment->ring_factor) >= 0;
}

/* Returns how result k is joined without clause `merge`; REDUCE_NONE: the axes require different
 * reductions, or another reduction is pending. */
static FactorReduction result_reduction(const Round *round, int k) {
    const Mesh *mesh = round->propagation->mesh;
    const BoundAccess *access = &round->op->binding->results[k];
    FactorReduction reduction = has_turned(round, access)
                                    ? REDUCE_NONE
                                    : factor_of(round, round->assignment->ring_factor)->reduction;
    for (int a = 0; a < mesh->axis_count && has_turned(round, access); a++) {
        FactorReduction own = round->assignment->ring_axes >> a & 1
                                  ? factor_of(round, round->assignment->factor[a])->reduction
                                  : reduction;
        if (reduction != REDUCE_NONE && own != reduction) return REDUCE_NONE;
        reduction = own;
    }
    Sharding made = assignment_result(mesh, round->op, round->assignment, k);
    for (int a = 0; a < mesh->axis_count; a++)
        if (made.at[a] < AXIS_DUP && made.at[a] != (reduction == REDUCE_SUM ? AXIS_SUM : AXIS_MAX))
            return REDUCE_NONE;
    return reduction;
}

/* Returns the type of a result in the dimensions of the rule, before factors split them. */
static Type written_type(const Round *round, int k) {
    const BoundAccess *access = &round->op->binding->results[k];
    int64_t *extent = arena_array(round->propagation->arena, int64_t, access->written_rank + 1);
    for (int w = 0; w < access->written_rank; w++) extent[w] = 1;
    for (int d = 0; d < access->rank; d++)
        extent[access->dims[d].written] *=
            round->op->binding->factors[access->dims[d].factors[0]].extent;
    return (Type){round->op->results[k]->type.dtype, access->written_rank, extent};
}

/* The parts into which the operator's split dimensions divide each factor of a joiner. */
typedef struct Refining {
    const Binding *whole;
    // by factor of `whole`: extents of its parts, the major one first
    Array(int64_t) extents[IR_MAX_FACTORS];
    bool known[IR_MAX_FACTORS];
    int first[IR_MAX_FACTORS]; // by factor of `whole`: the number of its first part
} Refining;

/* Matches dimensions of `like` from *d on with the parts of factor f; advances *d. Returns false
 * if they do not make up the factor, or differ from parts that were matched before. */
static bool take_parts(Arena *arena, Refining *refining, int f, const Round *round,
                       const BoundAccess *like, int written, int *d) {
    int64_t product = 1, whole = refining->whole->factors[f].extent;
    int parts = 0;
    for (; *d < like->rank && like->dims[*d].written == written && product < whole;
         (*d)++, parts++) {
        int64_t extent = round->op->binding->factors[like->dims[*d].factors[0]].extent;
        product *= extent;
        if (!refining->known[f]) array_push(arena, &refining->extents[f], extent);
        else if (parts == refining->extents[f].count || refining->extents[f].at[parts] != extent)
            return false;
    }
    refining->known[f] = true;
    return product == whole && parts == refining->extents[f].count;
}

/* Returns whether all dimensions of an access of the joiner match the dimensions of `like`. */
static bool take_access(Arena *arena, Refining *refining, const BoundAccess *access,
                        const Round *round, const BoundAccess *like) {
    int d = 0;
    for (int w = 0; w < access->rank; w++)
        for (int i = 0; i < access->dims[w].count; i++)
            if (!take_parts(arena, refining, access->dims[w].factors[i], round, like, w, &d))
                return false;
    return d == like->rank;
}

static BoundAccess refined_access(Arena *arena, const Refining *refining,
                                  const BoundAccess *access) {
    Array(BoundDim) dims = {0};
    for (int w = 0; w < access->rank; w++)
        for (int i = 0; i < access->dims[w].count; i++) {
            int f = access->dims[w].factors[i];
            for (int part = 0; part < refining->extents[f].count; part++) {
                int *factor = arena_new(arena, int);
                *factor = refining->first[f] + part;
                array_push(arena, &dims, (BoundDim){1, factor, w});
            }
        }
    return (BoundAccess){access->access, dims.count, access->rank, dims.at};
}

/* Returns a joiner's binding to the operator's results in their factored form; NULL: the factors do
 * not fit its rule. Result k of the joiner joins result `result[k]` of the operator. */
static const Binding *refined_binding(const Round *round, const Binding *whole, const int *result) {
    Arena *arena = round->propagation->module->arena;
    Refining refining = {.whole = whole};
    const BoundAccess *likes = round->op->binding->results;
    int count = whole->result_count;
    for (int k = 0; k < 3 * count; k++)
        if (!take_access(arena, &refining,
                         k < count ? &whole->results[k] : &whole->operands[k - count], round,
                         &likes[result[k % count]]))
            return NULL;
    Array(BoundFactor) factors = {0};
    for (int f = 0; f < whole->factor_count; f++) {
        refining.first[f] = factors.count;
        for (int part = 0; part < refining.extents[f].count; part++)
            array_push(arena, &factors,
                       (BoundFactor){whole->factors[f].factor, refining.extents[f].at[part]});
    }
    BoundAccess *accesses = arena_array(arena, BoundAccess, 3 * count);
    for (int k = 0; k < 3 * count; k++)
        accesses[k] = refined_access(arena, &refining,
                                     k < count ? &whole->results[k] : &whole->operands[k - count]);
    Binding *binding = arena_new(arena, Binding);
    *binding = (Binding){factors.count, 2 * count, count, factors.at, accesses + count, accesses};
    return factors.count <= IR_MAX_FACTORS ? binding : NULL;
}

/* Returns whether devices can join the pieces of results that they have. True if each axis cuts the
 * same factor of the joiner everywhere, and the joiner's rule allows this cut. */
static bool joins_pieces(const Round *round, const Op *joiner, const int *result) {
    int count = joiner->result_count;
    for (int a = 0; a < round->propagation->mesh->axis_count; a++) {
        int cut = -1;
        for (int k = 0; k < 3 * count; k++) {
            const BoundAccess *access =
                k < count ? &joiner->binding->results[k] : &joiner->binding->operands[k - count];
            int d = assignment_result(round->propagation->mesh, round->op, round->assignment,
                                      result[k % count])
                        .at[a];
            int f = d >= 0 ? access->dims[d].factors[0] : -1;
            if (k && f != cut) return false;
            cut = f;
        }
        if (cut >= 0 && !factor_may_cut(joiner, cut)) return false;
    }
    return true;
}

/* Makes the joiner of some results. Its operands are placeholders, which clones replace by results.
 * Returns false if the rule does not fit the results. */
static bool add_joiner(Round *round, const OpDef *def, const int *result, int count) {
    Module *module = round->propagation->module;
    Value *operands[2 * IR_MAX_RESULTS], whole[IR_MAX_RESULTS];
    for (int k = 0; k < count; k++) {
        whole[k] = (Value){.kind = VALUE_ARGUMENT, .type = written_type(round, result[k])};
        operands[k] = operands[count + k] = &whole[k];
    }
    Op *joiner = ir_op_like(module, &(OpCall){def, operands, 2 * count, NULL}, round->op);
    joiner->run_in_place = true;
    joiner->binding = refined_binding(round, joiner->binding, result);
    if (!joiner->binding || !joins_pieces(round, joiner, result)) return false;
    for (int k = 0; k < count; k++) {
        const Value *like = round->op->results[result[k]];
        joiner->results[k]->type = like->type;
        joiner->results[k]->dims = like->dims;
        joiner->results[k]->name = like->name;
        joiner->results[k]->micro = like->micro;
        round->joiner[result[k]] = joiner;
        round->place[result[k]] = k;
    }
    return true;
}

/* Makes joiner `name` of all results. False: undeclared, misfit, or partial or moving results. */
static bool add_named_joiner(Round *round, const char *name) {
    int result[IR_MAX_RESULTS];
    const OpDef *def = module_def_named(round->propagation->module, name);
    if (!def) return false;
    for (int k = 0; k < round->op->result_count; k++) {
        Sharding made =
                     assignment_result(round->propagation->mesh, round->op, round->assignment, k),
                 complete = sharding_complete(made);
        if (has_turned(round, &round->op->binding->results[k]) ||
            !sharding_equal(round->propagation->mesh, &made, &complete))
            return false;
        result[k] = k;
    }
    return add_joiner(round, def, result, round->op->result_count);
}

static bool add_joiners(Round *round) {
    const char *merge = factor_of(round, round->assignment->ring_factor)->merge;
    if (merge) return add_named_joiner(round, merge);
    for (int k = 0; k < round->op->result_count; k++) {
        FactorReduction reduction = result_reduction(round, k);
        if (reduction == REDUCE_NONE ||
            !add_joiner(round, inserted_joiner(round, reduction), &k, 1))
            return false;
    }
    return true;
}

/* ---- ring steps ---- */

/* Appends a ring operator. Sets its `recomputes` if the operator that it replaces recomputes. */
static void put(Round *round, Op *op) {
    Propagation *propagation = round->propagation;
    RingOps *kept = &propagation->ring_ops[round->op->index];
    const Op *first = round->op->source->recomputes;
    if (first) first = propagation->ring_ops[first->index].at[round->made++];
    if (op->source->recomputes != first)
        op_change_source(propagation->module->arena, op)->recomputes = first;
    if (propagation->recomputed[round->op->index]) array_push(propagation->arena, kept, op);
    array_push(propagation->module->arena, &propagation->out, op);
}

/* Returns the layout of a tensor in ring step `turn`. */
static const Layout *layout_in_turn(const Round *round, const Sharding *sharding,
                                    const BoundAccess *access, int turn) {
    const Mesh *mesh = round->propagation->mesh;
    int moved[MESH_MOST] = {0};
    for (int a = mesh->axis_count - 1; a >= 0 && has_turned(round, access); a--)
        if (round->assignment->ring_axes >> a & 1) {
            moved[a] = turn % mesh->axis[a].count;
            turn /= mesh->axis[a].count;
        }
    return sharding_moved_layout(mesh, sharding, moved, round->propagation->shared);
}

/* Returns an operand before k that is the same value in the same layout; -1: there is none. */
static int same_operand(const Round *round, int k, const Layout *layout) {
    for (int i = 0; i < k; i++)
        if (round->op->operands[i] == round->op->operands[k] &&
            round->operands[i]->layout == layout)
            return i;
    return -1;
}

/* Converts the operands for ring step 0. */
static void begin_operands(Round *round) {
    Op *op = round->op;
    for (int k = 0; k < op->operand_count; k++) {
        Sharding need = assignment_operand(round->propagation->mesh, op, round->assignment, k);
        Value *operand = op->operands[k];
        round->operands[k] = operand
                                 ? propagate_converted(round->propagation, operand, &need, op,
                                                       propagate_reason(round->propagation, op, k))
                                 : NULL;
    }
}

/* Moves the pieces for a ring step: each device gets the piece that its neighbour had. */
static void move_operands(Round *round, int turn) {
    const Op *op = round->op;
    for (int k = 0; k < op->operand_count; k++) {
        const BoundAccess *access = &op->binding->operands[k];
        if (!op->operands[k] || !has_turned(round, access)) continue;
        Sharding sharding = assignment_operand(round->propagation->mesh, op, round->assignment, k);
        const Layout *layout = layout_in_turn(round, &sharding, access, turn);
        int same = same_operand(round, k, layout);
        round->operands[k] =
            same >= 0 ? round->operands[same]
                      : propagate_conversion(round->propagation, round->operands[k], layout, op,
                                             propagate_reason(round->propagation, op, k));
    }
}

/* Appends and returns the operator of ring step `turn`, whose results have that step's layouts. */
static Op *turn_op(Round *round, Value *const *operands, int turn) {
    Op *op = ir_clone(round->propagation->module, round->op, operands);
    for (int k = 0; k < op->result_count; k++) {
        Sharding made =
            assignment_result(round->propagation->mesh, round->op, round->assignment, k);
        op->results[k]->layout = layout_in_turn(round, &made, &op->binding->results[k], turn);
    }
    put(round, op);
    return op;
}

/* Returns result k of a ring step at the device where its piece began. */
static Value *settled(Round *round, const Op *op, int k) {
    Sharding made = assignment_result(round->propagation->mesh, round->op, round->assignment, k);
    const Layout *layout = layout_in_turn(round, &made, &op->binding->results[k], 0);
    if (op->results[k]->layout == layout) return op->results[k];
    return propagate_conversion(
        round->propagation, op->results[k], layout, round->op,
        arena_format(round->propagation->module->arena, "a piece of what %s gives", op->def->name));
}

/* Joins the results of the ring steps so far with `given`, the results of this step. */
static void join(Round *round, Value *const *given) {
    Value *joined[IR_MAX_RESULTS];
    for (int k = 0; k < round->op->result_count; k++) {
        const Op *joiner = round->joiner[k];
        if (round->place[k]) continue;
        Value *operands[2 * IR_MAX_RESULTS];
        for (int i = 0; i < joiner->result_count; i++) {
            operands[i] = round->joined[k + i];
            operands[joiner->result_count + i] = given[k + i];
        }
        Op *op = ir_clone(round->propagation->module, joiner, operands);
        for (int i = 0; i < op->result_count; i++) {
            op->results[i]->layout = round->joined[k + i]->layout;
            joined[k + i] = op->results[i];
        }
        put(round, op);
    }
    memcpy(round->joined, joined, sizeof *joined * (size_t)round->op->result_count);
}

/* Makes one ring step. The pieces for the next step are sent before this step runs. */
static void take_turn(Round *round, int turn) {
    Value *operands[IR_MAX_OPERANDS], *given[IR_MAX_RESULTS];
    memcpy(operands, round->operands, sizeof *operands * (size_t)round->op->operand_count);
    if (turn + 1 < round->count) move_operands(round, turn + 1);
    const Op *op = turn_op(round, operands, turn);
    for (int k = 0; k < op->result_count; k++) given[k] = settled(round, op, k);
    if (turn) join(round, given);
    else memcpy(round->joined, given, sizeof *given * (size_t)op->result_count);
}

/* Makes the last joined values the operator's results. */
static void finish(Round *round) {
    for (int k = 0; k < round->op->result_count; k++) {
        Value *result = round->op->results[k], *last = round->joined[k];
        Op *op = last->def;
        Sharding made =
            assignment_result(round->propagation->mesh, round->op, round->assignment, k);
        op->results[last->index] = result;
        result->def = op;
        result->index = last->index;
        propagate_result(round->propagation, op, last->index, last->layout, &made);
    }
}

/* Records for the split rules with `turns` whether the operator ran in ring steps. */
static void note_rules(const Round *round, bool turned) {
    const Propagation *propagation = round->propagation;
    for (int i = 0; i < propagation->mesh->rules.count; i++) {
        const MeshRule *rule = &propagation->mesh->rules.at[i];
        bool own = round->assignment->ring_axes >> rule->axis & 1 &&
                   strategy_turns(propagation->module->strategy, rule->dim.name,
                                  propagation->mesh->axis[rule->axis].name);
        if (own && turned) propagation->assigner.rules[i].turns = true;
        else if (own) propagation->assigner.rules[i].stayed = round->op;
    }
}

bool propagate_ring(Propagation *propagation, Op *op, const Assignment *assignment) {
    Round round = {.propagation = propagation, .op = op, .assignment = assignment, .count = 1};
    // 1: number of ring steps, and how their results are joined
    for (int a = 0; a < propagation->mesh->axis_count; a++)
        round.count *= assignment->ring_axes >> a & 1 ? propagation->mesh->axis[a].count : 1;
    bool joins = add_joiners(&round);
    note_rules(&round, joins);
    if (!joins) return false;
    // 2: the steps
    begin_operands(&round);
    for (int turn = 0; turn < round.count; turn++) take_turn(&round, turn);
    finish(&round);
    return true;
}
