/* What the files of a program have of one another: the functions and variables that models need
 * from other sources. */
#ifndef FRONTEND_LINKAGE_H
#define FRONTEND_LINKAGE_H

#include "frontend/ctree.h"
#include "frontend/frontend.h"

typedef Array(const char *) LinkNames;

/* Adds the functions and variables of the unit's first source that other sources may use. */
void linkage_defined(const CUnit *unit, LinkNames *names);

/* Adds the functions and variables that evaluating the unit's models may need and that no source
 * read so far defines, each once: those that the calls of ht_train and ht_infer name, and from
 * there on whatever bodies, initial values and rules name. */
void linkage_absent(CUnit *unit, LinkNames *names);

/* Reads the sources that models need, as a linker takes what is not defined yet from the first that
 * has it. False after errors. */
bool linkage_read(CUnit *unit, const FrontendOptions *options);

/* Reports what the program's main file would have to name, but cannot, since it is static in
 * another source or not declared there: a function that a model is, or that an optimizer has, or a
 * shape variable. */
void linkage_check(CUnit *unit, const Unit *made);

#endif
