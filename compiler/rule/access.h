/* Factor notation: the factors of a rule, and the accesses that they index.
 *
 *     y[b.., (g r)] = x[b.., g, r]      factors b (an ellipsis), g, r
 *                                       access y: dimensions {b}, {g, r}; access x: {b}, {g}, {r}
 */
#pragma once

#include "binding/element.h"
#include "rule/dtype.h"
#include "rule/expr.h"
#include "support/diag.h"

typedef enum FactorReduction { REDUCE_NONE, REDUCE_SUM, REDUCE_MAX } FactorReduction;

typedef struct Factor {
    const char *name;
    Position at;
    bool ellipsis;             // stands for any number of dimensions: `b..`
    const Expr *count;         // `a..{count}`; NULL: the rank of an operand gives the number
    const Expr *size;          // clause `size`; NULL: the shape of an operand gives the extent
    bool replicate, offset;    // clauses of these names
    bool contracted;           // no result has the factor
    FactorReduction reduction; // clause reduction; REDUCE_SUM if contracted in a RULE_BODY
    const char *merge;         // clause `merge`: the operator; NULL: none
    Position merge_at;         // position of the operator's name
} Factor;

/* A rule's tensor and its dimensions' factors: a result, an operand, or a value of `body`. */
typedef struct Access {
    const char *name;
    Position at;
    bool optional, variadic; // `?x`, `xs[]`
    int dim_count;
    const RuleDim *dims;
    int linear;  // operands: number, from 1, of the clause `linear` that names the operand; 0: none
    int inplace; // results: clause inplace: the operand whose storage is reused; -1: none
    int pitch;   // clause `pitch`: the factor; the dimensions after it are a row; -1: none
    int plus;    // results: clause `plus`: the operand that is added; -1: none
    Element element;
    const Expr *reads;   // operands: clause reads: elements that a call reads; NULL: all
    int place;           // results: clause place: the factor whose index is the element; -1: none
    const Expr *neutral; // clause neutral: the number; NULL: none
    // Operands: the number for an absent operand; NULL: terms with that operand are left out.
    const Expr *absent;
} Access;

/* Returns whether a dimension of the access has the factor. */
bool access_has(const Access *access, int factor);
