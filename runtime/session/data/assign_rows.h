/* Where the rows of a step go that a dataset gives to a program whose pipelines read rows only so
 * far (pragma padding): each row to a pipeline that reads all of it but padding. */
#ifndef SESSION_DATA_ASSIGN_ROWS_H
#define SESSION_DATA_ASSIGN_ROWS_H

#include "session/data/dataset.h"

#include <hetu/rt.h>

/* An input that a dataset feeds. */
typedef struct AssignedInput {
    const ht_image_input *image;
    const RowsPlan *plan;
} AssignedInput;

/* By place in the batch, which of the step's `batch` rows it gets, for inputs that all have the
 * same rows; free() it. NULL: each row stands where it comes, or *left is a row, counted from 0,
 * that no pipeline with room reads whole, else -1. Rows that stay in a pipeline keep their
 * order. */
int64_t *assign_rows(const ht_image *image, const AssignedInput *inputs, int count, int64_t batch,
                     int64_t *left);

#endif
