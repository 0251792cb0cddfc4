/* Subviews, a part of pass memory: a slice stays inside its operand, and members of a concatenation
 * are written directly into their places. All kernels that read or write such values must accept
 * strided rows (clause `pitch` of a rule).
 *
 *     q = slice(qkv)       q lies in qkv: no copy
 *     y = concat(a, b)     the makers of a and b write into y: no copy
 */
#pragma once

#include "ir/module.h"

typedef Array(Op *) Readers;

typedef struct Views {
    Module *module;
    bool none;        // --no-views
    Arena *arena;     // scratch
    Readers *readers; // by value id: the operators that read it
    bool *fetched;    // by value id: an output or update, read after the last operator
} Views;

Views views_of(Arena *arena, Module *module);

/* If possible, makes a slice's result, and views of the result, subviews of the slice's operand
 * (Value.subview). Returns whether it did. */
bool view_slice(Views *views, Op *op);

/* If possible, makes the members of a concatenation subviews of the result and returns true. Does
 * not set Value.storage of the members. */
bool view_members(Views *views, Op *op);
