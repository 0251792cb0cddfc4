/* Strategies for classes that differ which are no single pipeline of equal stages: a pipeline for each class, and weights along an axis. */
#ifndef SEARCH_MIXED_H
#define SEARCH_MIXED_H

#include "search/space.h"

typedef Array(Choice) ChoiceList;

/* Adds them to the list; nothing where there is one class. */
void mixed_add(Arena *arena, Profile *profile, const Correction *correction, ChoiceList *list);

#endif
