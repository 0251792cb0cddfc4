/* Links the sources of a program: finds the functions and variables that models need from other
 * sources, and reads these sources into the C tree.
 *
 *     model.c:  ht_train(session, loss, ...)    loss calls block(), which is absent
 *     layers.c: block()                         linkage_read reads layers.c */
#ifndef FRONTEND_LINKAGE_H
#define FRONTEND_LINKAGE_H

#include "frontend/ctree.h"
#include "frontend/frontend.h"

typedef Array(const char *) LinkNames;

/* Adds the functions and variables of the unit's first source that other sources may use. */
void linkage_defined(const CUnit *unit, LinkNames *names);

/* Adds the functions and variables that evaluation of the models may need and that no source read
 * so far defines, each once. The search starts at the arguments of ht_train and ht_infer and
 * follows all bodies, initial values and rules. */
void linkage_absent(CUnit *unit, LinkNames *names);

/* Reads the sources that models need. Each missing name is taken from the first source that defines
 * it, as a linker does. Returns false after errors. */
bool linkage_read(CUnit *unit, const FrontendOptions *options);

/* Reports names that the main file needs but cannot use: static in another source, or not declared
 * there. Such names are models, functions of optimizers, and shape variables. */
void linkage_check(CUnit *unit, const Unit *made);

#endif
