/* Declarations that the files of hetu-operators share: declarations.c reads the operators of a
 * header, loops.c writes how expressions are computed, tables.c the rest. */
#ifndef HETU_OPERATORS_OPERATORS_H
#define HETU_OPERATORS_OPERATORS_H

#include "rule/rule.h"
#include "support/text.h"

/* An operator as the header declares it. */
typedef struct Declaration {
    OpDef def;
    const char *result; // what the C function returns: ht_tensor, or a struct of tensors in the
                        // order of the rule's results
    const char *params; // the C function's parameters as they are written
} Declaration;
typedef Array(Declaration) Declarations;

/* Reads the operators of a header, those without a body; errors are reported. */
Declarations declarations_read(Arena *arena, Diag *diag, const char *file, const char *text);

/* Which loops of an operator a C function has. */
typedef struct LoopsVariant {
    int operand;       // the gradient of this operand; -1: the values
    uint32_t integers; // a bit for each operand, then for each result, of an integer type
    bool wide;         // computes in double
} LoopsVariant;

/* Writes the C function `name` with the loops of an operator. */
void loops_write(Text *out, const OpDef *def, const char *name, LoopsVariant variant);

/* Write a file about all operators: operators.c, kernels.h and names.h (main.c). */
void operators_write(Text *out, const Declarations *all);
void kernels_write(Text *out, const Declarations *all);
void names_write(Text *out, const Declarations *all);

/* Writes the operators of a header to standard output, as Markdown; of a header without operators
 * its opening comment. Returns why the header cannot be read; NULL: it was. */
const char *reference_write(Arena *arena, const char *path);

#endif
