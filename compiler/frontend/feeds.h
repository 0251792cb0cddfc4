/* Feeds whose arrays are no inputs, and fetches of what is not there: ht_feed("x", array) in
 * ht_step or ht_run of a program that the same file makes, and ht_fetch(program, "y", array) of
 * one. */
#ifndef FRONTEND_FEEDS_H
#define FRONTEND_FEEDS_H

#include "frontend/ctree.h"
#include "ir/unit.h"

/* Reports each feed that fits the input of its name in none of the modules that its program may be,
 * as the runtime does for what is known there alone: elements of another type, another number of
 * bytes, or an input that the model has not. A program is known that is kept in a variable which is
 * given a value once; an array is one with a length that is known. And each fetch of a name that
 * the model has not, or to an array that is too small for all values of that name. */
void feeds_check(CUnit *cunit, const Unit *made);

#endif
