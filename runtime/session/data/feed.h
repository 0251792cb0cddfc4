/* Checks feeds: an array of main (ht_feed) must have the input's type and size. If a pipeline reads
 * only part of a row, the remaining elements must be padding.
 *
 *     the input "x" (model.c:30) is 24 elements of HT_F32, and is fed 12
 */
#pragma once

#include <hetu/session.h>
#include <hetu/rt.h>

#include <stdbool.h>

/* Returns the name of a type as users write it: "HT_F32". */
const char *feed_type_name(ht_dtype dtype);

/* Ends the program with a message if the feed's type or number of elements is known and differs
 * from that of the input. `at` is the input's place in the source ("model.c:30"); NULL: unknown. An
 * input of 0 elements takes any array, since C has no empty arrays. */
void feed_check(const ht_fed *feed, ht_dtype dtype, int64_t elements, const char *at);

/* Ends the program with a message if two feeds of a step name the same input. */
void feeds_check_once(const ht_fed *feeds);

/* Ends the program if a pipeline does not read an element of `data` (the whole input, row-major)
 * that differs from the input's padding value. One device would have read the element. */
void padding_check(const ht_image_input *input, const void *data);

/* Sets needs[d - 1], for each dimension d > 0, to the least extent that holds all elements of the
 * row `row` that are not padding. Example: a row of tokens 7 5 0 0 with padding 0 needs 2. */
void padding_needs(const ht_image_input *input, const void *row, int64_t *needs);

/* Returns whether the pipeline of the batch's row `place` reads as far as `needs`, or farther. */
bool padding_fits(const ht_image_input *input, int64_t place, const int64_t *needs);

/* Writes the padding value of an input that has one to an element of the input's type. */
void padding_put(const ht_image_input *input, void *element);
