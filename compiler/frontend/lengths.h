/* Lengths of pipelines: a model is evaluated once more for each set of values that pipelines of its
 * strategy give shape variables. */
#ifndef FRONTEND_LENGTHS_H
#define FRONTEND_LENGTHS_H

#include "frontend/ctree.h"
#include "ir/unit.h"

/* Makes a module of the same model with the values that shape variables have at that time. */
typedef struct Evaluator {
    Module *(*evaluate)(CUnit *unit, const Module *module, void *data);
    void *data;
} Evaluator;

/* Sets links->variants of a module, and checks what pipelines read only so far: parameters stay,
 * inputs are cut behind their rows, and one of those says what stands for nothing (pragma
 * `padding`). */
void lengths_evaluate(CUnit *unit, const Module *module, ModuleLinks *links,
                      const Evaluator *evaluator);

/* Gives the inputs of the module what pragmas `padding` say. */
void padding_give(const CUnit *unit, Module *module);

/* Reports pragmas `padding` that name no input of any model. */
void padding_check(const CUnit *unit, Module *const *modules, int count);

#endif
