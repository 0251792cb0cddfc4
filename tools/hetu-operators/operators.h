/* Declarations that the files of hetu-operators share: declarations.c reads a header's
 * operators. loops.c writes their loops, reference.c the reference, tables.c all other files. */
#ifndef HETU_OPERATORS_OPERATORS_H
#define HETU_OPERATORS_OPERATORS_H

#include "rule/rule.h"
#include "support/text.h"

/* An operator as the header declares it. */
typedef struct Declaration {
    OpDef def;
    /* Result type of the C function: ht_tensor, or a struct of tensors in the order of results. */
    const char *result;
    const char *params; // parameters of the C function, as written
} Declaration;
typedef Array(Declaration) Declarations;

/* Returns the operators that a header declares without a body. Reports errors. */
Declarations declarations_read(Arena *arena, Diag *diag, const char *file, const char *text);

/* The variant of an operator's loops that a C function contains. */
typedef struct LoopsVariant {
    int operand;       // the loops compute this operand's gradient; -1: the values
    uint32_t integers; // a bit for each operand, then for each result, of an integer type
    bool wide;         // computes in double
} LoopsVariant;

/* Writes the C function `name` with the loops of an operator. */
void loops_write(Text *out, const OpDef *def, const char *name, LoopsVariant variant);

/* Write a file about all operators: operators.c, kernels.h, and names.h (main.c). */
void operators_write(Text *out, const Declarations *all);
void kernels_write(Text *out, const Declarations *all);
void names_write(Text *out, const Declarations *all);

/* Writes the operators of a header to standard output as Markdown, or its opening comment when it
 * declares no operator. Returns why the header cannot be read; NULL: it was read. */
const char *reference_write(Arena *arena, const char *path);

#endif
