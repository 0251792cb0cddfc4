/* Kernels from equations, for the CPU: threads share the rows, loops along a row are vectors. */
#include "emit/kernel/rows.h"

static RowsPlace place_in(const Rows *rows, int loop)
{
    return (RowsPlace){.around = {.outputs = &rows->outer, .contracted = &rows->inner, .access = text_row_access, .number = "at[$n]"},
                       .rows = rows,
                       .loop = loop,
                       .inside = true};
}

/* In front of a loop along the row: elements of the row have no place there. */
static RowsPlace place_before(const Rows *rows, int loop)
{
    RowsPlace place = place_in(rows, loop);
    place.around.contracted = NULL;
    place.inside = false;
    return place;
}

static int equation_count(const Rows *rows) { return rows->local->rule->equation_count; }

/* const float NAME_v = VALUE; rounded where others use it as it is stored. */
static void emit_value(Text *out, const RowsPlace *place, int equation, bool sum, int depth)
{
    int value = rows_value(place->rows, equation);
    bool rounds = rows_rounds(place->rows, value);
    indent(out, depth);
    text_print(out, "const %s %s_v = %s", rows_type(place->rows, value), rows_name(place->rows, value),
               rounds ? "ht_bf16_load(ht_bf16_store(" : "");
    if (sum)
        text_row_total(out, place, equation, arena_format(out->arena, "%s_s", rows_name(place->rows, value)));
    else
        text_row_value(out, place, equation);
    text_string(out, rounds ? "));\n" : ";\n");
}

/* NAME[...] = NAME_v; */
static void emit_store(Text *out, const RowsPlace *place, int equation, int depth)
{
    int value = rows_value(place->rows, equation);
    bool half = place->rows->local->results[value].value->type.dtype == DTYPE_BF16;
    indent(out, depth);
    text_row_result(out, place, value);
    text_print(out, half ? " = ht_bf16_store(%s_v);\n" : " = %s_v;\n", rows_name(place->rows, value));
}

/* What a loop does with one element: values, then sums and stores, since a result may lie where an operand does. */
static void emit_element(Text *out, const RowsPlace *place, int depth)
{
    const Rows *rows = place->rows;
    for (int e = 0; e < equation_count(rows); e++)
        if (rows_computes(rows, e, place->loop))
            emit_value(out, place, e, false, depth);
    for (int e = 0; e < equation_count(rows); e++)
        if (rows_adds(rows, e, place->loop)) {
            indent(out, depth);
            text_print(out, "%s_s += ", rows_name(rows, rows_value(rows, e)));
            text_row_terms(out, place, e);
            text_string(out, ";\n");
        }
    for (int e = 0; e < equation_count(rows); e++)
        if (rows_stores(rows, e, place->loop))
            emit_store(out, place, e, depth);
}

/* ---- rows ---- */

/* What is known of the row in front of a loop. */
static void emit_row_values(Text *out, const Rows *rows, int loop, int depth)
{
    RowsPlace place = place_before(rows, loop);
    for (int e = 0; e < equation_count(rows); e++) {
        if (!rows_follows(rows, e, loop))
            continue;
        emit_value(out, &place, e, rows->plan.step[e].form == EQUATION_SUM, depth);
        if (rows_is_result(rows, e))
            emit_store(out, &place, e, depth);
    }
}

/* The sums of a loop, from zero: returns them as a list. */
static const char *emit_sums(Text *out, const Rows *rows, int loop, int depth)
{
    Text names = {.arena = out->arena};
    for (int e = 0; e < equation_count(rows); e++)
        if (rows_adds(rows, e, loop)) {
            const char *name = rows_name(rows, rows_value(rows, e));
            indent(out, depth);
            text_print(out, "double %s_s = 0;\n", name);
            text_print(&names, names.length ? ", %s_s" : "%s_s", name);
        }
    return text_bytes(&names);
}

static void emit_row_loop(Text *out, const Rows *rows, int loop, int depth)
{
    RowsPlace place = place_in(rows, loop);
    const char *sums = emit_sums(out, rows, loop, depth);
    for (int l = 0; l < rows->inner.count; l++) {
        bool last = l == rows->inner.count - 1;
        if (last)
            text_print(out, *sums ? "#pragma omp simd reduction(+ : %s)\n" : "#pragma omp simd\n", sums);
        cpu_for(out, depth + l, &rows->inner.loop[l], last ? " {" : "");
    }
    emit_element(out, &place, depth + rows->inner.count);
    if (rows->inner.count) {
        indent(out, depth + rows->inner.count - 1);
        text_string(out, "}\n");
    }
}

static void emit_rows(Text *out, const Rows *rows)
{
    const Nest *outer = &rows->outer;
    int depth = 1;
    int64_t volume = nest_volume(outer, 0, outer->count) * nest_volume(&rows->inner, 0, rows->inner.count);
    if (volume >= cpu_parallel_from(rows->calls))
        cpu_parallel(out, outer->count);
    for (int l = 0; l < outer->count; l++)
        cpu_for(out, depth++, &outer->loop[l], l == outer->count - 1 ? " {" : "");
    for (int loop = 0; loop < rows->plan.loop_count; loop++) {
        emit_row_values(out, rows, loop, depth);
        emit_row_loop(out, rows, loop, depth);
    }
    emit_row_values(out, rows, rows->plan.loop_count, depth);
    if (outer->count) {
        indent(out, depth - 1);
        text_string(out, "}\n");
    }
}

/* ---- elements ---- */

static void emit_elements(Text *out, const Rows *rows)
{
    RowsPlace place = place_in(rows, 0);
    int depth = 1, open = cpu_vector_loops(out, &rows->outer, rows->calls, &depth);
    text_string(out, rows->outer.count ? " {\n" : "");
    emit_element(out, &place, depth);
    for (int b = 0; b < open + (rows->outer.count > 0); b++) {
        indent(out, depth - 1 - b);
        text_string(out, "}\n");
    }
}

void rows_cpu(Text *before, Text *out, const LocalOp *local, const Kernel *kernel)
{
    (void)before, (void)kernel;
    Rows rows = rows_of(out->arena, local);
    if (rows.plan.rows)
        emit_rows(out, &rows);
    else
        emit_elements(out, &rows);
}
