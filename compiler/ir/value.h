/* Values of the intermediate representation: tensors, each with a type, names of dimensions, and,
 * after pass propagate_layouts, a layout. Types, layouts, bindings and names are shared between
 * values and never changed in place.
 *
 *     %7 : f32[8, 64] dims(batch, embed) layout<[0-3]{0:4}>
 */
#ifndef IR_VALUE_H
#define IR_VALUE_H

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

/* Position of a value inside a larger value. */
typedef struct Subview {
    const Value *whole;
    int dim;       // along which the value is a part; -1: the same elements in another shape
    int64_t start; // of the part, along dim
} Subview;

/* Rows of a larger tensor: from `start` on of `extent` along dimension `dim`. */
typedef struct Chunk {
    int dim;
    int64_t start, extent;
} Chunk;

/* How the micro-batches of a step see a value. */
typedef enum MicroKind {
    MICRO_WHOLE, // all see the same
    MICRO_ROWS,  // each has some rows, along one dimension
    MICRO_SUM    // each has a contribution to a sum
} MicroKind;

typedef struct Micro {
    MicroKind kind;
    int dim; // of MICRO_ROWS; 0 elsewhere
} Micro;

static inline bool micro_equal(Micro a, Micro b) { return a.kind == b.kind && a.dim == b.dim; }

struct Value {
    ValueKind kind;
    int id;           // unique in its module; %id in the text
    const char *name; // a parameter's, input's, state's; a result's variable where known; else NULL
    Type type;
    const Dim *dims;               // one a dimension; NULL: no names
    Position dims_at;              // of the `dims` pragma that named them; file NULL: none did
    const UserLayout *user_layout; // of the source, until pass seed_layouts; NULL: none
    Position layout_at;            // where the source gives the layout; file NULL: nowhere
    const Layout *layout;          // of all values after pass propagate_layouts
    Micro micro;                   // after pass factor_dims
    const Chunk *chunk;            // after pass chunk: the rows that it has; NULL: all
    const Value *storage;          // after pass memory: whose storage it takes; NULL: its own
    const Subview *subview; // after pass memory: where it lies in that; NULL: at the beginning
    Op *def;                // of VALUE_RESULT
    int index;              // among the results of def, the parameters, the inputs or the states
    Position at;
    const double *padding; // of an input: the number that stands for nothing; NULL: none.
                           // Not part of the text form
};

/* Returns whether each micro-batch has some rows of dimension d. */
static inline bool value_cut_along(const Value *value, int d) {
    return value->micro.kind == MICRO_ROWS && value->micro.dim == d;
}

#endif
