/* Embedding and its backward: looks up rows of a table by token; adds gradients to these rows. Of a
 * cut table (vocabulary parallelism), rows of other devices give 0; a reduction adds up results. */
#include "cpu/cpu.h"
#include "operators/kernels.h"
#include "cpu/rows.h"

#include <stdlib.h>
#include <string.h>

/* Returns the local row of token id[i] in this device's piece of the table, or -1 if another device
 * has that row. Ends the program if the token is outside the whole table. */
static int64_t row_of(const ht_view *id, int64_t i, const ht_view *table) {
    int64_t token = cpu_index(id, i);
    if (token < 0 || token >= table->global[0])
        ht_fail("token %ld at element %ld is outside the table's %ld rows", (long)token,
                (long)ht_view_element(id, i), (long)table->global[0]);
    return ht_view_find(table, 0, token);
}

void ht_embedding_kernel(const ht_call *call) {
    const ht_view *table = &call->operand[0], *id = &call->operand[1];
    char *y = call->result[0].data;
    const char *from = table->data;
    cpu_need_integers(id, "embedding");
    if (call->result[0].dtype != table->dtype)
        ht_fail("embedding gives rows of the table's type only; cast them");
    int64_t count = cpu_count(id), bytes = table->extent[1] * (int)ht_dtype_bytes(table->dtype);
#pragma omp parallel for schedule(static) if (count * bytes > 4 * CPU_PARALLEL)
    for (int64_t i = 0; i < count; i++) {
        int64_t row = row_of(id, i, table);
        if (row < 0) memset(y + i * bytes, 0, (size_t)bytes);
        else memcpy(y + i * bytes, from + row * bytes, (size_t)bytes);
    }
}

HT_CLONES static void add_row(float *restrict to, const float *restrict from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

/* Arguments of backward: the table's gradient, its initial values (NULL: zeros), the result's
 * gradient, and for `count` tokens the row of the table (-1: on another device). */
typedef struct TableGradient {
    float *table;
    const float *more;
    Rows dy;
    const int64_t *row;
    int64_t count;
} TableGradient;

/* Computes the rows [first, last) of the table's gradient. Each row starts from `more`; then each
 * row of dy is added to the row of its token, in token order. */
static void gather_rows(const TableGradient *g, int64_t first, int64_t last) {
    int64_t n = g->dy.n;
    float *scratch = cpu_alloc((size_t)n * sizeof(float)), *to = g->table + first * n;
    size_t bytes = (size_t)((last - first) * n) * sizeof(float);
    if (!g->more) memset(to, 0, bytes);
    else if (g->more != g->table) memcpy(to, g->more + first * n, bytes);
    for (int64_t i = 0; i < g->count; i++)
        if (g->row[i] >= first && g->row[i] < last)
            add_row(g->table + g->row[i] * n, row_load(&g->dy, i, scratch), n);
    free(scratch);
}

void ht_embedding_backward_kernel(const ht_call *call) {
    const ht_view *id = &call->operand[1], *table = &call->result[0];
    int64_t count = cpu_count(id), rows = table->extent[0];
    int64_t *row = cpu_alloc((size_t)count * sizeof(int64_t));
    TableGradient gradient = {.table = cpu_f32(table, "embedding"),
                              .more = cpu_f32(&call->operand[2], "embedding"),
                              .dy = rows_of(&call->operand[0], "embedding"),
                              .row = row,
                              .count = count};
    for (int64_t i = 0; i < count; i++) row[i] = row_of(id, i, table);
    int64_t parts = rows < 64 ? rows : 64;
#pragma omp parallel for schedule(static) if (rows * gradient.dy.n > CPU_PARALLEL)
    for (int64_t p = 0; p < parts; p++)
        gather_rows(&gradient, rows * p / parts, rows * (p + 1) / parts);
    free(row);
}
