/* Layouts: the elements of a tensor that each device holds.
 *
 * A layout is a union of subgroups of devices. Inside a subgroup (the bottom tier) an ordered list
 * of states cuts the tensor, replicates it or leaves it partial; across subgroups (the top tier)
 * one state does so. Pragmas, dumps, messages and tests use this notation:
 *
 *     [0-7]{0:2,dup:2,1:2}                      one subgroup of 8 devices; the last state varies
 *                                               fastest
 *     [0-3]{0:4 by 1:1:1:2}                     a weighted cut
 *     [0-3]{1:4 zigzag}                         a zigzag split: position k of n has pieces k and
 *                                               2n-1-k of 2n, one after the other
 *     sum([0-3]{0:4} | [4]{})                   two subgroups that each hold a contribution
 *     split 0 by 3:1 ([0-3]{1:4} | [4]{})       the first subgroup owns three quarters of dimension
 *                                               0
 *     split 0 inner ([0-3]{0:4} | [4]{})        each subgroup owns its fraction of every finest
 *                                               slice of dimension 0 (between adjacent cuts)
 *     (3*5*20, 100) [0-3]{1:4}                  a view: the states' dimensions are 3, 5, 20, 100
 *
 * Pieces are exact fractions: the piece [a, b) of a dimension of length n is [floor(n*a),
 * floor(n*b)); it may be empty. Under `zigzag` by weights both pieces of a position have the same
 * weight. Of several states that cut one dimension, each cuts the parts that the states before it
 * leave, as if they were contiguous; so two cuts by 2 equal one by 4. layout_region defines the
 * rest. Two layouts are equal if all their regions are equal. */
#pragma once

#include "support/diag.h"
#include "support/intern.h"
#include "support/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Tokens Tokens;

enum { LAYOUT_MAX_RANK = 16 }; // most dimensions of a shape or view

typedef struct Shape {
    int rank;
    const int64_t *extent;
} Shape;

typedef enum StateKind { STATE_SPLIT, STATE_DUP, STATE_SUM, STATE_MAX } StateKind;

/* A state: a cut, a replication or a pending reduction along some devices of a subgroup. */
typedef struct State {
    StateKind kind;
    int dim;                // STATE_SPLIT: dimension of the view that is cut
    int count;              // number of pieces, copies or contributions
    const int64_t *weights; // `count` weights; NULL: all equal
    bool zigzag;            // STATE_SPLIT: position k has pieces k and 2 * count - 1 - k
    int column;             // column in the layout's text, from 0, for carets
} State;

/* A subgroup. Its last state varies fastest; the states' counts multiply to device_count. */
typedef struct Group {
    int device_count, state_count;
    const int *devices;
    const State *states;
} Group;

typedef enum TopKind { TOP_NONE, TOP_DUP, TOP_SUM, TOP_MAX, TOP_SPLIT } TopKind;

typedef struct Layout {
    TopKind top;                // TOP_NONE if and only if group_count is 1
    int top_dim;                // TOP_SPLIT: the dimension that is cut
    bool inner;                 // TOP_SPLIT: each group owns its fraction of every finest slice
    const int64_t *top_weights; // group_count weights; NULL: all equal
    int group_count;
    const Group *groups;
    int view_rank;               // 0: states refer to the shape's own dimensions
    const int64_t *view;         // extents of the view's factors
    const int *view_dim;         // by factor: the dimension of the shape that the factor belongs to
    int top_column, view_column; // columns in the layout's text, from 0, for carets
} Layout;

/* A box of a region: a range [lo, hi) for each dimension of the view. */
typedef struct Range {
    int64_t lo, hi;
} Range;
typedef struct Box {
    Range dim[LAYOUT_MAX_RANK];
} Box;

/* A box's storage: a row-major tensor with these extents, of which the box may be only a part. */
typedef struct Placing {
    int64_t at; // offset of the box's first element in the device's storage, in elements
    int64_t extent[LAYOUT_MAX_RANK];
} Placing;

/* The elements that a device holds: non-empty boxes in row-major order. Boxes are stored one after
 * another, each row-major; but the boxes of zigzag splits are stored as one row-major tensor, in
 * which the ranges of a dimension are adjacent. */
