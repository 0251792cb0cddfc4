/* Properties of a tensor in a rule: its element type, and the factors of its dimensions.
 *
 *     y[b.., (g r)] = x[b.., g, r] dtype(y: i32)    y: ELEMENT_FIXED HT_I32, dimensions {b}, {g, r}
 *                                                   x: ELEMENT_FOLLOWS, dimensions {b}, {g}, {r}
 */
#pragma once

/* The source of an operand's or result's element type (clause `dtype`). */
typedef enum ElementKind {
    ELEMENT_FOLLOWS,  // results: the type of the first operand present; operands: any type
    ELEMENT_FIXED,    // the ht_dtype `index`
    ELEMENT_ARGUMENT, // the value of argument `index`
    ELEMENT_OPERAND,  // the type of operand `index`
    ELEMENT_WIDE,     // the type that accumulates sums of the operator's working type (dtype_sum)
    ELEMENT_INTEGER   // operands: i32 or i64
} ElementKind;

typedef struct Element {
    ElementKind kind;
    int index;
} Element;

/* A dimension as written: one factor, or several merged factors, the major one first. */
typedef struct RuleDim {
    int count;
    const int *factors;
} RuleDim;
