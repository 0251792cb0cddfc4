/* The verifier: whether a module is well formed. */
#ifndef IR_VERIFY_VERIFY_H
#define IR_VERIFY_VERIFY_H

#include "ir/module.h"

/* Reports what is malformed as bugs: operands used before they are made, types that contradict
 * bindings, values of other modules, and after pass memory storage that does not hold what is read
 * from it. Returns whether it is well formed. */
bool ir_verify(Module *module);

/* The same for what was read from text at `at`: what is malformed is the user's error, and reported
 * there. Of a module, and of one operator whose operands are made. */
bool ir_verify_text(Module *module, Position at);
bool ir_verify_op(Module *module, const Op *op, Position at);

/* Whether a value may have a layout, which fits its shape: what is wrong is the user's error at
 * `at`. */
bool ir_verify_layout(Module *module, const Value *value, const Layout *layout, Position at);

/* ---- shared by verify.c and storage.c ---- */

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
