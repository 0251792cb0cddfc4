/* The types of tensors. */
#ifndef IR_TYPE_H
#define IR_TYPE_H

#include "rule/dtype.h"
#include "layout/layout.h"

/* Elements of a tensor, so that bytes and sums of a few tensors still fit 64 bits;
 * runtime/eager/tape.c has the same. */
#define IR_MAX_ELEMENTS (INT64_C(1) << 56)

enum {
    IR_MAX_RANK = 12,
    IR_MAX_INPUTS = 256
}; // of inputs: those that libhetu feeds a program (runtime/session/core/program.h)

typedef struct Type {
    DType dtype;
    int rank;
    const int64_t *extent; // global
} Type;

/* The shape of a value's type. */
Shape type_shape(Type type);
int64_t type_elements(Type type); // INT64_MAX where it is more
bool type_equal(Type a, Type b);
bool type_converts(Type a, Type b); // equal, or both floating-point and of one shape: what a
                                    // gradient may have and its value has
/* The shape of a type: "(3, 4)". */
const char *type_shape_text(Arena *arena, Type type);

#endif
