/* The verifier: whether a module is well formed.
 *
 *     %5 = add(%3, %4) : f32[8, 4]        malformed IR: %4 is used before it is made
 *
 * Tests run it after each pass. Text of a user goes through the same checks.
 */
#ifndef IR_VERIFY_VERIFY_H
#define IR_VERIFY_VERIFY_H

#include "ir/module.h"

/* Returns whether a module is well formed. Prints each problem as a bug of the compiler: an operand
 * used before it is made, a type that contradicts its binding, a value of another module, or, after
 * pass memory, a storage that does not hold the value that is read from it. */
bool ir_verify(Module *module);

/* Return the same for a module, or an operator, that was read from text at `at`: each problem is an
 * error of the user there. The operands of the operator are made. */
bool ir_verify_text(Module *module, Position at);
bool ir_verify_op(Module *module, const Op *op, Position at);

/* Returns whether a value may have a layout, which fits its shape. A problem is an error of the
 * user at `at`. */
bool ir_verify_layout(Module *module, const Value *value, const Layout *layout, Position at);

/* ---- shared by verify.c and storage.c ---- */

typedef struct Verifier {
    Module *module;
    Arena *scratch;
    Position at;        // of the text; without a file: problems are bugs
    const Value **made; // by id: the value, once it is made
    int problems;
} Verifier;

/* Reports a problem, with the text of the operator unless it is NULL; only the first few. */
void verify_problem(Verifier *verifier, const Op *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Checks the roles and, after pass memory, the storage of a module without other problems. */
void verify_storage(Verifier *verifier);

#endif
