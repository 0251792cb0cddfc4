/* Finds a shape that both strategies' factored dimensions refine. */
#include "migration/shape.h"
#include "support/arena.h"

/* A position in a shape, and the product of the extents since dimensions of both shapes last ended
 * together. */
typedef struct Walk {
    Shape shape;
    int *of, at;
    int64_t product;
} Walk;

static void step(Walk *walk, int dim) {
    walk->product *= walk->shape.extent[walk->at];
    walk->of[walk->at++] = dim;
}

static bool ended(const Walk *walk) { return walk->at == walk->shape.rank; }

/* Skips extents of 1, which fit any dimension. */
static void take_ones(Walk *walk, int dim) {
    while (!ended(walk) && walk->shape.extent[walk->at] == 1) step(walk, dim);
}

Shape shape_shared(Arena *arena, Shape a, Shape b, int *of_a, int *of_b) {
    int64_t *extent = arena_array(arena, int64_t, a.rank + b.rank + 1);
    Walk left = {a, of_a, 0, 1}, right = {b, of_b, 0, 1};
    int rank = 0;
    // a dimension ends where the products of both sides are equal
    while (!ended(&left) || !ended(&right)) {
        left.product = right.product = 1;
        do
            step((left.product <= right.product && !ended(&left)) || ended(&right) ? &left : &right,
                 rank);
        while (left.product != right.product ||
               (left.product == 1 && !(ended(&left) && ended(&right))));
        take_ones(&left, rank);
        take_ones(&right, rank);
        extent[rank++] = left.product;
    }
    return (Shape){rank, extent};
}

const Layout *layout_coarse(Arena *arena, const Layout *layout, Shape fine, const int *of) {
    Layout *coarse = arena_copy(arena, layout, sizeof *layout);
    Shape view = layout_view(layout, fine);
    int *dim = arena_array(arena, int, view.rank + 1);
    for (int d = 0; d < view.rank; d++) dim[d] = of[layout->view_rank ? layout->view_dim[d] : d];
    coarse->view_rank = view.rank;
    coarse->view = view.extent;
    coarse->view_dim = dim;
    return coarse;
}
