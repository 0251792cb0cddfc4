/* What the files of this folder share: an operator that is followed. Whether what rows lose by the
 * lengths of a pipeline changes anything.
 *
 * In the padded batch a tensor has elements in front, which the pipeline computes, too, and
 * elements behind its lengths, which it lacks. In the model of the padded batch each operator is
 * followed with the ranges (rule/bounds.h) of its operands' elements in front and behind: what it
 * makes in front must come of what is in front alone, or of elements behind that count for nothing
 * there, such as 0 in a sum. Of inputs the pragma `padding` says what is behind, of all else
 * nothing is known.
 *
 * Where k dimensions of a tensor are shorter, it has 2^k blocks: bit j of a block's number says
 * that it is behind in the j-th of them. An operator's factors are numbered in the same way, by
 * assignments.
 */
#ifndef PASSES_STAGE_PADDING_SAFETY_CALL_H
#define PASSES_STAGE_PADDING_SAFETY_CALL_H

#include "ir/module.h"
#include "rule/bounds.h"

enum { MOST_SHORT = 10 }; // factors of an operator that are shorter

typedef struct PaddingCheck {
    const Module *module, *other; // of the padded batch, and with the lengths
    Arena *arena;                 // scratch
    Position at;                  // of the lengths
    const Value **own;            // by value id: what it is in `other`
    Bounds **blocks;              // by value id
} PaddingCheck;

/* An operator at hand. */
typedef struct Call {
    PaddingCheck *behind;
    const Op *op, *own;
    int count;               // shorter factors
    int factors[MOST_SHORT]; // of the binding
    bool *present;           // by operand of the rule
    int64_t *sizes;          // by factor of the rule
    Bounds **values;         // of equations, by value and assignment
    unsigned assignment;     // at hand, for the leaves of an expression
} Call;

/* Whether dimension d of a value is shorter; how many are. */
bool padding_shortens(const PaddingCheck *behind, const Value *value, int d);
int padding_short_dims(const PaddingCheck *behind, const Value *value);

/* Finds the shorter factors; false: there are too many, or they are not those of the tensors. */
bool call_find_factors(Call *call);

/* The bit of a bound factor among the shorter ones; -1: it is none. The factor of the rule that a
 * bit stands for. */
int call_bit(const Call *call, int factor);
const Factor *call_factor(const Call *call, int bit);

/* The shorter factors of which the rule's access has some. */
unsigned call_bits(const Call *call, const Access *access);

/* The block of a tensor of the operator in an assignment; what operand k is there. */
unsigned call_block(const Call *call, const Value *value, const BoundAccess *access,
                    unsigned assignment);
Bounds call_operand(const Call *call, int k, unsigned assignment);

/* Reports that what is behind some of the shorter factors matters: false. */
bool call_refuse(const Call *call, unsigned bits, const char *why);

/* What an operator makes by its expression or equations, and by a kernel, into call->values; false
 * after an error. */
bool follow_equations(Call *call);
bool follow_kernel(Call *call);

#endif
