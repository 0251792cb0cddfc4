/* The functions that role programs call: one for each operator and local shape, shared by all roles
 * and models of a unit. */
#ifndef EMIT_KERNEL_KERNEL_H
#define EMIT_KERNEL_KERNEL_H

#include "emit/kernel/local.h"

typedef struct Kernel {
    const char *name;
    const char *opening;   // of a call: "gpt_add_3(", "gpt_softmax_4(r, "
    const char *prototype; // "void gpt_add_3(void *y, void *x, void *z)"
    bool ranked;           // takes the rank first, and the place in the source last
    bool numbered;         // takes a row of the device's numbers
} Kernel;

/* The function for an operator, written to the kernels' file when there is none yet. */
const Kernel *kernel_for(RoleWriter *writer, const LocalOp *local);

#endif
