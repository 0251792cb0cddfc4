/* Layouts: which elements of a tensor every device holds.
 *
 * A layout is a union of subgroups of devices. Inside a subgroup (the bottom tier) an ordered list
 * of states cuts, duplicates or leaves partial; across subgroups (the top tier) one state does. The
 * notation is one everywhere, in pragmas, dumps, messages and tests:
 *
 *     [0-7]{0:2,dup:2,1:2}                      one subgroup of 8 devices; the last state is the
 *                                               fastest
 *     [0-3]{0:4 by 1:1:1:2}                     a weighted cut
 *     [0-3]{1:4 zigzag}                           a zigzag split: position k of n has pieces k and
 *                                                 2n-1-k of 2n, one behind the other
 *     sum([0-3]{0:4} | [4]{})                   two subgroups that each hold a contribution
 *     split 0 by 3:1 ([0-3]{1:4} | [4]{})       the first subgroup owns three quarters of dimension
 *                                               0
 *     split 0 inner ([0-3]{0:4} | [4]{})        each subgroup owns its fraction of every finest
 *                                               slice of dimension 0
 *     (3*5*20, 100) [0-3]{1:4}                  a view: the states number the factors 3, 5, 20, 100
 *
 * Pieces are exact fractions: the piece [a, b) of a dimension of length n is [floor(n*a),
 * floor(n*b)); it may be empty. Under `zigzag` by weights both pieces of a position have its
 * weight. Several states that cut a dimension cut what those in front of them leave, the parts that
 * are left taken as one; so two folds by 2 are one by 4. Everything else is defined by
 * layout_region, and two layouts are equal when all regions are.
 */
#ifndef LAYOUT_LAYOUT_H
#define LAYOUT_LAYOUT_H

#include "support/intern.h"
#include "support/text.h"
#include "syntax/tokens.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAYOUT_MAX_RANK = 16 }; // dimensions of a shape or view

typedef struct Shape {
    int rank;
    const int64_t *extent;
} Shape;

typedef enum StateKind { STATE_SPLIT, STATE_DUP, STATE_SUM, STATE_MAX } StateKind;

/* One entry of a subgroup. */
typedef struct State {
    StateKind kind;
    int dim;                // STATE_SPLIT: the dimension of the view that is cut
    int count;              // pieces, copies or contributions
    const int64_t *weights; // count of them; NULL when all are equal
    bool zigzag;            // STATE_SPLIT: position k has pieces k and 2 * count - 1 - k
    int column;             // where it stands in the layout's text, from 0; for carets
} State;

/* An ordered device list and its ordered states, last state fastest; the counts multiply to
 * device_count. */
typedef struct Group {
    int device_count, state_count;
    const int *devices;
    const State *states;
} Group;

typedef enum TopKind { TOP_NONE, TOP_DUP, TOP_SUM, TOP_MAX, TOP_SPLIT } TopKind;

typedef struct Layout {
    TopKind top;                // TOP_NONE exactly when group_count is 1
    int top_dim;                // TOP_SPLIT: the dimension
    bool inner;                 // TOP_SPLIT: fractions of every finest slice
    const int64_t *top_weights; // group_count of them; NULL when equal
    int group_count;
    const Group *groups;
    int view_rank;               // 0: the states number the shape's own dimensions
    const int64_t *view;         // extents of the view's factors
    const int *view_dim;         // the dimension of the shape that each factor belongs to
    int top_column, view_column; // where they stand in the layout's text, from 0; for carets
} Layout;

/* One box of a region: [lo, hi) a dimension of the view. */
typedef struct Range {
    int64_t lo, hi;
} Range;
typedef struct Box {
    Range dim[LAYOUT_MAX_RANK];
} Box;

/* Where a box lies in a device's storage: its first element, and the extents of the tensor of which
 * it is a part. */
typedef struct Placing {
    int64_t at;
    int64_t room[LAYOUT_MAX_RANK];
} Placing;

/* What a device holds: boxes in row-major order, empty ones left out. Storage has one box after
 * another, each row-major; but boxes that zigzag splits make lie together as one row-major tensor,
 * in which the parts of a dimension are one behind the other. */
