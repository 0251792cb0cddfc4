/* The models of a translation unit: the functions that ht_train and ht_infer are called with.
 *
 *     ht_program *gpt = ht_train(session, gpt_loss, ht_sgd(.lr = 0.1f));    one module per strategy
 *     ht_step(gpt, ht_feed("tokens", tokens));    checked: type and size of the input "tokens"
 */
#pragma once

#include "frontend/ctree.h"
#include "frontend/frontend.h"

typedef struct Module Module;           // ir/module.h
typedef struct ModuleLinks ModuleLinks; // ir/unit.h

/* ---- calls of ht_train and ht_infer (model_calls.c) ---- */

typedef struct ModelCall {
    const CExpr *expr;
    const CFunction *inside; // the function whose body has the call
    bool train;              // ht_train, not ht_infer
} ModelCall;

/* The calls of a unit's own file. */
typedef struct ModelCalls {
    Array(ModelCall) list;
    bool prepares; // the file calls ht_prepare or ht_balance
    bool norm;     // the file calls ht_grad_norm
} ModelCalls;

/* Returns the calls of ht_train and ht_infer in the bodies of the first source's functions. */
ModelCalls models_find(CUnit *unit);

/* Returns whether the unit calls ht_train or ht_infer. */
bool models_exist(CUnit *unit);

/* Visits every expression in the arguments of ht_train and ht_infer. */
void models_walk(CUnit *unit, CVisit *visit, void *data);

/* ---- models (models.c) ---- */

/* Evaluates all models of ht_train and ht_infer under each strategy; appends modules to *unit. */
void models_read(CUnit *cunit, Unit *unit, const FrontendOptions *options);

/* ---- pipelines that read shorter rows (evaluate_lengths.c) ---- */

/* A function that evaluates the model of a module again, with the current shape variables. */
typedef struct Evaluator {
    Module *(*evaluate)(CUnit *unit, const Module *module, void *data);
    void *data;
} Evaluator;

/* Sets links->input_types of a training module, and links->variants, the model with each pipeline's
 * own lengths. Checks that these lengths change no parameter and only shorten inputs, never their
 * first dimension, and that a pragma `padding` gives a value for the elements that are cut off. */
void lengths_evaluate(CUnit *unit, const Module *module, ModuleLinks *links,
                      const Evaluator *evaluator);

/* Sets the padding values of the module's inputs from pragmas `padding`. */
void padding_give(const CUnit *unit, Module *module);

/* Reports `padding` names that no model has as an input, or whose type lacks the value given. */
void padding_check(const CUnit *unit, Module *const *modules, int count);

/* ---- feeds and fetches (feeds.c) ---- */

/* Reports each feed that fits no input in any module of its program: the name, the element type and
 * the number of bytes must fit. Reports each fetch of a name that the model lacks, or to an array
 * too small for the values.
 *
 * A feed or fetch is checked where its program is a variable that is assigned once, and where the
 * length of its array is known. The runtime checks all others. */
void feeds_check(CUnit *cunit, const Unit *made);

/* ---- other sources of the program (linkage.c) ---- */

/* Links the sources of a program: finds the functions and variables that models need from other
 * sources, and reads these sources into the C tree.
 *
 *     model.c:  ht_train(session, loss, ...)    loss calls block(), which is absent
 *     layers.c: block()                         linkage_read reads layers.c */

typedef Array(const char *) LinkNames;

/* Adds to `names` the functions and variables of the first source that other sources may use. */
void linkage_defined(const CUnit *unit, LinkNames *names);

/* Adds to `names`, once, functions and variables that evaluation of the models may need and that no
 * source read so far defines. The search starts at the arguments of ht_train and ht_infer and
 * follows all bodies, initial values and rules. */
void linkage_absent(CUnit *unit, LinkNames *names);

/* Reads the sources that models need. Each missing name is taken from the first source that defines
 * it, as a linker does. Returns false after errors. */
bool linkage_read(CUnit *unit, const FrontendOptions *options);

/* Reports names that the main file needs but cannot use: static in another source, or not declared
 * there. Such names are models, functions of optimizers, and shape variables. */
void linkage_check(CUnit *unit, const Unit *made);
