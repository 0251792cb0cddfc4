/* The strategies of an elastic run (heturun --elastic), from a file, or from all files *.strategy
 * of a folder by name. heturun chooses the first one that fits the slots:
 *
 *     dp8 (8 devices), dp4 (4 devices); 6 slots  ->  dp4
 */
#ifndef HETURUN_FITTING_STRATEGIES_H
#define HETURUN_FITTING_STRATEGIES_H

#include "support/array.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Choice {
    const char *name, *word; // word: FILE:NAME, as in hetucc's option --strategy
    int devices;
    uint64_t digest; // digest of the strategy's text
} Choice;
typedef Array(Choice) ChoiceList;

/* Reads the strategies of file or folder `path`; returns false after reporting errors. `cluster` is
 * the cluster file, which defines device classes; NULL: there is none. */
bool strategies_read(Arena *arena, const char *path, const char *cluster, ChoiceList *list);

/* Check strategies before any rank starts, if it is known which ones the program was compiled with.
 * compiled_check_list removes the others from `list`; compiled_check_variable checks HETU_STRATEGY.
 * Return false, after an error message, if no strategy is left. */
bool compiled_check_list(Arena *arena, const char *program, ChoiceList *list);
bool compiled_check_variable(Arena *arena, const char *program);

/* Returns whether execvp can run a program, and reports why not. */
bool program_check(Arena *arena, const char *program);

/* Returns the path of a program that execvp would run; free() it; NULL: there is none. */
char *program_path(const char *program);

/* Removes a strategy that the program was not compiled with. */
void strategies_drop(ChoiceList *list, const Choice *choice);

/* Returns the first strategy that fits `slots` slots; NULL: none. Sets *ranks to the most devices
 * of any strategy that fits, so that the program can switch to each of these strategies. */
const Choice *strategies_fit(const ChoiceList *list, int slots, int *ranks);

#endif
