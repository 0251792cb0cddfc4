/* Views of f32 or bf16, read and written as f32, by rows or whole: one kernel serves both.
 *
 *     Rows x = rows_of(&call->operand[0], "softmax"), y = rows_of(&call->result[0], "softmax");
 *     #pragma omp parallel
 *     {
 *         float *scratch = cpu_alloc((size_t)(x.n + y.n) * sizeof(float));
 *         #pragma omp for
 *         for (int64_t r = 0; r < rows; r++) {
 *             const float *from = row_load(&x, r, scratch);
 *             float *to = row_target(&y, r, scratch + x.n);
 *             softmax_row(to, from, x.n);
 *             row_store(&y, r, to);
 *         }
 *         free(scratch);
 *     }
 *
 * f32 views are read and written in place; only bf16 views go through scratch memory. */
#pragma once

#include <hetu/kernel.h>

typedef struct Rows {
    void *data; // NULL: an operand that is absent; its rows are NULL
    ht_dtype dtype;
    int64_t n; // elements of a row: the view's last extent
} Rows;

/* Returns the rows of a view. Ends the program, naming the operator, unless it is f32 or bf16. */
Rows rows_of(const ht_view *view, const char *operator);

/* Returns the number of rows of a view: the product of all extents but the last. */
int64_t rows_count(const ht_view *view);

/* Returns row r as f32: in place for f32, converted into `scratch` (n elements) for bf16. */
const float *row_load(const Rows *rows, int64_t r, float *scratch);

/* row_target returns the memory to which the caller writes row r as f32: the view, or `scratch` for
 * bf16. row_store then converts a bf16 row and stores it. */
float *row_target(const Rows *rows, int64_t r, float *scratch);
void row_store(const Rows *rows, int64_t r, const float *row);

/* Returns the maximum of n elements, or NaN if one of them is NaN. */
float row_peak(const float *x, int64_t n);

/* The f32 copies of view_load and view_target, at most 8; copies_free frees them. Begins as {0}. */
typedef struct Copies {
    int count;
    float *at[8];
} Copies;

/* Returns a whole view as f32: its own storage if f32, else a copy made by several threads. */
const float *view_load(const ht_view *view, const char *operator, Copies * copies);

/* view_target returns memory for a whole view as f32, which view_store then converts and stores. */
float *view_target(const ht_view *view, const char *operator, Copies * copies);
void view_store(const ht_view *view, const float *from);

/* Do the same for a view with gaps between rows; a row has the dimensions from `first` on. *pitch
 * receives the distance of rows in the returned array, in elements. */
const float *view_load_rows(const ht_view *view, int first, const char *operator, Copies * copies,
                            int64_t *pitch);
float *view_target_rows(const ht_view *view, int first, const char *operator, Copies * copies,
                        int64_t *pitch);
void view_store_rows(const ht_view *view, int first, const float *from);

void copies_free(Copies *copies);
