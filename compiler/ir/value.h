/* Values of the intermediate representation: tensors, each with a type, names of dimensions, and,
 * after pass propagate_layouts, a layout. Types, layouts, bindings and names are shared between
 * values and never changed in place.
 *
 *     %7 : f32[8, 64] dims(batch, embed) layout<[0-3]{0:4}>
 */
#pragma once

#include "ir/dim.h"
#include "ir/type.h"
#include "layout/user_layout.h"

typedef struct Value Value;
typedef struct Op Op;
typedef struct Module Module;

typedef enum ValueKind {
    VALUE_RESULT,
    VALUE_PARAM,
    VALUE_INPUT,
    VALUE_STATE,
    VALUE_ARGUMENT
} ValueKind;

/* Position of a value inside a larger value (a view). */
typedef struct Subview {
    const Value *whole;
    int dim;       // dimension along which the value is a slice; -1: it has all elements of `whole`
    int64_t start; // index along `dim` at which the slice begins
} Subview;

/* The position of a chunk: it begins at row `start` of a tensor with `extent` rows along `dim`. */
typedef struct Chunk {
    int dim;
    int64_t start, extent;
} Chunk;

/* The relation between a value and the micro-batches of a step. */
typedef enum MicroKind {
    MICRO_WHOLE, // all micro-batches have the same value
    MICRO_ROWS,  // each micro-batch has some rows, along one dimension
    MICRO_SUM    // each micro-batch has a contribution to a sum
} MicroKind;

typedef struct Micro {
    MicroKind kind;
    int dim; // MICRO_ROWS: the dimension that micro-batches cut; else 0
} Micro;

static inline bool micro_equal(Micro a, Micro b) { return a.kind == b.kind && a.dim == b.dim; }

struct Value {
    ValueKind kind;
    int id;           // unique in its module; %id in the text
    const char *name; // for a result, the C variable that holds it; NULL: unknown
    Type type;
    const Dim *dims;               // names, by dimension; NULL: no names
    Position dims_at;              // position of the pragma `dims` that named them; file NULL: none
    const UserLayout *user_layout; // the source's layout, until pass seed_layouts; NULL: none
    Position layout_at;            // position of that layout in the source; file NULL: none
    const Layout *layout;          // set for all values after pass propagate_layouts
    Micro micro;                   // after pass factor_dims
    const Chunk *chunk;            // after pass chunk: its rows of a larger tensor; NULL: all
    const Value *storage;   // after pass memory: the value whose storage it uses; NULL: its own
    const Subview *subview; // after pass memory: its position in that storage; NULL: the beginning
    Op *def;                // VALUE_RESULT: the operator that computes it
    int index;              // among the results of `def`, the parameters, the inputs or the states
    Position at;
    const double *padding; // inputs: value of padding elements; NULL: none; not in the text form
};

/* Returns whether each micro-batch has some rows of dimension d. */
static inline bool value_cut_along(const Value *value, int d) {
    return value->micro.kind == MICRO_ROWS && value->micro.dim == d;
}
