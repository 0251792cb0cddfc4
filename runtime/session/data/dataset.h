/* Files of rows: each rank reads those that it works on, in an order that a counter gives.
 *
 * A dataset is a name with a number of rows that were read; the feeds of a step that name it read
 * the same rows, of one file or of several. Row i of epoch e, of n rows, is row
 * permutation_place(seed, the name's stream, e, n, i) of the file.
 */
#ifndef SESSION_DATA_DATASET_H
#define SESSION_DATA_DATASET_H

#include <hetu/session.h>

/* Which rows of a file an input gets; the same on all ranks. */
typedef struct RowsPlan {
    int file;         // of this process, as all ranks number them
    bool in_order;    // not shuffled
    int64_t position; // rows of the dataset that were read before
    int64_t rows;     // of the file
    int64_t row;      // elements of a row
    int64_t shift;    // elements that a row begins later than its place says
    uint64_t seed, stream;
    int64_t batch;        // rows of a step
    const int64_t *order; // by place in the batch, the row of the step that stands there; NULL:
                          // each where it comes
} RowsPlan;

/* The number of a file that is open; -1: it is not. */
int dataset_find(const char *path, const char *element, ht_dtype input);

/* Opens a file, or finds it open: its number goes to *file. `element` is the type of its elements
 * where it has no header that says so, NULL for that of the input. NULL; or why it cannot be read,
 * kept until the next call. */
const char *dataset_open(const char *path, const char *element, ht_dtype input, int *file);

/* How many rows of `row` elements a file has whose first one begins at `shift`; below 0 with a
 * reason where its rows are of another length.
 */
int64_t dataset_rows(int file, int64_t row, int64_t shift, const char **reason);

/* Why the elements of a file are none of an input's type; NULL: they are. */
const char *dataset_wrong(int file, ht_dtype input);

/* What tells a file from another of the same name on another host: elements and their type. */
int64_t dataset_elements(int file);

/* Which row of the file is number `row` of those that the plan begins with. */
int64_t dataset_row(const RowsPlan *plan, int64_t row);

/* Writes elements `first` to before `end` of the whole input. */
void dataset_fill(const RowsPlan *plan, ht_dtype input, int64_t first, int64_t end, void *to);

#endif
