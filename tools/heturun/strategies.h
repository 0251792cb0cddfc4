/* The strategies of an elastic run (heturun --elastic): those of a file, or of all files
 * *.strategy of a folder in the order of their names. The first one that fits the slots is chosen:
 *
 *     dp8 (8 devices), dp4 (4 devices); 6 slots  ->  dp4
 */
#ifndef HETURUN_STRATEGIES_H
#define HETURUN_STRATEGIES_H

#include "support/array.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Choice {
    const char *name, *word; // as hetucc's option --strategy has it: FILE:NAME
    int devices;
    uint64_t digest; // of its text
} Choice;
typedef Array(Choice) ChoiceList;

/* Reads them; false after errors, which are reported. Devices of classes are those of the file
 * `cluster`, which may be NULL. */
bool strategies_read(Arena *arena, const char *path, const char *cluster, ChoiceList *list);

/* Leaves a strategy out from now on, which the program does not have. */
void strategies_drop(ChoiceList *list, const Choice *choice);

/* The first that so many slots are enough for; NULL: none. On as many ranks as *ranks says, main
 * may also switch to all others that the slots are enough for. */
const Choice *strategies_fit(const ChoiceList *list, int slots, int *ranks);

#endif
