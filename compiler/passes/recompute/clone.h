/* What backward needs of the forward section, made anew there instead of kept. */
#ifndef PASSES_RECOMPUTE_CLONE_H
#define PASSES_RECOMPUTE_CLONE_H

#include "ir/module.h"

/* Which operators may run once more in the backward section; both by index in module->ops. */
typedef struct Anew {
    const bool *may;   // of the forward section
    const int *region; // of all: an operator makes anew what others of its region need, and what
                       // another region needs is kept
} Anew;

/* Whether an operator of the forward section runs as often as backward does: with micro-batches,
 * once for each. */
bool op_in_step(const Module *module, const Op *op);

/* Operators of the backward section get what they need of their own region from operators that run
 * again, in front of the first that needs them, of what these make and of what is kept; what the
 * update needs of the forward section is kept. `again` of a new operator is the old one. Requires
 * numbered operators, leaves them numbered. */
void make_anew(Module *module, const Anew *anew);

#endif
