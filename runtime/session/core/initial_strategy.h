/* The strategy with which a program begins, and strategies for which there are enough ranks.
 *
 * A program usually runs on as many ranks as its largest strategy has devices. With HETU_STRATEGY,
 * which heturun sets, a program begins under that strategy, may have fewer ranks, and never
 * switches to strategies for more devices than it has ranks. */
#pragma once

#include "session/core/session.h"

/* Returns HETU_STRATEGY: a name, or FILE:NAME; NULL: not set. */
const char *initial_strategy_word(void);

/* On rank 0, before the first program: calls initial_strategy_follow for the chosen strategy. */
void initial_strategy_set_variables(void);

/* Sets each C variable that hetucc read for image `chosen` to the value that it read, if the
 * variable still has the value that it read for image `first`. */
void initial_strategy_follow(int chosen, int first);

/* Returns whether there are enough ranks for an image. */
bool initial_strategy_possible(int image);

/* Does the same as image_next, but skips images for which there are too few ranks. */
int initial_strategy_next(int index, int after);

/* Rank 0's exit status if the program cannot begin under HETU_STRATEGY: heturun may try another. */
enum { NO_STRATEGY = 121 };

/* Returns the image with which the first program of a session begins: under HETU_STRATEGY, which is
 * compiled now if the program lacks it. Ends the program on failure. */
int initial_strategy_begin(ht_session *session, int first);
