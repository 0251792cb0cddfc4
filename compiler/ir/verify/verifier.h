/* What the files of the verifier share: verify.c looks at the module, storage.c plays a step
 * through to see whether storage holds what operators read. */
#ifndef IR_VERIFY_VERIFIER_H
#define IR_VERIFY_VERIFIER_H

#include "ir/verify/verify.h"

typedef struct Verifier {
    Module *module;
    Arena *scratch;
    Position at;        // of the text that is verified; without a file: problems are bugs
    const Value **made; // by id: the value that is known under it
    int problems;
} Verifier;

/* Reports one problem with the operator's line, where there is one; the first few problems only. */
void verify_problem(Verifier *verifier, const Op *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Checks the roles and, after pass memory, the storage of a module without other problems, whose
 * values have layouts. */
void verify_storage(Verifier *verifier);

#endif
