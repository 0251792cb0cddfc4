/* Strategies that the ranks are enough for, and the one that a launcher has the program begin with.
 *
 * A program of several strategies usually runs on as many ranks as the largest has devices. With
 * HETU_STRATEGY, which heturun sets, it begins under that one and may have fewer: what is for more
 * devices is then not gone to.
 */
#ifndef SESSION_CORE_INITIAL_STRATEGY_H
#define SESSION_CORE_INITIAL_STRATEGY_H

#include "session/core/session.h"

/* HETU_STRATEGY: a name, or FILE:NAME; NULL: not set. */
const char *initial_strategy_word(void);

/* On rank 0, before any program: variables that still have the values of the first strategy get
 * those of the chosen one. */
void initial_strategy_set_variables(void);

/* Gives variables that have the values that image `first` has read those of the chosen one. */
void initial_strategy_follow(int chosen, int first);

/* Whether the ranks are enough for an image. */
bool initial_strategy_possible(int image);

/* As image_next, without the images that the ranks are too few for. */
int initial_strategy_next(int index, int after);

/* The exit status of rank 0 where the program cannot begin under the strategy of HETU_STRATEGY, by
 * which heturun sees that it may try another. */
enum { NO_STRATEGY = 121 };

/* The image that the first program of a session begins with, of the program of image `first`: that
 * of HETU_STRATEGY, which is made now where the program was not compiled with it. Ends the program
 * where that cannot be. */
int initial_strategy_begin(ht_session *session, int first);

#endif
