/* Strategies that arrive at run time: ht_prepare.
 *
 * On rank 0 a strategy is asked for; hetucc makes a shared object of it in a process of its own,
 * one strategy after another. What is there is taken by all ranks together: rank 0 sends the
 * object, each loads it, and the images join those of the program when all could, in the order in
 * which they were asked for.
 */
#ifndef SESSION_CONTROL_ARRIVAL_H
#define SESSION_CONTROL_ARRIVAL_H

#include "session/core/image.h"

#include <stddef.h>

/* On rank 0: asks for a strategy, as --strategy takes it, of the program of an image. Returns at
 * once. */
void arrivals_ask(int image, const char *word);

/* On rank 0: the object that is there to be taken next, NULL: none; `wait`: for the one that is
 * asked for. Its bytes go to *size. */
void *arrivals_next(bool wait, size_t *size);

/* All ranks together: loads an object, and registers its images when all ranks could, else none.
 * Rank 0 notes what became of it. */
void arrivals_take(const void *object, size_t size);

/* On rank 0: the name of the strategy that arrived by this word, or the word itself; NULL, with
 * *reason, when it could not be had, or may be the name of one of which not even the name could be
 * found out. */
const char *arrivals_name(const char *word, const char **reason);

/* On rank 0: whether a strategy that was refused, or another of its source, may be had when it is
 * asked for once more. */
bool arrivals_again(const char *word);

/* On rank 0: whether a strategy that was asked for has not come yet. */
bool arrivals_open(const char *word);

/* On rank 0: ends what is still being made. */
void arrivals_close(void);

#endif
