/* Padding safety: whether the elements that shorter padding lengths remove change any result. This
 * header has what the files of the folder share; they analyse one operator at a time.
 *
 *     loss[b, s] masked by `padding`, lengths seq: 512 of 1024
 *     total = sum over s of loss[b, s]     safe: elements after 512 are 0
 *     m = max over s of x[b, s]            refused: elements after 512 may be larger
 *
 * In the padded batch a tensor has kept elements, which the shorter pipeline has, too, and dropped
 * elements past its lengths. The analysis follows each operator of the padded model with the ranges
 * (rule/bounds.h) of its operands' kept and dropped elements. Kept elements of results must depend
 * only on kept elements, or on dropped elements without effect there, such as 0 in a sum. The
 * pragma `padding` gives the dropped elements of inputs; nothing is known of all other values.
 *
 * A tensor with k shorter dimensions has 2^k blocks. Block b is dropped along the j-th shorter
 * dimension if bit j of b is set. An assignment has such bits for shorter factors. */
#pragma once

#include "ir/module.h"
#include "rule/bounds.h"

enum { MOST_SHORT = 10 }; // limit of an operator's shorter factors: those of shorter dimensions

typedef struct PaddingCheck {
    const Module *module, *other; // the padded model, and its variant with the shorter lengths
    Arena *arena;                 // scratch
    Position at;                  // position of the lengths in the source
    const Value **own;            // by value id: the value of `other`
    Bounds **blocks;              // by value id: range of each block
} PaddingCheck;

/* The operator that is analysed. */
typedef struct Call {
    PaddingCheck *behind;
    const Op *op, *own;      // operators: of the padded model; of the variant
    int count;               // number of shorter factors
    int factors[MOST_SHORT]; // indices of the shorter factors in the binding
    bool *present;           // by operand of the rule: the call has it
    int64_t *sizes;          // by factor of the rule: its padded extent
    Bounds **values;         // by value of equations, then by assignment
    unsigned assignment;     // the assignment for which an expression is evaluated
} Call;

/* Returns the number of shorter dimensions of a value. */
int padding_short_dims(const PaddingCheck *behind, const Value *value);

/* Sets call->factors. Returns false if they are too many or a shorter dimension has no factor. */
bool call_find_factors(Call *call);

/* Return a bound factor's bit among the shorter factors (-1: none), and a bit's rule factor. */
int call_bit(const Call *call, int factor);
const Factor *call_factor(const Call *call, int bit);

/* Returns a bit mask of the shorter factors in an access of the rule. */
unsigned call_bits(const Call *call, const Access *access);

/* Return a tensor's block under an assignment, and the range of operand k in its block. */
unsigned call_block(const Call *call, const Value *value, const BoundAccess *access,
                    unsigned assignment);
Bounds call_operand(const Call *call, int k, unsigned assignment);

/* Reports that elements dropped along the factors of `bits` have an effect. Returns false. */
bool call_refuse(const Call *call, unsigned bits, const char *why);

/* Write the ranges of an operator's results to call->values: from its body or equations, or from
 * the clauses of a kernel's rule. Return false after an error. */
bool follow_equations(Call *call);
bool follow_kernel(Call *call);
