/* Feeds: whether an array that the program gives is what an input takes, for images and the
 * one-device library alike. */
#ifndef SESSION_DATA_FEED_H
#define SESSION_DATA_FEED_H

#include <hetu/hetu.h>

/* Ends the program, with one line, where the type or the number of elements of a feed is known and
 * is not the input's; `at` is where the input is declared, NULL: not known. An input without
 * elements takes any array, as C has none of that size. */
void feed_check(const ht_fed *feed, ht_dtype dtype, int64_t elements, const char *at);

/* Ends the program, with one line, where two feeds of a step are of one input. */
void feeds_check_once(const ht_fed *feeds);

#endif
