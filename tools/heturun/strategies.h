/* The strategies of an elastic run (heturun --elastic): those of a file, or of all files *.strategy
 * of a folder in the order of their names. heturun chooses the first one that fits the slots:
 *
 *     dp8 (8 devices), dp4 (4 devices); 6 slots  ->  dp4
 */
#ifndef HETURUN_STRATEGIES_H
#define HETURUN_STRATEGIES_H

#include "support/array.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Choice {
    const char *name, *word; // `word` is the word of hetucc's option --strategy: FILE:NAME
    int devices;
    uint64_t digest; // of its text
} Choice;
typedef Array(Choice) ChoiceList;

/* Reads the strategies; returns false after reported errors. The cluster file `cluster` defines
 * device classes; NULL: none. */
bool strategies_read(Arena *arena, const char *path, const char *cluster, ChoiceList *list);

/* Removes a strategy that the program was not compiled with. */
void strategies_drop(ChoiceList *list, const Choice *choice);

/* Returns the first strategy that fits `slots` slots; NULL: none. *ranks becomes the number of
 * ranks with which main can switch to every other strategy that fits. */
const Choice *strategies_fit(const ChoiceList *list, int slots, int *ranks);

#endif
