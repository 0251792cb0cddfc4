/* Types of tensors: an element type and a global shape, f32[8, 64]. */
#pragma once

#include "layout/layout.h"
#include "rule/dtype.h"

/* The largest number of elements of a tensor: its bytes, even summed over a few tensors, still fit
 * 64 bits. runtime/eager/tape.c has the same limit. */
#define IR_MAX_ELEMENTS (INT64_C(1) << 56)

enum {
    IR_MAX_RANK = 12,
    IR_MAX_INPUTS = 256 // runtime/session/core/program.h has the same limit
};

typedef struct Type {
    DType dtype;
    int rank;
    const int64_t *extent; // global: of the whole tensor, not of a device's piece
} Type;

Shape type_shape(Type type);

/* Returns the number of elements; INT64_MAX if it overflows. */
int64_t type_elements(Type type);

bool type_equal(Type a, Type b);

/* Returns whether a value and its gradient may have these types: equal, or floats of one shape. */
bool type_converts(Type a, Type b);

/* Returns the shape of a type as text: "(3, 4)". */
const char *type_shape_text(Arena *arena, Type type);
