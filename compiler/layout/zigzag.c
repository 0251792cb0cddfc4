/* Computes the pieces of a cut: weighted, even, or an early and a late one (zigzag). */
#include "layout/zigzag.h"

bool layout_has_zigzag(const Layout *layout, int dim) {
    for (int g = 0; g < layout->group_count; g++)
        for (int s = 0; s < layout->groups[g].state_count; s++)
            if (layout->groups[g].states[s].zigzag && layout->groups[g].states[s].dim == dim)
                return true;
    return false;
}

Fraction cut_at(const int64_t *before, int count, int k) {
    return before ? fraction_make(before[k], before[count]) : fraction_make(k, count);
}

int piece_count(const State *state) { return state->zigzag ? 2 * state->count : state->count; }

const int64_t *piece_weights(Arena *arena, const State *state) {
    if (!state->weights || !state->zigzag) return state->weights;
    int count = piece_count(state);
    int64_t *weights = arena_array(arena, int64_t, count);
    for (int i = 0; i < state->count; i++) weights[i] = weights[count - 1 - i] = state->weights[i];
    return weights;
}

static Fraction lesser(Fraction a, Fraction b) { return fraction_compare(a, b) < 0 ? a : b; }

static Fraction greater(Fraction a, Fraction b) { return fraction_compare(a, b) < 0 ? b : a; }

/* Appends what lies between the fractions `a` and `b` of several intervals, taken as contiguous. */
static void cut_parts(Arena *arena, const Intervals *parts, Fraction a, Fraction b,
                      Intervals *cut) {
    Fraction whole = FRACTION_ZERO, before = FRACTION_ZERO;
    for (int i = 0; i < parts->count; i++)
        whole = fraction_add(whole, fraction_subtract(parts->at[i].hi, parts->at[i].lo));
    Fraction begin = fraction_between(FRACTION_ZERO, whole, a),
             end = fraction_between(FRACTION_ZERO, whole, b);
    for (int i = 0; i < parts->count; i++) {
        Fraction move = fraction_subtract(parts->at[i].lo, before),
                 behind = fraction_subtract(parts->at[i].hi, move);
        Fraction lo = greater(begin, before), hi = lesser(end, behind);
        if (fraction_compare(lo, hi) < 0)
            array_push(arena, cut, ((Interval){fraction_add(lo, move), fraction_add(hi, move)}));
        before = behind;
    }
}

/* Returns piece k of an interval that a state cuts. */
static Interval interval_piece(Interval of, const State *state, const int64_t *before, int k) {
    int count = piece_count(state);
    return (Interval){fraction_between(of.lo, of.hi, cut_at(before, count, k)),
                      fraction_between(of.lo, of.hi, cut_at(before, count, k + 1))};
}

/* Returns the intervals of position k of a zigzag split: piece k and its mirror image. */
static Intervals zigzag_interval(Arena *arena, Interval of, const State *state,
                                 const int64_t *before, int k) {
    Intervals zigzag = {0};
    array_push(arena, &zigzag, interval_piece(of, state, before, k));
    array_push(arena, &zigzag, interval_piece(of, state, before, piece_count(state) - 1 - k));
    return zigzag;
}

/* Returns the intervals of position k of a cut of several intervals. */
static Intervals cut_several(Arena *arena, const Intervals *parts, const State *state,
                             const int64_t *before, int k) {
    Intervals cut = {0};
    int count = piece_count(state), mirrored = count - 1 - k;
    cut_parts(arena, parts, cut_at(before, count, k), cut_at(before, count, k + 1), &cut);
    if (state->zigzag)
        cut_parts(arena, parts, cut_at(before, count, mirrored),
                  cut_at(before, count, mirrored + 1), &cut);
    return cut;
}

void cut_intervals(Arena *arena, Intervals *parts, const State *state, const int64_t *before,
                   int k) {
    if (parts->count > 1) *parts = cut_several(arena, parts, state, before, k);
    else if (state->zigzag) *parts = zigzag_interval(arena, parts->at[0], state, before, k);
    else parts->at[0] = interval_piece(parts->at[0], state, before, k);
}