typedef struct Region {
    bool member; // the device is in the layout
    int replica; // number of the subgroup under a `dup` top, else 0
    int partial; // number of the contribution within the replica
    int rank;    // rank of the view
    int box_count;
    const Box *boxes;
    const Placing *placing; // by box: its storage; NULL: boxes are stored one after another
    int64_t volume;         // number of elements in all boxes
} Region;

#define LAYOUT_MOST_WEIGHT ((int64_t)1 << 40)

#define LAYOUT_MOST_DENOMINATOR ((int64_t)1 << 62)
/* Returns the denominator of the fractions at which `count` weights cut (NULL: equal weights); a
 * zigzag cut doubles it. Denominators of nested cuts multiply, up to LAYOUT_MOST_DENOMINATOR. */
int64_t layout_denominator(const int64_t *weights, int count);

/* Reads a layout in device numbers from the tokens, up to `close`, which stays the current token;
 * `close` NULL: up to the end. Returns NULL after it reported an error: bad notation, a repeated
 * device, a wrong number of weights, or counts whose product is not the number of devices. */
Layout *layout_parse(Tokens *tokens, const char *close);

/* Reads a layout from a whole text, which begins at `at`. Returns NULL after an error. */
Layout *layout_parse_text(Arena *arena, Diag *diag, Position at, const char *text);

/* Checks a layout, whose text begins at `at`, against a shape. Returns false after an error: a
 * dimension that the shape lacks, a view that does not factor it, two kinds of reduction, inexact
 * cuts. */
bool layout_check(Diag *diag, Position at, const Layout *layout, Shape shape);

/* Returns whether the cuts of a layout are exact fractions, without reporting errors. */
bool layout_fits(const Layout *layout, Shape shape);

/* Returns the layout in which replicas are sharded: devices that hold equal elements by a `dup` top
 * or `dup` states divide these as evenly as possible. Each element is then held once. A subgroup
 * under a `dup` top gets a share of every finest slice, in proportion to its devices. Scalars and
 * layouts without an exact cut stay replicated. The layout must have no pending reductions.
 *
 * Without weights, a device holds fewer elements than the product, over the dimensions, of (its
 * fraction of the extent + one row for each finest slice that it shares). */
const Layout *layout_shard_replicas(Arena *arena, const Layout *layout, Shape shape);

/* Appends the canonical text of a layout, from which layout_parse makes an equal layout. */
void layout_print(Text *out, const Layout *layout);

/* Print device numbers, runs of `least` or more as a-b; print weights as " by 3:1", NULL as "". */
void layout_print_devices(Text *out, const int *devices, int count, int least);
void layout_print_weights(Text *out, const int64_t *weights, int count);

/* Returns the one copy in `shared` of a layout; its columns in the text are 0. */
const Layout *layout_intern(Intern *shared, const Layout *layout);

/* Returns the layout with its devices renamed 0, 1, ... in its own order. */
const Layout *layout_renumbered(Arena *arena, const Layout *layout);

/* Returns the layout of devices 0, 1, ... with device d renamed devices[d]. */
const Layout *layout_of_devices(Arena *arena, const Layout *numbered, const int *devices);

/* Returns the extents that states refer to: the view's factors, or the shape's own. */
Shape layout_view(const Layout *layout, Shape shape);

/* Returns the region of a tensor of `shape` on `device`; `member`: the layout has the device. */
Region layout_region(Arena *arena, const Layout *layout, Shape shape, int device);

/* Returns the regions of all devices, in the order of layout_devices. */
const Region *layout_regions(Arena *arena, const Layout *layout, Shape shape, int *count);

/* Returns the largest number of elements of a tensor of `shape` that a device holds. */
int64_t layout_most(const Layout *layout, Shape shape);

/* Returns whether both layouts give every device the same elements of a tensor of `shape`, in one
 * order, and the same contributions. Numbers of replicas and contributions do not matter. */
bool layout_equal(const Layout *a, const Layout *b, Shape shape);

/* Returns STATE_SUM or STATE_MAX when reductions are pending, else STATE_DUP. */
StateKind layout_partial(const Layout *layout);

/* Returns whether a zigzag split cuts view dimension `dim`: pieces may have several ranges. */
bool layout_has_zigzag(const Layout *layout, int dim);

/* Returns the devices of a layout in its own order; *count is their number. */
const int *layout_devices(Arena *arena, const Layout *layout, int *count);