typedef struct Region {
    bool member; // the device stands in the layout at all
    int replica; // the subgroup under a `dup` top, else 0
    int partial; // which contribution: 0 .. contributions of the replica - 1
    int rank;    // of the view
    int box_count;
    const Box *boxes;
    const Placing *placing; // by box; NULL: one box after another
    int64_t volume;         // elements in all boxes
} Region;

#define LAYOUT_MOST_WEIGHT ((int64_t)1 << 40)

/* The denominator of the places where weights cut; NULL: `count` equal ones; zigzag doubles it.
 * Cuts of cuts multiply theirs, up to the most that fractions hold. */
#define LAYOUT_MOST_DENOMINATOR ((int64_t)1 << 62)
int64_t layout_denominator(const int64_t *weights, int count);

/* Reads a layout in device numbers from the tokens, up to `close`, which stays the current token;
 * NULL: up to the end. NULL after an error was reported: bad notation, a device twice, counts that
 * do not multiply to the devices, weights that do not fit. */
Layout *layout_parse(Tokens *tokens, const char *close);

/* Returns the same of a whole text, which stands at `at`. */
Layout *layout_parse_text(Arena *arena, Diag *diag, Position at, const char *text);

/* Checks a layout, whose text begins at `at`, against a shape. False after an error was
 * reported: a state's dimension that the shape lacks, a view that does not factor it, two kinds
 * of reduction. */
bool layout_check(Diag *diag, Position at, const Layout *layout, Shape shape);

/* Returns whether the cuts of a layout are fractions that can be told, as layout_check says of
 * one with a text. */
bool layout_fits(const Layout *layout, Shape shape);

/* Returns the layout in which devices that held the same of a tensor of `shape` have parts of
 * it: every element of a `dup` top and of `dup` states lies once, in pieces as even as can be.
 * Each device keeps a part of what it held; a subgroup under a `dup` top gets a share of every
 * finest slice for each of its devices. A number stays in copies, and so does what could only be
 * cut by fractions that cannot be told. Where no cut has weights, a device's elements are less
 * than the product over the dimensions of its part of the dimension, to which a row is added for
 * each finest slice of which it has a part. The layout has no contributions. */
const Layout *layout_shard_replicas(Arena *arena, const Layout *layout, Shape shape);

/* Appends the canonical text of a layout; it parses back to an equal one. */
void layout_print(Text *out, const Layout *layout);

/* Device numbers, runs of three or more as a-b; and " by 3:1" where there are weights. */
void layout_print_devices(Text *out, const int *devices, int count);
void layout_print_weights(Text *out, const int64_t *weights, int count);

/* Returns the one copy in `shared` of a layout, without what it knows of the text that it was
 * read from. */
const Layout *layout_intern(Intern *shared, const Layout *layout);

/* Returns the layout as one of the devices 0, 1, ... in its own order. */
const Layout *layout_renumbered(Arena *arena, const Layout *layout);

/* Returns the layout of devices 0, 1, ... as one of devices[0], devices[1], ... */
const Layout *layout_of_devices(Arena *arena, const Layout *numbered, const int *devices);

/* Returns the extents that the states number: the view's factors, or the shape's own. */
Shape layout_view(const Layout *layout, Shape shape);

/* Returns what `device` holds of a tensor of `shape`. */
Region layout_region(Arena *arena, const Layout *layout, Shape shape, int device);

/* Returns the regions of all devices, in the order of layout_devices. */
const Region *layout_regions(Arena *arena, const Layout *layout, Shape shape, int *count);

/* Returns the elements of the device that holds most of a tensor of `shape`. */
int64_t layout_most(const Layout *layout, Shape shape);

/* Returns whether both layouts give every device the same elements in the same order of storage,
 * and the same contributions, of a tensor of `shape`. How replicas and contributions are
 * numbered does not matter. */
bool layout_equal(const Layout *a, const Layout *b, Shape shape);

/* STATE_SUM or STATE_MAX where contributions are pending, else STATE_DUP. */
StateKind layout_partial(const Layout *layout);

/* Returns whether the pieces of a dimension of the view may be several parts of it that lie as
 * one. */
bool layout_has_zigzag(const Layout *layout, int dim);

/* Returns the devices of a layout in its own order; the count goes to *count. */
const int *layout_devices(Arena *arena, const Layout *layout, int *count);

#endif
