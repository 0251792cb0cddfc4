/* Says for kernels, by clauses of their rules, whether results ignore dropped padding. equations.c
 * does so for rules of equations. */
#include "passes/stage/padding_safety/call.h"

/* Returns whether a group of operands in which the operator is linear is 0 in an assignment. */
static bool linear_zero(const Call *call, unsigned assignment) {
    const Rule *rule = call->op->def->rule;
    for (int group = 1; group <= rule->operand_count; group++) {
        bool some = false, zero = true;
        for (int k = 0; k < call->op->operand_count; k++)
            if (call->op->operands[k] &&
                rule->operands[call->op->binding->operands[k].access].linear == group) {
                some = true;
                zero = zero && bounds_is(call_operand(call, k, assignment), 0);
            }
        if (some && zero) return true;
    }
    return false;
}

static Bounds no_leaf(const Expr *leaf, void *context) {
    (void)leaf, (void)context;
    return bounds_open();
}

/* Returns whether some operand has its `neutral` value where a factor of `bits` drops elements. */
static bool is_neutral(const Call *call, unsigned assignment, unsigned bits) {
    const Rule *rule = call->op->def->rule;
    for (int k = 0; k < call->op->operand_count; k++) {
        const Access *access = &rule->operands[call->op->binding->operands[k].access];
        Bounds range = call->op->operands[k] && access->neutral ? call_operand(call, k, assignment)
                                                                : bounds_open();
        if (!range.open && bounds_is(bounds_of(access->neutral, no_leaf, NULL), range.low) &&
            range.low == range.high && call_bits(call, access) & bits & assignment)
            return true;
    }
    return false;
}

/* Returns whether `causal` makes kept elements independent of dropped ones in this assignment. */
static bool is_unseen(const Call *call, unsigned assignment) {
    const Rule *rule = call->op->def->rule;
    const Binding *binding = call->own->binding;
    int64_t when = 0, from = 0, to = 0;
    bool behind = false, front = false;
    if (!rule->causal.when ||
        !expr_integer(rule->causal.when, call->op->attrs, call->sizes, &when) || !when)
        return false;
    for (int f = 0; f < binding->factor_count; f++) {
        int bit = call_bit(call, f);
        if (binding->factors[f].factor == rule->causal.from) {
            from = binding->factors[f].extent;
            front = bit < 0 || !(assignment >> bit & 1);
        }
        if (binding->factors[f].factor == rule->causal.to) {
            to = binding->factors[f].extent;
            behind = bit >= 0 && assignment >> bit & 1;
        }
    }
    return front && behind && from <= to;
}

/* ---- the clause `shift` ---- */

/* Returns the kept extent of a rule's factor; *bit: its bit among the shorter factors, or -1. */
static int64_t front_of(const Call *call, int factor, int *bit) {
    const Binding *binding = call->own->binding;
    for (int f = 0; f < binding->factor_count; f++)
        if (binding->factors[f].factor == factor) {
            *bit = call_bit(call, f);
            return binding->factors[f].extent;
        }
    *bit = -1; // pass factor_dims removes dimensions of one element
    return 1;
}

/* The relative position of the kept parts of the two factors of a clause `shift`. */
typedef struct Shift {
    unsigned whole, part; // bit masks of the two factors; 0: not shorter
    // part_in: elements kept in the part are also kept in the whole
    // whole_out: elements dropped in the part are also dropped in the whole
    bool part_in, whole_out;
} Shift;

static bool find_shift(const Call *call, Shift *shift) {
    const Rule *rule = call->op->def->rule;
    int64_t start;
    int whole_bit, part_bit;
    if (!rule->copy.shift || !expr_integer(rule->copy.shift, call->op->attrs, call->sizes, &start))
        return false;
    int64_t whole = front_of(call, rule->copy.whole, &whole_bit),
            part = front_of(call, rule->copy.part, &part_bit);
    *shift = (Shift){.whole = whole_bit < 0 ? 0 : 1u << whole_bit,
                     .part = part_bit < 0 ? 0 : 1u << part_bit,
                     .part_in = start + part <= whole,
                     .whole_out = start + part >= whole};
    return true;
}

/* Returns whether the kept part of a shift's result reads no element dropped in this assignment. */
static bool is_elsewhere(const Call *call, const Access *result, unsigned assignment) {
    Shift shift;
    if (!find_shift(call, &shift)) return false;
    bool copies = access_has(result, call->op->def->rule->copy.part);
    return copies
               ? shift.part_in && !(assignment & ~shift.whole)
               : (shift.whole_out || linear_zero(call, assignment)) && !(assignment & ~shift.part);
}

