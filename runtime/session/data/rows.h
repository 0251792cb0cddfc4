/* Feeds from datasets (ht_dataset), on rank 0: which rows a step reads. */
#pragma once

#include "session/core/session.h"

/* Returns the dataset of a name; creates it at position 0. */
Dataset *rows_dataset(ht_session *session, const char *name);

/* Makes each rank read its rows of a step's feeds for session->programs[number], and advances the
 * datasets. Ends the program if a file cannot be read, or does not fit an input. */
void rows_read(ht_session *session, const Program *program, int number, const ht_fed *feeds);

/* Returns the feeds of a step for the one-device library, with arrays in place of files; rows_free
 * frees them. NULL: no feed is from a file. */
ht_fed *rows_arrays(ht_session *session, eager_program *program, const ht_fed *feeds);
void rows_free(ht_fed *feeds);

/* ---- rows of pipelines ---- */

/* Assigns the rows of a dataset's batch to pipelines with padding lengths (pragma padding). The
 * pipeline of a row reads all of its elements except padding. Example: pipelines of lengths 4096
 * and 1024 with one row each; the longer row goes to the first pipeline. */

/* An input that a dataset feeds. */
typedef struct AssignedInput {
    const ht_image_input *image;
    const RowsPlan *plan;
} AssignedInput;

/* Returns, by position in the batch, the row at that position; free() the list. Returns NULL if all
 * rows keep their positions (*left -1), or if no pipeline with free rows reads row *left whole
 * (*left >= 0). Rows of a pipeline keep their order. All inputs have the same rows. */
int64_t *assign_rows(const ht_image *image, const AssignedInput *inputs, int count, int64_t batch,
                     int64_t *left);
