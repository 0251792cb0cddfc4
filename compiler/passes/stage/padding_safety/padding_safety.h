/* Whether what rows lose by the lengths of a pipeline changes anything. */
#ifndef PASSES_STAGE_PADDING_SAFETY_PADDING_SAFETY_H
#define PASSES_STAGE_PADDING_SAFETY_PADDING_SAFETY_H

#include "ir/module.h"

/* Whether what the rows of `other` lose, which is the module with the lengths at `at`, operator by
 * operator the same, counts for nothing in what both compute; else false, after an error. */
bool padding_is_safe(const Module *module, const Module *other, Position at);

#endif
