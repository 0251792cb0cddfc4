/* Views: slices that stay where they are, and members of a row that are made in their places, where
 * all kernels that read and make them can take rows that lie apart (clause pitch of a rule). Part
 * of pass memory.
 */
#ifndef PASSES_MEMORY_ALIAS_VIEWS_H
#define PASSES_MEMORY_ALIAS_VIEWS_H

#include "ir/module.h"

typedef Array(Op *) Readers;

typedef struct Views {
    Module *module;
    bool none;        // --no-views
    Arena *arena;     // scratch
    Readers *readers; // by value id
    bool *fetched;    // by value id: something reads it when the operators are done
} Views;

Views views_of(Arena *arena, Module *module);

/* Whether the result of a slice can be the place in its operand: then it has Value.subview, and so
 * have views of it in other shapes. */
bool view_slice(Views *views, Op *op);

/* Whether the members of a row can be made in their places in the result; then they have
 * Value.subview. Their storage is still their own. */
bool view_members(Views *views, Op *op);

#endif
