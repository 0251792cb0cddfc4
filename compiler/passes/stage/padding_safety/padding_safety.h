/* Padding safety: decides whether pipelines may drop the elements past their padding lengths
 * (call.h explains the analysis). */
#ifndef PASSES_STAGE_PADDING_SAFETY_PADDING_SAFETY_H
#define PASSES_STAGE_PADDING_SAFETY_PADDING_SAFETY_H

#include "ir/module.h"

/* Returns whether the elements that `other` lacks have no effect on what both modules compute;
 * reports an error otherwise. `other` is the module with the lengths that the source writes at
 * `at`, and corresponds to it operator by operator. */
bool padding_is_safe(const Module *module, const Module *other, Position at);

#endif
