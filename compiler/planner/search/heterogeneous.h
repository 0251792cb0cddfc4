/* Strategies for classes that differ which are no single pipeline of equal stages: a pipeline for
 * each class, and weights along an axis. */
#ifndef PLANNER_SEARCH_HETEROGENEOUS_H
#define PLANNER_SEARCH_HETEROGENEOUS_H

#include "planner/search/space.h"

typedef Array(Choice) ChoiceList;

/* Adds them to the list; nothing where there is one class. */
void heterogeneous_add(Arena *arena, Profile *profile, const Correction *correction,
                       ChoiceList *list);

#endif
