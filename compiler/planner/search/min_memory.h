/* Where nothing has fitted: what needs the least memory, whatever it takes. */
#ifndef PLANNER_SEARCH_MIN_MEMORY_H
#define PLANNER_SEARCH_MIN_MEMORY_H

#include "planner/search/evaluated.h"

/* Tries strategies until one fits, or nothing is left that closed forms let hope for less than what
 * needs least. */
void search_min_memory(Search *search);

#endif
