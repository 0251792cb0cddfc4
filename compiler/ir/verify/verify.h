/* The verifier: checks whether a module is well formed.
 *
 *     %5 = add(%3, %4) : f32[8, 4]        malformed IR: %4 is used before it is made
 *
 * Tests run it after each pass. Text of a user goes through the same checks. */
#pragma once

#include "ir/module.h"

/* Returns whether a module is well formed. Prints each problem as a bug of the compiler. Problems
 * are operands used before they are made, types that contradict bindings, values of other modules,
 * and, after pass memory, reads of storage that holds another value. */
bool ir_verify(Module *module);

/* Return whether a module, or an operator, that was read from text at `at` is well formed. Report
 * each problem as a user's error at `at`. ir_verify_op assumes that the operands are made. */
bool ir_verify_text(Module *module, Position at);
bool ir_verify_op(Module *module, const Op *op, Position at);

/* Checks a layout that fits the value's shape: it has only devices of the strategy and no view, and
 * parameters, states and inputs have no pending reduction. Returns false after an error at `at`. */
bool ir_verify_layout(Module *module, const Value *value, const Layout *layout, Position at);

/* ---- shared by verify.c and storage.c ---- */

typedef struct Verifier {
    Module *module;
    Arena *scratch;
    Position at;        // position of the text; file NULL: problems are bugs of the compiler
    const Value **made; // by id: the value, once it is made
    int problems;
} Verifier;

/* Counts a problem. Reports the first few, with the text of `op`; `op` NULL: without a text. */
void verify_problem(Verifier *verifier, const Op *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Checks the roles and, after pass memory, the storage of a module that has no other problems. */
void verify_storage(Verifier *verifier);
