/* Kernels of several strategies that differ in numbers alone, of rows for instance, have one body:
 * the C compiler translates it once. */
#ifndef EMIT_KERNEL_SHARED_H
#define EMIT_KERNEL_SHARED_H

#include "support/text.h"

#include <stdbool.h>

/* A function that is written. */
typedef struct KernelText {
    const char *name, *prototype;
    const char *banner; // the comment in front of it
    const char *before; // functions that it needs
    const char *how;    // how it is compiled: "HT_CLONES ", or nothing
    const char *body;   // its statements
} KernelText;

typedef struct KernelTexts {
    int count, capacity;
    KernelText *at;
} KernelTexts;

/* Appends the functions. With `share`, of those that differ in numbers alone the first is preceded
 * by a body that takes the numbers, which they all call; numbers by which is divided, and those of
 * arrays, stay apart, since the C compiler makes something of them. */
void write_kernels(Text *out, const KernelTexts *kernels, bool share);

#endif
