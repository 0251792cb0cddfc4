/* Binds views (reshapes): finds the factors that two shapes of the same elements have in common.
 *
 *     f32[12, 5] as f32[3, 4, 5]        factors 3, 4, 5: dimension 0 of the operand is 3 x 4
 */
#include "ir/bind/bind.h"

#include <string.h>

/* Writes to *type the shape argument's type; one extent may be -1. Returns false after an error. */
static bool view_type(Binder *binder, Type *type) {
    const Attr *shape = &binder->attrs[binder->rule->shape_attr];
    Type from = binder->operands[0]->type;
    int64_t *extent = arena_array(binder->arena, int64_t, shape->count + 1);
    *type = (Type){.dtype = from.dtype, .rank = shape->count, .extent = extent};
    if (shape->count <= IR_MAX_RANK &&
        bind_shape(shape->ints, shape->count, type_elements(from), extent))
        return true;
    memcpy(extent, shape->ints,
           sizeof *extent * (size_t)(shape->count <= IR_MAX_RANK ? shape->count : 0));
    ERROR(binder, "%s: %s has %lld elements, which the shape %s cannot hold", binder->def->name,
          bind_type_text(binder, from), (long long)type_elements(from),
          strchr(bind_type_text(binder, *type), '['));
    bind_note_value(binder, 0);
    return false;
}

typedef Array(BoundFactor) Factors;
typedef Array(int) Ints;

/* Consecutive dimensions of the operand or of the result. */
typedef struct Side {
    int count;
    const int64_t *extent;
    Ints *factors; // by dimension: the bound factors that it is made of
} Side;

/* Makes a bound factor, and appends it to dimensions `a` and `b` of the two sides, unless NULL. */
static void add_factor(Binder *binder, Factors *factors, int64_t extent, Ints *a, Ints *b) {
    int index = factors->count;
    array_push(binder->arena, factors, (BoundFactor){.factor = -1, .extent = extent});
    if (a) array_push(binder->arena, a, index);
    if (b) array_push(binder->arena, b, index);
}

/* Gives each dimension of a side a factor of its own. */
static void add_own_factors(Binder *binder, Factors *factors, Side side) {
    for (int d = 0; d < side.count; d++) {
        side.factors[d].count = 0;
        add_factor(binder, factors, side.extent[d], &side.factors[d], NULL);
    }
}

/* Finds the factors of two sides that hold the same elements, from the major end.
 *
 *     [12] and [3, 4]        factors 3, 4: both shapes are made of them
 *     [4, 6] and [6, 4]      6 does not divide 4: each side has factors of its own
 */
static void match_segment(Binder *binder, Factors *factors, Side x, Side y) {
    int start = factors->count, i = 0, j = 0;
    int64_t left = x.extent[0], right = y.extent[0];
    // take the smaller extent from both sides, as long as it divides the larger one
    while (i < x.count && j < y.count) {
        int64_t shared = left < right ? left : right;
        if (left == 1) {
            add_factor(binder, factors, 1, &x.factors[i], NULL);
            left = ++i < x.count ? x.extent[i] : 1;
            continue;
        }
        if (right == 1) {
            add_factor(binder, factors, 1, NULL, &y.factors[j]);
            right = ++j < y.count ? y.extent[j] : 1;
            continue;
        }
        if (left % shared || right % shared) break;
        add_factor(binder, factors, shared, &x.factors[i], &y.factors[j]);
        left /= shared;
        right /= shared;
        if (left == 1 && ++i < x.count) left = x.extent[i];
        if (right == 1 && ++j < y.count) right = y.extent[j];
    }
    // extents of 1 after the last shared factor get factors of their own
    bool complete = i == x.count && j == y.count;
    for (; !complete && i < x.count && x.extent[i] == 1; complete = ++i == x.count && j == y.count)
        add_factor(binder, factors, 1, &x.factors[i], NULL);
    for (; !complete && j < y.count && y.extent[j] == 1; complete = ++j == y.count && i == x.count)
        add_factor(binder, factors, 1, NULL, &y.factors[j]);
    if (complete) return;
    // the sides do not match: give each side factors of its own instead
    factors->count = start;
    add_own_factors(binder, factors, x);
    add_own_factors(binder, factors, y);
}

static Side part_of(Side side, int from, int to) {
    return (Side){to - from, side.extent + from, side.factors + from};
}

/* Cuts both shapes into the shortest runs of dimensions with equal products, and matches each pair.
 * Extents of 1 between runs have factors of their own.
 *
 *     [2, 12, 5] and [24, 5]        runs: [2, 12] and [24], then [5] and [5]
 */
static void match_views(Binder *binder, Factors *factors, Side x, Side y) {
    int i = 0, j = 0;
    while (i < x.count || j < y.count) {
        if (i < x.count && x.extent[i] == 1) {
            add_factor(binder, factors, 1, &x.factors[i++], NULL);
            continue;
        }
        if (j < y.count && y.extent[j] == 1) {
            add_factor(binder, factors, 1, NULL, &y.factors[j++]);
            continue;
        }
        int i_end = i + 1, j_end = j + 1;
        int64_t left = x.extent[i], right = y.extent[j];
        while (left != right)
            if (left < right) left *= x.extent[i_end++];
            else right *= y.extent[j_end++];
        match_segment(binder, factors, part_of(x, i, i_end), part_of(y, j, j_end));
        i = i_end;
        j = j_end;
    }
}

static BoundAccess view_access(Binder *binder, Side side) {
    BoundDim *dims = arena_array(binder->arena, BoundDim, side.count + 1);
    for (int d = 0; d < side.count; d++)
        dims[d] =
            (BoundDim){.count = side.factors[d].count, .factors = side.factors[d].at, .written = d};
    return (BoundAccess){.access = 0, .rank = side.count, .written_rank = side.count, .dims = dims};
}

static Side side_of(Binder *binder, Type type) {
    return (Side){type.rank, type.extent, arena_array(binder->arena, Ints, IR_MAX_RANK)};
}

const Binding *bind_view(Binder *binder, Type *types) {
    Factors factors = {0};
    Type from = binder->operands[0]->type;
    if (!view_type(binder, &types[0])) return NULL;
    Side x = side_of(binder, from), y = side_of(binder, types[0]);
    if (type_elements(from) > 0) {
        match_views(binder, &factors, x, y);
    } else { // no element to match
        add_own_factors(binder, &factors, x);
        add_own_factors(binder, &factors, y);
    }
    BoundAccess *accesses = arena_array(binder->arena, BoundAccess, 2);
    accesses[0] = view_access(binder, x);
    accesses[1] = view_access(binder, y);
    Binding *binding = arena_new(binder->arena, Binding);
    *binding = (Binding){.factor_count = factors.count,
                         .operand_count = 1,
                         .result_count = 1,
                         .factors = factors.at,
                         .operands = &accesses[0],
                         .results = &accesses[1]};
    return binding;
}
