/* Kernels from equations, for the CPU: threads share the rows, loops along a row are vectorised. */
#include "emit/kernel/rows.h"

#include "emit/cpu/loops.h"

static RowsPlace place_in(const Rows *rows, int loop) {
    return rows_place(rows, loop, text_row_access, NULL);
}

/* Returns the place before a loop along the row, where elements of the row have no index. */
static RowsPlace place_before(const Rows *rows, int loop) {
    RowsPlace place = place_in(rows, loop);
    place.around.contracted = NULL;
    return place;
}

static void emit_element(Text *out, const RowsPlace *place, int depth) {
    emit_row_element(out, place, depth);
    for (int e = 0; e < place->rows->equation_count; e++)
        if (rows_stores(place->rows, e, place->loop)) emit_row_store(out, place, e, depth);
}

/* Appends the row values, such as sums, that are complete right before a loop; stores results. */
static void emit_row_values(Text *out, const Rows *rows, int loop, int depth) {
    RowsPlace place = place_before(rows, loop);
    for (int e = 0; e < rows->equation_count; e++) {
        if (!rows_follows(rows, e, loop)) continue;
        const char *sum = arena_format(out->arena, "%s_s", rows_name(rows, rows_value(rows, e)));
        emit_row_value(out, &place, e, rows->plan.step[e].form == EQUATION_SUM ? sum : NULL, depth);
        if (rows_is_result(rows, e)) emit_row_store(out, &place, e, depth);
    }
}

/* Appends the variables of a loop's sums, set to 0. Returns their names as a list. */
static const char *emit_sums(Text *out, const Rows *rows, int loop, int depth) {
    Text names = {.arena = out->arena};
    for (int e = 0; e < rows->equation_count; e++)
        if (rows_adds(rows, e, loop)) {
            const char *name = rows_name(rows, rows_value(rows, e));
            indent(out, depth);
            text_print(out, "double %s_s = 0;\n", name);
            text_print(&names, names.length ? ", %s_s" : "%s_s", name);
        }
    return text_bytes(&names);
}

static void emit_row_loop(Text *out, const Rows *rows, int loop, int depth) {
    RowsPlace place = place_in(rows, loop);
    const char *sums = emit_sums(out, rows, loop, depth);
    for (int l = 0; l < rows->inner.count; l++) {
        bool last = l == rows->inner.count - 1;
        if (last)
            text_print(out, *sums ? "#pragma omp simd reduction(+ : %s)\n" : "#pragma omp simd\n",
                       sums);
        cpu_for(out, depth + l, &rows->inner.loop[l], last ? " {" : "");
    }
    emit_element(out, &place, depth + rows->inner.count);
    if (rows->inner.count) close_bracket(out, depth + rows->inner.count - 1);
}

static void emit_rows(Text *out, const Rows *rows) {
    const Nest *outer = &rows->outer;
    int depth = 1;
    int64_t volume =
        nest_volume(outer, 0, outer->count) * nest_volume(&rows->inner, 0, rows->inner.count);
    if (volume >= cpu_parallel_from(rows->calls)) cpu_parallel(out, outer->count);
    for (int l = 0; l < outer->count; l++)
        cpu_for(out, depth++, &outer->loop[l], l == outer->count - 1 ? " {" : "");
    for (int loop = 0; loop < rows->plan.loop_count; loop++) {
        emit_row_values(out, rows, loop, depth);
        emit_row_loop(out, rows, loop, depth);
    }
    emit_row_values(out, rows, rows->plan.loop_count, depth);
    if (outer->count) close_bracket(out, depth - 1);
}

static void emit_elements(Text *out, const Rows *rows) {
    RowsPlace place = place_in(rows, 0);
    int depth = 1, open = cpu_vector_loops(out, &rows->outer, rows->calls, &depth);
    text_string(out, rows->outer.count ? " {\n" : "");
    emit_element(out, &place, depth);
    for (int b = 0; b < open + (rows->outer.count > 0); b++) close_bracket(out, depth - 1 - b);
}

void rows_cpu(Text *before, Text *out, const LocalOp *local, const Kernel *kernel) {
    (void)before, (void)kernel;
    Rows rows = rows_of(out->arena, local);
    if (rows.plan.rows) emit_rows(out, &rows);
    else emit_elements(out, &rows);
}
