/* Kernels from bodies, for the CPU: a loop nest over the factors of a rule. Threads share the outer
 * loops, and the innermost loop is vectorised.
 *
 *     y[b, o] = x[b, o] + bias[o]    ->    #pragma omp parallel for
 *                                          for (long i0 = 0; i0 < 8; i0++)
 *                                          #pragma omp simd
 *                                              for (long i1 = 0; i1 < 256; i1++) ...
 *
 * Results do not depend on the number of threads, because every sum has a fixed order. */
#include "emit/cpu/loops.h"

enum { CHUNK = 4096, COLUMNS = 64, PARTS = 64, PARALLEL = 1 << 14, SERIAL_OUTPUTS = 16 };

static Around around_of(const Nest *outputs, const Nest *contracted) {
    return (Around){
        .outputs = outputs, .contracted = contracted, .access = text_element, .number = "at[$n]"};
}

void cpu_for(Text *out, int depth, const Loop *loop, const char *end) {
    indent(out, depth);
    text_print(out, "for (long %s = 0; %s < %lld; %s++)%s\n", loop->name, loop->name,
               (long long)loop->extent, loop->name, end);
}

void cpu_parallel(Text *out, int loops) {
    if (loops == 1) text_string(out, "#pragma omp parallel for\n");
    else if (loops > 1) text_print(out, "#pragma omp parallel for collapse(%d)\n", loops);
}

/* Opens a loop over chunks [c, end) of `step` indices. */
static void emit_chunks(Text *out, int depth, int64_t extent, int step) {
    Arena *arena = out->arena;
    const char *total = arena_format(arena, "%lld", (long long)extent),
               *size = arena_format(arena, "%d", step),
               *blanks = arena_format(arena, "%*s", 4 * depth, "");
    indent(out, depth);
    text_fill(out,
              "for (long c = 0; c < $total; c += $size) {\n"
              "$b    long end = c + $size < $total ? c + $size : $total;\n",
              "b", blanks, "total", total, "size", size, NULL);
}

int64_t cpu_parallel_from(bool calls) { return calls ? PARALLEL / 8 : PARALLEL; }

static void emit_assignment(Text *out, const LocalOp *local, const Around *around, int depth) {
    indent(out, depth);
    text_result(out, local, around);
    if (!text_terms(out, local, 0, around, true)) text_string(out, "0");
    text_result_end(out, local);
}

int cpu_vector_loops(Text *out, const Nest *nest, bool calls, int *depth) {
    int last = nest->count - 1;
    if (last < 0) return 0;
    const Loop *inner = &nest->loop[last];
    bool parallel = nest_volume(nest, 0, nest->count) >= cpu_parallel_from(calls);
    bool chunked = parallel && inner->extent > 2 * CHUNK;
    if (parallel && (last || chunked)) cpu_parallel(out, last + chunked);
    for (int l = 0; l < last; l++) cpu_for(out, (*depth)++, &nest->loop[l], "");
    if (chunked) emit_chunks(out, (*depth)++, inner->extent, CHUNK);
    text_string(out, "#pragma omp simd\n");
    indent(out, (*depth)++);
    if (chunked)
        text_print(out, "for (long %s = c; %s < end; %s++)", inner->name, inner->name, inner->name);
    else
        text_print(out, "for (long %s = 0; %s < %lld; %s++)", inner->name, inner->name,
                   (long long)inner->extent, inner->name);
    return chunked;
}

/* Appends a body without sums. */
static void emit_elementwise(Text *out, const LocalOp *local, const Nest *outputs) {
    Around around = around_of(outputs, NULL);
    int depth = 1,
        open = cpu_vector_loops(out, outputs, calls_functions(local->rule->body), &depth);
    text_string(out, outputs->count ? "\n" : "");
    emit_assignment(out, local, &around, depth);
    if (open) close_bracket(out, depth - 2);
}

/* ---- sums ---- */

/* A body with sums while it is written. */
typedef struct Sums {
    Text *out;
    const LocalOp *local;
    const Nest *outputs;  // loops over the elements of the result
    const uint32_t *sets; // the distinct sets of contracted factors
    int set_count;
    int64_t volume; // product of the local extents of all factors
} Sums;

/* The terms that are summed over one set of factors, their loops, and the variable of the sum. */
typedef struct Addition {
    uint32_t set;
    const Around *around;
    const char *sum;
} Addition;

/* Appends `SUM += terms;` inside the loops over the contracted factors. */
static void emit_addition(const Sums *sums, const Addition *addition, int depth) {
    indent(sums->out, depth);
    text_print(sums->out, "%s += ", addition->sum);
    text_terms(sums->out, sums->local, addition->set, addition->around, true);
    text_string(sums->out, ";\n");
}

/* Appends the loops of a scalar sum. The outermost runs over `range`, "long k0 = FROM; k0 < TO;
 * k0++"; NULL: over its whole extent. */
static void emit_scalar_sum(const Sums *sums, const Addition *addition, const char *range,
                            int depth) {
    Text *out = sums->out;
    const Nest *nest = addition->around->contracted;
    for (int l = 0; l < nest->count; l++) {
        const Loop *loop = &nest->loop[l];
        if (l == nest->count - 1)
            text_print(out, "#pragma omp simd reduction(+ : %s)\n", addition->sum);
        if (l == 0 && range) {
            indent(out, depth++);
            text_print(out, "for (%s)\n", range);
        } else {
            cpu_for(out, depth++, loop, "");
        }
    }
    emit_addition(sums, addition, depth);
}

