/* Sums that a product makes on its way: of one of its operands over what the product adds up, such
 * as the gradient of a bias beside that of a weight. Pass fuse puts such a sum right in front of
 * the product.
 */
#ifndef IR_ANALYSIS_SIDE_REDUCTION_H
#define IR_ANALYSIS_SIDE_REDUCTION_H

#include "ir/module.h"

/* The operand of the product that the other operator adds up over what the product adds up, and
 * nothing else; -1: there is none. */
int summed_operand(const Op *sum, const Op *product);

/* The product behind an operator, in its part, that can make what this one does; NULL: there is
 * none. */
const Op *op_side_reduction(const Module *module, const Op *sum);

#endif
