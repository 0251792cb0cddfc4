/* Side reductions: a product also sums one of its operands over the factor that it contracts. The
 * gradient of a bias comes from the product that makes the gradient of the weight.
 *
 *     db[o] = dy[b, o]                  the side reduction, which pass fuse puts before the product
 *     dw[o, i] = dy[b, o] * x[b, i]     contracts b, too
 */
#pragma once

#include "ir/module.h"

/* Returns the index of the operand of `product` that `sum` sums, as in the example; else -1. */
int summed_operand(const Op *sum, const Op *product);

/* Returns the next operator of the phase if `sum` can be its side reduction; else NULL. */
const Op *op_side_reduction(const Module *module, const Op *sum);
