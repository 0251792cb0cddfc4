/* Recomputation: forward operators run again in the backward section; results are not kept.
 *
 *     before    h = gelu(x); ... dw = linear_dw(dy, h)
 *     after     h = gelu(x); ... h' = gelu(x) recomputes h; dw = linear_dw(dy, h')
 */
#pragma once

#include "ir/module.h"

/* The operators that may run again in the backward section. The two arrays are by op index. */
typedef struct Anew {
    const bool *may;   // forward operators that may run again
    const int *region; // region of each operator. Values are recomputed for their own region only;
                       // values that another region needs are kept
} Anew;

/* Returns whether an operator is in the forward section, in the loop if any, and not op_gathers. */
bool op_in_step(const Module *module, const Op *op);

/* Makes backward operators read recomputed values of their own region. A recomputed operator stands
 * before its first reader, and reads recomputed or kept values. Values that the update needs are
 * kept. OpSource.recomputes of a copy is its original. Requires ir_number and runs it again. */
void make_anew(Module *module, const Anew *anew);
