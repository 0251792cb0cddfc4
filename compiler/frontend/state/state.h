/* Checks the variables with static storage that models read and change.
 *
 *     static int steps;
 *     ht_tensor loss(...) { return steps++ < 100 ? warm(x) : cold(x); }    refused: it changes
 *
 * hetucc evaluates a model function once; as plain C it runs at every step. Both ways agree when
 * nothing that the function reads changes between evaluations. A variable that may change is
 * refused, with two positions: where a model reads it, and where it is changed. */
#pragma once

#include "frontend/eval/eval.h"

/* Records for every variable which functions read and change it, also through pointers. */
void changes_find(CUnit *unit);

/* Records the static variables that the evaluation of a model read and changed. */
void state_note(Eval *ev, const CFunction *model);

/* Records in the module the numbers that its evaluation read and that may change before the run. */
void state_reads(Eval *ev);

/* Reports variables that connect evaluations of models with each other or with other functions:
 *
 *     read by a model, and changed by its evaluation, by another model or by other functions
 *     changed by a model, and read by other functions
 */
void state_check(CUnit *unit);
