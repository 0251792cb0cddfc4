/* Views: the factors that two shapes of the same elements have in common. */
#include "ir/bind/bind.h"

#include <string.h>

/* The type that the shape argument gives; one extent may be -1, and is what is left. */
static bool view_type(Binder *binder, Type *type) {
    const Attr *shape = &binder->attrs[binder->rule->shape_attr];
    Type from = binder->operands[0]->type;
    int64_t *extent = arena_array(binder->arena, int64_t, shape->count + 1), known = 1,
            elements = type_elements(from);
    int open = -1;
    bool valid = shape->count <= IR_MAX_RANK;
    for (int d = 0; d < shape->count && valid; d++) {
        extent[d] = shape->ints[d];
        valid = extent[d] >= 0 || (extent[d] == -1 && open < 0);
        if (extent[d] == -1)
            open = d;
        else
            valid = valid && !__builtin_mul_overflow(known, extent[d], &known);
    }
    valid = valid && (open < 0 || known > 0);
    if (valid && open >= 0) extent[open] = elements % known == 0 ? elements / known : 0;
    *type = (Type){.dtype = from.dtype, .rank = shape->count, .extent = extent};
    if (valid && type_elements(*type) == elements) return true;
    memcpy(extent, shape->ints,
           sizeof *extent * (size_t)(valid || shape->count <= IR_MAX_RANK ? shape->count : 0));
    ERROR(binder, "%s: %s has %lld elements, which the shape %s cannot hold", binder->def->name,
          bind_type_text(binder, from), (long long)elements,
          strchr(bind_type_text(binder, *type), '['));
    bind_note_value(binder, 0);
    return false;
}

typedef Array(BoundFactor) Factors;
typedef Array(int) Ints;

static void add_factor(Binder *binder, Factors *factors, int64_t extent, Ints *a, Ints *b) {
    int index = factors->count;
    array_push(binder->arena, factors, (BoundFactor){.factor = -1, .extent = extent});
    if (a) array_push(binder->arena, a, index);
    if (b) array_push(binder->arena, b, index);
}

/* Dimensions [from, to) of each side hold the same elements: as long as one side's extent divides
 * the other's they share factors. Where none does, each side keeps factors of its own. Walks from
 * the major end. */
static void match_segment(Binder *binder, Factors *factors, const int64_t *x, int x_count,
                          Ints *x_dims, const int64_t *y, int y_count, Ints *y_dims) {
    int start = factors->count, i = 0, j = 0;
    int64_t left = x[0], right = y[0];
    while (i < x_count && j < y_count) {
        int64_t shared = left < right ? left : right;
        if (left == 1) {
            add_factor(binder, factors, 1, &x_dims[i], NULL);
            left = ++i < x_count ? x[i] : 1;
            continue;
        }
        if (right == 1) {
            add_factor(binder, factors, 1, NULL, &y_dims[j]);
            right = ++j < y_count ? y[j] : 1;
            continue;
        }
        if (left % shared || right % shared) break;
        add_factor(binder, factors, shared, &x_dims[i], &y_dims[j]);
        left /= shared;
        right /= shared;
        if (left == 1 && ++i < x_count) left = x[i];
        if (right == 1 && ++j < y_count) right = y[j];
    }
    bool complete = i == x_count && j == y_count;
    for (; !complete && i < x_count && x[i] == 1; complete = ++i == x_count && j == y_count)
        add_factor(binder, factors, 1, &x_dims[i], NULL);
    for (; !complete && j < y_count && y[j] == 1; complete = ++j == y_count && i == x_count)
        add_factor(binder, factors, 1, NULL, &y_dims[j]);
    if (complete) return;
    factors->count = start;
    for (int d = 0; d < x_count; d++) {
        x_dims[d].count = 0;
        add_factor(binder, factors, x[d], &x_dims[d], NULL);
    }
    for (int d = 0; d < y_count; d++) {
        y_dims[d].count = 0;
        add_factor(binder, factors, y[d], NULL, &y_dims[d]);
    }
}

/* Cuts both shapes into the shortest runs of equal products and matches each; extents of 1 have
 * factors of their own. */
static void match_views(Binder *binder, Factors *factors, Type x, Ints *x_dims, Type y,
                        Ints *y_dims) {
    int i = 0, j = 0;
    while (i < x.rank || j < y.rank) {
        if (i < x.rank && x.extent[i] == 1) {
            add_factor(binder, factors, 1, &x_dims[i++], NULL);
            continue;
        }
        if (j < y.rank && y.extent[j] == 1) {
            add_factor(binder, factors, 1, NULL, &y_dims[j++]);
            continue;
        }
        int i_end = i + 1, j_end = j + 1;
        int64_t left = x.extent[i], right = y.extent[j];
        while (left != right)
            if (left < right)
                left *= x.extent[i_end++];
            else
                right *= y.extent[j_end++];
        match_segment(binder, factors, x.extent + i, i_end - i, x_dims + i, y.extent + j, j_end - j,
                      y_dims + j);
        i = i_end;
        j = j_end;
    }
}

/* Without elements there is nothing to match: every dimension is on its own. */
static void match_empty(Binder *binder, Factors *factors, Type type, Ints *dims) {
    for (int d = 0; d < type.rank; d++) add_factor(binder, factors, type.extent[d], &dims[d], NULL);
}

static BoundAccess view_access(Binder *binder, const Ints *factors, int rank) {
    BoundDim *dims = arena_array(binder->arena, BoundDim, rank + 1);
    for (int d = 0; d < rank; d++)
        dims[d] = (BoundDim){.count = factors[d].count, .factors = factors[d].at, .written = d};
    return (BoundAccess){.access = 0, .rank = rank, .written_rank = rank, .dims = dims};
}

const Binding *bind_view(Binder *binder, Type *types) {
    Factors factors = {0};
    Ints *x_dims = arena_array(binder->arena, Ints, IR_MAX_RANK),
         *y_dims = arena_array(binder->arena, Ints, IR_MAX_RANK);
    Type x = binder->operands[0]->type;
    if (!view_type(binder, &types[0])) return NULL;
    if (type_elements(x) > 0) {
        match_views(binder, &factors, x, x_dims, types[0], y_dims);
    } else {
        match_empty(binder, &factors, x, x_dims);
        match_empty(binder, &factors, types[0], y_dims);
    }
    BoundAccess *accesses = arena_array(binder->arena, BoundAccess, 2);
    accesses[0] = view_access(binder, x_dims, x.rank);
    accesses[1] = view_access(binder, y_dims, types[0].rank);
    Binding *binding = arena_new(binder->arena, Binding);
    *binding = (Binding){.factor_count = factors.count,
                         .operand_count = 1,
                         .result_count = 1,
                         .factors = factors.at,
                         .operands = &accesses[0],
                         .results = &accesses[1]};
    return binding;
}
