/* What models read and change beside their own variables.
 *
 * A model function is evaluated once, when it is compiled; as plain C it runs at every step. Both
 * are the same where nothing that it reads changes from one evaluation to the next. What may change
 * is refused, with both places: where a model reads it, and what changes it.
 */
#ifndef FRONTEND_STATE_STATE_H
#define FRONTEND_STATE_STATE_H

#include "frontend/eval/eval.h"

/* Notes for every variable which functions read and change it, through pointers as well. */
void changes_find(CUnit *unit);

/* Notes what a model's evaluation did with variables of static storage. */
void state_note(Eval *ev, const CFunction *model);

/* Gives the module the numbers that its evaluation read and that the program may set before it
 * runs. */
void state_reads(Eval *ev);

/* Reports variables that stand between evaluations of models, and between models and what runs
 * beside them. */
void state_check(CUnit *unit);

#endif