/* Appends a long sum in PARTS parts, which threads share. The borders of the parts do not depend on
 * the number of threads, so neither do the bits of the sum. */
static void emit_parted_sum(const Sums *sums, const Addition *addition, int depth) {
    const Loop *outer = &addition->around->contracted->loop[0];
    Text *out = sums->out;
    Arena *arena = out->arena;
    long long extent = (long long)outer->extent;
    const char *parts = arena_format(arena, "%d", PARTS),
               *blanks = arena_format(arena, "%*s", 4 * depth, "");
    const char *range =
        arena_format(arena, "long %s = %lldL * c / %d; %s < %lldL * (c + 1) / %d; %s++",
                     outer->name, extent, PARTS, outer->name, extent, PARTS, outer->name);
    text_fill(out,
              "$b{\n"
              "$b    $type part[$parts];\n"
              "#pragma omp parallel for\n"
              "$b    for (int c = 0; c < $parts; c++) {\n"
              "$b        $type s = 0;\n",
              "b", blanks, "type", sum_type(sums->local), "parts", parts, NULL);
    emit_scalar_sum(sums, &(Addition){addition->set, addition->around, "s"}, range, depth + 2);
    text_fill(out,
              "$b        part[c] = s;\n"
              "$b    }\n"
              "$b    for (int c = 0; c < $parts; c++)\n"
              "$b        sum += part[c];\n"
              "$b}\n",
              "b", blanks, "parts", parts, NULL);
}

/* Appends RESULT = sum + the terms that are not summed. */
static void emit_sum_result(const Sums *sums, const char *sum, int depth) {
    Around around = around_of(sums->outputs, NULL);
    indent(sums->out, depth);
    text_result(sums->out, sums->local, &around);
    text_sum_value(sums->out, sums->local, &around, sum);
    text_result_end(sums->out, sums->local);
}

/* Appends one sum for each element of the result. */
static void emit_row_sums(const Sums *sums) {
    Text *out = sums->out;
    const Nest *outputs = sums->outputs;
    int depth = 1;
    int64_t results = nest_volume(outputs, 0, outputs->count);
    bool parallel = sums->volume >= PARALLEL && results >= SERIAL_OUTPUTS,
         parted = sums->volume >= PARALLEL && !parallel;
    if (parallel) cpu_parallel(out, outputs->count);
    for (int l = 0; l < outputs->count; l++)
        cpu_for(out, depth++, &outputs->loop[l], l == outputs->count - 1 ? " {" : "");
    indent(out, depth);
    text_print(out, "%s sum = 0;\n", sum_type(sums->local));
    for (int s = 0; s < sums->set_count; s++) {
        Nest contracted = nest_of_sum(sums->local, sums->sets[s]);
        Around around = around_of(outputs, &contracted);
        Addition addition = {sums->sets[s], &around, "sum"};
        if (parted && nest_volume(&contracted, 0, contracted.count) >= PARALLEL / SERIAL_OUTPUTS)
            emit_parted_sum(sums, &addition, depth);
        else emit_scalar_sum(sums, &addition, NULL, depth);
    }
    emit_sum_result(sums, "sum", depth);
    if (outputs->count) close_bracket(out, depth - 1);
}

static void emit_column_loop(Text *out, const Loop *inner, int depth) {
    text_string(out, "#pragma omp simd\n");
    indent(out, depth);
    text_print(out, "for (long %s = c; %s < end; %s++)\n", inner->name, inner->name, inner->name);
}

/* Appends sums over rows that compute COLUMNS neighbouring elements of the result at a time. */
static void emit_column_sums(const Sums *sums) {
    Text *out = sums->out;
    const Nest *outputs = sums->outputs;
    const Loop *inner = &outputs->loop[outputs->count - 1];
    const char *sum = arena_format(out->arena, "sum[%s - c]", inner->name);
    int depth = 1;
    if (sums->volume >= PARALLEL) cpu_parallel(out, outputs->count);
    for (int l = 0; l < outputs->count - 1; l++) cpu_for(out, depth++, &outputs->loop[l], "");
    emit_chunks(out, depth++, inner->extent, COLUMNS);
    indent(out, depth);
    text_print(out, "%s sum[%d] = {0};\n", sum_type(sums->local), COLUMNS);
    for (int s = 0; s < sums->set_count; s++) {
        Nest contracted = nest_of_sum(sums->local, sums->sets[s]);
        Around around = around_of(outputs, &contracted);
        int inside = depth;
        for (int l = 0; l < contracted.count; l++) cpu_for(out, inside++, &contracted.loop[l], "");
        emit_column_loop(out, inner, inside);
        emit_addition(sums, &(Addition){sums->sets[s], &around, sum}, inside + 1);
    }
    emit_column_loop(out, inner, depth);
    emit_sum_result(sums, sum, depth + 1);
    close_bracket(out, depth - 1);
}

void loops_cpu(Text *before, Text *out, const LocalOp *local, const Kernel *kernel) {
    (void)before, (void)kernel;
    uint32_t *sets = arena_array(out->arena, uint32_t, local->term_count + 1);
    int set_count = contracted_sets(local, sets);
    Nest outputs = nest_of_result(local);
    if (!set_count) {
        emit_elementwise(out, local, &outputs);
        return;
    }
    Sums sums = {out, local, &outputs, sets, set_count, .volume = 1};
    for (int f = 0; f < local->factor_count; f++)
        sums.volume *= local->extent[f] ? local->extent[f] : 1;
    if (sums_columns(local, &outputs, sets[0])) emit_column_sums(&sums);
    else emit_row_sums(&sums);
}
