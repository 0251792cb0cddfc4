/* Dataset files. Each rank reads only the rows that it works on.
 *
 * A dataset has a name and a position, the number of rows read so far. Feeds of one step with the
 * same dataset read the same rows, from one file or several. Row i of epoch e is row
 * permutation_place(seed, stream of the name, e, n, i) of a file with n rows (shuffle.c). So every
 * rank finds a row without communication. Checkpoints keep the position
 * (session/persist/save_and_resume.c). */
#pragma once

#include <hetu/session.h>

/* The rows of a file that an input gets in a step; the same on all ranks. */
typedef struct RowsPlan {
    int file;         // number of the file, as returned by dataset_open
    bool in_order;    // rows are not shuffled
    int64_t position; // number of rows of the dataset that were read before
    int64_t rows;     // rows of the file
    int64_t row;      // elements of a row
    int64_t shift;    // elements by which each row begins later (ht_rows.shift)
    uint64_t seed, stream;
    int64_t batch;        // rows of a step
    const int64_t *order; // by position in the batch: row of the step; NULL: rows in order
} RowsPlan;

/* Returns the number of an open file; -1: it is not open. */
int dataset_find(const char *path, const char *element, ht_dtype input);

/* Opens a file, or finds it open, and sets *file to its number. `element` is the element type of a
 * file without header; NULL: the input's type. Returns why the file cannot be read, valid until the
 * next call; NULL: it is open. */
const char *dataset_open(const char *path, const char *element, ht_dtype input, int *file);

/* Returns the number of rows of `row` elements, the first of which begins at element `shift`.
 * Returns -1 with a reason if the file has rows of another length, or less than one row. */
int64_t dataset_rows(int file, int64_t row, int64_t shift, const char **reason);

/* Returns why the file's elements do not fit an input's type; NULL: they fit. */
const char *dataset_wrong(int file, ht_dtype input);

/* Returns a number made of the file's element count and type, to find files that differ. */
int64_t dataset_elements(int file);

/* Returns the row of the file for row `row`, counted from the plan's first row. */
int64_t dataset_row(const RowsPlan *plan, int64_t row);

/* Writes elements [first, end) of the whole input to `to`. */
void dataset_fill(const RowsPlan *plan, ht_dtype input, int64_t first, int64_t end, void *to);

/* Returns the index to which permutation `number` of a stream maps element `index` of `count`.
 * Example: count 3 may map 0, 1, 2 to 2, 0, 1.
 *
 * The permutation is a Feistel network with Philox as its round function, over the smallest even
 * number of bits that hold `count`. The network is applied until the index is below `count` (cycle
 * walking; Black and Rogaway: Ciphers with arbitrary finite domains, 2002). */
int64_t permutation_place(uint64_t seed, uint64_t stream, int64_t number, int64_t count,
                          int64_t index);
