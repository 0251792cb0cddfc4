/* Where nothing has fitted: what needs the least memory, whatever it takes. */
#ifndef SEARCH_LEAST_H
#define SEARCH_LEAST_H

#include "search/tries.h"

/* Tries strategies until one fits, or nothing is left that closed forms let hope for less than what needs least. */
void try_least(Search *search);

#endif
