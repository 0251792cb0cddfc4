/* Element types, and the types that operands and results of a rule have. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum DType { DTYPE_F32, DTYPE_BF16, DTYPE_F64, DTYPE_I32, DTYPE_I64, DTYPE_COUNT } DType;

bool dtype_is_float(DType dtype);

/* Returns the type of a sum or a gradient of values: f32 for bf16, i64 for i32, else the type
 * itself. Kernels add in their own types: <hetu/product.h>, sum_type of emit/kernel/loops.c, and
 * fold of runtime/exchange/collective_rounds.c. */
DType dtype_wide(DType dtype);

/* Return the name of a type, "f32", and its size in bytes. */
const char *dtype_name(DType dtype);
int dtype_size(DType dtype);

/* ---- types of whole operators ---- */

typedef struct Arena Arena;
typedef struct Expr Expr;
typedef struct OpDef OpDef;
typedef struct Rule Rule;

/* Returns whether all operands whose type the rule leaves open must have the same type. A RULE_CALL
 * with the clause `types` requires one type, and so does any other rule whose first result takes
 * its type from the first operand. */
bool rule_of_one_type(const Rule *rule);

/* Returns whether an operator gives integers for integer operands: a RULE_CALL, a RULE_VIEW, or a
 * RULE_BODY without division, calls and floating-point parts. */
bool opdef_is_integral(const OpDef *def);

/* Returns a floating-point part of an expression; NULL if C computes the expression in integers.
 * Bit i of `integers`: operand i has integer elements, or is absent. */
const Expr *opdef_float_in(const OpDef *def, const Expr *expr, uint64_t integers);

/* Returns the message for an operator that takes a remainder (%) of floating-point numbers; NULL if
 * all remainders are of integers. Bit i of `integers`: operand i has integer elements. */
const char *opdef_remainder(Arena *arena, const OpDef *def, uint64_t integers);
