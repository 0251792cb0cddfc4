/* Feeds to pipelines that read rows only so far: whether what they leave out stands for nothing. */
#ifndef SESSION_DATA_PADDING_H
#define SESSION_DATA_PADDING_H

#include <hetu/rt.h>

#include <stdbool.h>

/* Ends the program where an element of `data`, the whole of the input, is not read by the pipeline
 * that has its row and is another than the input's padding: the meaning would not be that of one
 * device. */
void padding_check(const ht_image_input *input, const void *data);

/* How far a row of an input with padding goes: by dimension behind the first, the place behind the
 * last element that is no padding. */
void padding_needs(const ht_image_input *input, const void *row, int64_t *needs);

/* Whether the pipeline that has row `place` of the batch reads so far. */
bool padding_fits(const ht_image_input *input, int64_t place, const int64_t *needs);

/* Puts the padding of an input that has one into an element. */
void padding_put(const ht_image_input *input, void *element);

#endif
