/* Checks what models read and change beside their own variables.
 *
 *     static int steps;
 *     ht_tensor loss(...) { return steps++ < 100 ? warm(x) : cold(x); }    refused: it changes
 *
 * hetucc evaluates a model function once; as plain C it runs at every step. Both agree when nothing
 * that the function reads changes between evaluations. Other variables are refused, with both
 * places: where a model reads the variable, and where it is changed. */
#ifndef FRONTEND_STATE_STATE_H
#define FRONTEND_STATE_STATE_H

#include "frontend/eval/eval.h"

/* Records for every variable which functions read and change it, also through pointers. */
void changes_find(CUnit *unit);

/* Records what a model's evaluation did with variables of static storage. */
void state_note(Eval *ev, const CFunction *model);

/* Gives the module the numbers that its evaluation read and that the program may set later. */
void state_reads(Eval *ev);

/* Reports variables that connect evaluations of models, or models and the rest of the program:
 *
 *     read by a model, and changed by an evaluation, by another model or by other functions
 *     set by a model, and read by other functions
 */
void state_check(CUnit *unit);

#endif
