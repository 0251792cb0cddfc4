/* The models of a translation unit: what ht_train and ht_infer are called with. */
#ifndef FRONTEND_MODELS_H
#define FRONTEND_MODELS_H

#include "frontend/ctree.h"
#include "frontend/frontend.h"

typedef struct Module Module; // ir/module.h

/* Whether the unit calls ht_train or ht_infer at all. */
bool models_exist(CUnit *unit);

/* Visits the calls of ht_train and ht_infer with all expressions in them. */
void models_walk(CUnit *unit, CVisit *visit, void *data);

/* Evaluates every model that ht_train or ht_infer names and appends a module for each. Errors are
 * reported. */
void models_read(CUnit *cunit, Unit *unit, const FrontendOptions *options);

/* ---- lengths of pipelines (lengths.c) ---- */

/* Sets module->shorter, and checks what pipelines read only so far: parameters stay, inputs are cut
 * behind their rows, and one of those says what stands for nothing (pragma `padding`). `evaluate`
 * makes the module with the values that shape variables have then. */
void lengths_evaluate(CUnit *unit, Module *module,
                      Module *evaluate(CUnit *unit, const Module *module, void *data), void *data);

/* Gives the inputs of the module what pragmas `padding` say. */
void padding_give(const CUnit *unit, Module *module);

/* Reports pragmas `padding` that name no input of any model. */
void padding_check(const CUnit *unit, Module *const *modules, int count);

/* ---- feeds and fetches (feeds.c) ---- */

/* Reports each feed that fits the input of its name in none of the modules that its program may be,
 * as the runtime does for what is known there alone: elements of another type, another number of
 * bytes, or an input that the model has not. A program is known that is kept in a variable which is
 * given a value once; an array is one with a length that is known. And each fetch of a name that
 * the model has not, or to an array that is too small for all values of that name. */
void feeds_check(CUnit *cunit, const Unit *made);

#endif
