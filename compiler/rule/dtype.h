/* Element types. */
#ifndef RULE_DTYPE_H
#define RULE_DTYPE_H

#include <stdbool.h>

typedef enum DType { DTYPE_F32, DTYPE_BF16, DTYPE_F64, DTYPE_I32, DTYPE_I64, DTYPE_COUNT } DType;

bool dtype_is_float(DType dtype);

/* The type in which sums over a type's values are kept: f32 for bf16, i64 for i32, else the type
 * itself. */
DType dtype_wide(DType dtype);

/* The name of a type, "f32", and its bytes. */
const char *dtype_name(DType dtype);
int dtype_size(DType dtype);

#endif