/* Returns the range of a shift's result in an assignment of its factors. */
static Bounds shift_range(const Call *call, const Access *result, unsigned assignment,
                          const Shift *shift) {
    unsigned both = shift->whole | shift->part, rest = assignment & ~both;
    Bounds front = call_operand(call, 0, rest), behind = call_operand(call, 0, rest | both),
           zero = bounds_number(0);
    if (access_has(result, call->op->def->rule->copy.part)) {
        bool own = assignment & shift->part ? shift->whole_out : shift->part_in;
        return !own ? bounds_hull(front, behind) : assignment & shift->part ? behind : front;
    }
    if (!(assignment & shift->whole)) return bounds_hull(bounds_hull(front, behind), zero);
    Bounds range = shift->part ? bounds_hull(behind, zero) : zero;
    return shift->part_in ? range : bounds_hull(range, front);
}

/* ---- results ---- */

/* Returns the factors along which a result depends on kept and dropped elements: factors that the
 * result lacks, and factors that may not be cut. *summed: those over which the result sums. */
static unsigned open_bits(const Call *call, const Access *result, unsigned *summed) {
    unsigned bits = 0;
    *summed = 0;
    for (int i = 0; i < call->count; i++) {
        const Factor *factor = call_factor(call, i);
        bool has = access_has(result, call->op->binding->factors[call->factors[i]].factor);
        if (!has || factor->replicate) bits |= 1u << i;
        if (!has && !factor->replicate && factor->reduction == REDUCE_SUM) *summed |= 1u << i;
    }
    return bits;
}

/* Returns whether a result's kept part is independent of elements dropped in this assignment. */
static bool counts_for_nothing(const Call *call, const Access *result, unsigned assignment,
                               unsigned summed) {
    bool sees = access_has(result, call->op->def->rule->causal.from) &&
                !access_has(result, call->op->def->rule->causal.to);
    unsigned read = 0;
    for (int k = 0; k < call->op->operand_count; k++)
        read |=
            call->op->operands[k]
                ? call_bits(call,
                            &call->op->def->rule->operands[call->op->binding->operands[k].access])
                : 0;
    assignment &= read;
    return !assignment || is_elsewhere(call, result, assignment) ||
           (sees && is_unseen(call, assignment)) || is_neutral(call, assignment, assignment) ||
           (!(assignment & ~summed) && linear_zero(call, assignment));
}

/* Returns whether, by causal(from, to: when), nothing is added to a result in this assignment: the
 * result sums over kept indices `from`, which never meet its dropped indices `to`. */
static bool is_unseeing(const Call *call, const Access *result, unsigned assignment) {
    const Rule *rule = call->op->def->rule;
    bool sums = rule->causal.when && !access_has(result, rule->causal.from) &&
                rule->factors[rule->causal.from].reduction == REDUCE_SUM;
    return sums && access_has(result, rule->causal.to) && is_unseen(call, assignment);
}

/* Returns the range of a result's elements in an assignment of its factors. */
static Bounds kernel_range(const Call *call, const Access *result, unsigned assignment,
                           unsigned open) {
    bool zero = true;
    Shift shift;
    if (find_shift(call, &shift)) return shift_range(call, result, assignment, &shift);
    if (result->neutral && is_neutral(call, assignment, open))
        return bounds_of(result->neutral, no_leaf, NULL);
    for (unsigned a = 0; a < 1u << call->count; a++)
        if (!(a & ~open))
            zero = zero && (linear_zero(call, (assignment & ~open) | a) ||
                            is_unseeing(call, result, (assignment & ~open) | a));
    return zero ? bounds_number(0) : bounds_finite();
}

/* Returns the range of a result that has its own indices as elements (clause place). */
static Bounds place_range(const Call *call, const Access *result, unsigned assignment) {
    const Binding *binding = call->op->binding;
    for (int f = 0; f < binding->factor_count; f++)
        if (binding->factors[f].factor == result->place) {
            int bit = call_bit(call, f);
            double own = (double)call->own->binding->factors[f].extent,
                   all = (double)binding->factors[f].extent;
            return bit >= 0 && assignment >> bit & 1 ? bounds_between(own, all - 1)
                                                     : bounds_between(0, own - 1);
        }
    return bounds_finite();
}

bool follow_kernel(Call *call) {
    const Rule *rule = call->op->def->rule;
    for (int r = 0; r < rule->result_count; r++) {
        const Access *result = &rule->results[r];
        unsigned summed, own = call_bits(call, result), open = open_bits(call, result, &summed);
        call->values[r] = arena_array(call->behind->arena, Bounds, 1 << call->count);
        for (unsigned a = 0; a < 1u << call->count; a++) {
            if (!(a & ~own))
                call->values[r][a] = result->place >= 0 ? place_range(call, result, a)
                                                        : kernel_range(call, result, a, open);
            if (a && !(a & ~open) && !counts_for_nothing(call, result, a, summed))
                return call_refuse(call, a, "reads what stands behind the length of a row");
        }
    }
    return true;
}
