/* Assigns the rows of a dataset's batch to pipelines with padding lengths (pragma padding): each
 * row to a pipeline that reads all elements of the row except padding. Example: pipelines of
 * lengths 4096 and 1024 with one row each; the longer row goes to the first. */
#ifndef SESSION_DATA_ASSIGN_ROWS_H
#define SESSION_DATA_ASSIGN_ROWS_H

#include "session/data/dataset.h"

#include <hetu/rt.h>

/* An input that a dataset feeds. */
typedef struct AssignedInput {
    const ht_image_input *image;
    const RowsPlan *plan;
} AssignedInput;

/* Returns, by position in the batch, the row that goes there; free() it. Returns NULL with *left -1
 * if rows keep their positions; NULL with *left a row's number if no pipeline with room reads that
 * row whole. Rows of a pipeline keep their order. All inputs have the same rows. */
int64_t *assign_rows(const ht_image *image, const AssignedInput *inputs, int count, int64_t batch,
                     int64_t *left);

#endif
