/* Views of f32 or bf16, read and written as f32, by rows or whole: what lets one kernel serve both
 * types of storage.
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
 * What is f32 is read and written in place; only bf16 goes through scratch memory.
 */
#ifndef CPU_ROWS_H
#define CPU_ROWS_H

#include <hetu/kernel.h>

typedef struct Rows {
    void *data; // NULL: an operand that is absent; its rows are NULL
    ht_dtype dtype;
    int64_t n; // elements of a row: the view's last extent
} Rows;

/* The rows of a view; ends the program with the operator's name when its elements are neither f32
 * nor bf16. */
Rows rows_of(const ht_view *view, const char *operator);

/* How many rows a view has: the product of all extents but the last. */
int64_t rows_count(const ht_view *view);

/* Row r as f32. `scratch` holds n elements; it is used for bf16 alone. */
const float *row_load(const Rows *rows, int64_t r, float *scratch);

/* Where to write row r as f32, and what to call when it is written. */
float *row_target(const Rows *rows, int64_t r, float *scratch);
void row_store(const Rows *rows, int64_t r, const float *row);

/* Copies that whole views needed; free them together. Begin with {0}. */
typedef struct Copies {
    int count;
    float *at[8];
} Copies;

/* A whole view as f32, by several threads: its storage, or a copy. */
const float *view_load(const ht_view *view, const char *operator, Copies * copies);

/* Where to write a whole view as f32, and what to call when it is written. */
float *view_target(const ht_view *view, const char *operator, Copies * copies);
void view_store(const ht_view *view, const float *from);

/* The same of a view whose rows, the dimensions from `first` on, may lie apart; *pitch: how far in
 * what is given. */
const float *view_load_rows(const ht_view *view, int first, const char *operator, Copies * copies,
                            int64_t *pitch);
float *view_target_rows(const ht_view *view, int first, const char *operator, Copies * copies,
                        int64_t *pitch);
void view_store_rows(const ht_view *view, int first, const float *from);

void copies_free(Copies *copies);

#endif
