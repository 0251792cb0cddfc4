/* Kernels from bodies: a loop nest over the factors of a rule.
 *
 * Neighbouring factors that are contiguous in every tensor are merged. Results come out the same whatever the number of threads: every sum
 * has a fixed order.
 */
#include "emit/emitter.h"

#include <stdio.h>
#include <string.h>

enum { CHUNK = 4096, COLUMNS = 64, PARTS = 64, PARALLEL = 1 << 14, SERIAL_OUTPUTS = 16 };

/* A loop over merged factors; strides in elements, of the result first, then of each operand. */
typedef struct Loop {
    int64_t extent;
    int64_t stride[1 + EMIT_MAX_TENSORS];
    char name[8];
} Loop;

typedef struct Nest {
    int count;
    Loop loop[EMIT_MAX_FACTORS];
} Nest;

/* What the text of an access needs: the loops around it. */
typedef struct Around {
    const Nest *outputs, *contracted;
} Around;

static int64_t factor_stride(const Tensor *tensor, int factor)
{
    int64_t stride = 0, step = 1;
    for (int d = tensor->value ? tensor->bound->rank - 1 : -1; d >= 0; d--) {
        if (tensor->bound->dims[d].factors[0] == factor)
            stride += step;
        step *= tensor->extent[d];
    }
    return stride;
}

/* Appends a loop over a bound factor, merged with the one before where every tensor allows it. */
static void nest_add(Nest *nest, const LocalOp *local, int factor, char letter)
{
    if (local->extent[factor] == 1)
        return;
    Loop loop = {.extent = local->extent[factor]};
    loop.stride[0] = factor_stride(&local->results[0], factor);
    for (int k = 0; k < local->operand_count; k++)
        loop.stride[1 + k] = factor_stride(&local->operands[k], factor);
    Loop *before = nest->count ? &nest->loop[nest->count - 1] : NULL;
    bool merges = before;
    for (int k = 0; merges && k <= local->operand_count; k++)
        merges = before->stride[k] == loop.stride[k] * loop.extent;
    if (merges) {
        loop.extent *= before->extent;
        nest->count--;
    }
    snprintf(loop.name, sizeof loop.name, "%c%d", letter, nest->count);
    nest->loop[nest->count++] = loop;
}

static Nest output_nest(const LocalOp *local)
{
    Nest nest = {0};
    const BoundAccess *bound = local->results[0].bound;
    for (int d = 0; d < bound->rank; d++)
        nest_add(&nest, local, bound->dims[d].factors[0], 'i');
    return nest;
}

/* The contracted factors of a set, in the order in which the operands have them. */
static Nest contracted_nest(const LocalOp *local, uint32_t set)
{
    Nest nest = {0};
    for (int k = 0; k < local->operand_count; k++)
        for (int d = 0; local->operands[k].value && d < local->operands[k].bound->rank; d++) {
            int factor = local->operands[k].bound->dims[d].factors[0];
            if (set >> factor & 1)
                nest_add(&nest, local, factor, 'k');
            set &= ~(1u << factor);
        }
    return nest;
}

static int64_t nest_volume(const Nest *nest, int first, int last)
{
    int64_t volume = 1;
    for (int l = first; l < last; l++)
        volume *= nest->loop[l].extent;
    return volume;
}

static void emit_index(Text *out, const Nest *nest, int tensor, bool *any)
{
    for (int l = 0; nest && l < nest->count; l++) {
        const Loop *loop = &nest->loop[l];
        if (!loop->stride[tensor])
            continue;
        text_print(out, "%s%s", *any ? " + " : "", loop->name);
        if (loop->stride[tensor] != 1)
            text_print(out, " * %lld", (long long)loop->stride[tensor]);
        *any = true;
    }
}

/* NAME[i0 * 768 + i1] */
static void emit_element(Text *out, const Tensor *tensor, const Around *around, int number)
{
    bool any = false;
    text_print(out, "%s[", tensor->name);
    emit_index(out, around->outputs, number, &any);
    emit_index(out, around->contracted, number, &any);
    text_string(out, any ? "]" : "0]");
}

static void write_access(Text *out, const LocalOp *local, int operand, void *context)
{
    const Tensor *tensor = &local->operands[operand];
    bool half = tensor->value->type.dtype == DTYPE_BF16;
    text_string(out, half ? "ht_bf16_load(" : "");
    emit_element(out, tensor, context, 1 + operand);
    text_string(out, half ? ")" : "");
}

/* Whether exactly one term is summed over exactly the factors of `set`, added as it is. */
static bool one_term(const LocalOp *local, uint32_t set)
{
    int count = 0;
    for (int t = 0; t < local->term_count; t++)
        if (local->terms[t].contracted == set)
            count += 1 + local->terms[t].flagged + local->terms[t].minus;
    return count == 1;
}

/* Appends the sum of the terms over exactly the factors of `set`; `first`: nothing stands before it. Returns whether something stands there
 * now. */
static bool emit_terms(Text *out, const LocalOp *local, uint32_t set, const Around *around, bool first)
{
    int flag = 0;
    bool alone = first && one_term(local, set);
    for (int t = 0; t < local->term_count; t++) {
        const Term *term = &local->terms[t];
        int mine = term->flagged ? flag++ : -1;
        if (term->contracted != set)
            continue;
        text_string(out, first ? term->minus ? "-" : "" : term->minus ? " - " : " + ");
        first = false;
        bool brackets = !alone && term->expr->kind >= EXPR_LT && term->expr->kind <= EXPR_SELECT;
        if (mine >= 0)
            text_print(out, "(at[%d] ? ", mine);
        text_string(out, brackets ? "(" : "");
        emit_expr(out, local, term->expr, write_access, (void *)around);
        text_string(out, brackets ? ")" : "");
        if (mine >= 0)
            text_string(out, " : 0)");
    }
    return !first;
}

static void indent(Text *out, int depth) { text_print(out, "%*s", 4 * depth, ""); }

static void emit_for(Text *out, int depth, const Loop *loop, const char *end)
{
    indent(out, depth);
    text_print(out, "for (long %s = 0; %s < %lld; %s++)%s\n", loop->name, loop->name, (long long)loop->extent, loop->name, end);
}

/* `#pragma omp parallel for` over the next `loops` loops. */
static void emit_parallel(Text *out, int loops)
{
    if (loops == 1)
        text_string(out, "#pragma omp parallel for\n");
    else if (loops > 1)
        text_print(out, "#pragma omp parallel for collapse(%d)\n", loops);
}

/* Opens a loop over chunks of `step` indices, from c to before end. */
static void emit_chunks(Text *out, int depth, int64_t extent, int step)
{
    Arena *arena = out->arena;
    const char *total = arena_format(arena, "%lld", (long long)extent), *size = arena_format(arena, "%d", step),
               *blanks = arena_format(arena, "%*s", 4 * depth, "");
    indent(out, depth);
    text_fill(out,
              "for (long c = 0; c < $total; c += $size) {\n"
              "$b    long end = c + $size < $total ? c + $size : $total;\n",
              "b", blanks, "total", total, "size", size, NULL);
}

static bool has_calls(const Expr *expr)
{
    bool calls = expr->kind == EXPR_CALL;
    for (int a = 0; a < expr->arg_count; a++)
        calls = calls || has_calls(expr->arg[a]);
    return calls;
}

/* Elements from which threads pay. */
static int64_t parallel_from(const LocalOp *local) { return has_calls(local->rule->body) ? PARALLEL / 8 : PARALLEL; }

/* RESULT[...] = */
static void emit_target(Text *out, const LocalOp *local, const Around *around)
{
    DType dtype = local->results[0].value->type.dtype;
    emit_element(out, &local->results[0], around, 0);
    text_string(out, dtype == DTYPE_BF16 ? " = ht_bf16_store(" : " = ");
}

static void emit_target_end(Text *out, const LocalOp *local)
{
    text_string(out, local->results[0].value->type.dtype == DTYPE_BF16 ? ");\n" : ";\n");
}

static void emit_assignment(Text *out, const LocalOp *local, const Around *around, int depth)
{
    indent(out, depth);
    emit_target(out, local, around);
    if (!emit_terms(out, local, 0, around, true))
        text_string(out, "0");
    emit_target_end(out, local);
}

/* A body that contracts nothing. */
static void emit_elementwise(Text *out, const LocalOp *local, const Nest *outputs)
{
    Around around = {.outputs = outputs};
    int last = outputs->count - 1;
    if (last < 0) {
        emit_assignment(out, local, &around, 1);
        return;
    }
    const Loop *inner = &outputs->loop[last];
    bool parallel = nest_volume(outputs, 0, outputs->count) >= parallel_from(local);
    bool chunked = parallel && inner->extent > 2 * CHUNK;
    int depth = 1;
    if (parallel && (last || chunked))
        emit_parallel(out, last + chunked);
    for (int l = 0; l < last; l++)
        emit_for(out, depth++, &outputs->loop[l], "");
    if (chunked)
        emit_chunks(out, depth++, inner->extent, CHUNK);
    text_string(out, "#pragma omp simd\n");
    indent(out, depth);
    if (chunked)
        text_print(out, "for (long %s = c; %s < end; %s++)\n", inner->name, inner->name, inner->name);
    else
        text_print(out, "for (long %s = 0; %s < %lld; %s++)\n", inner->name, inner->name, (long long)inner->extent, inner->name);
    emit_assignment(out, local, &around, depth + 1);
    if (chunked) {
        indent(out, depth - 1);
        text_string(out, "}\n");
    }
}

/* ---- sums ---- */

static bool has_terms(const LocalOp *local, uint32_t set)
{
    for (int t = 0; t < local->term_count; t++)
        if (local->terms[t].contracted == set)
            return true;
    return false;
}

/* The distinct sets of contracted factors, without the empty one and those that are empty on this device. */
static int contracted_sets(const LocalOp *local, uint32_t *sets)
{
    int count = 0;
    for (int t = 0; t < local->term_count; t++) {
        uint32_t set = local->terms[t].contracted;
        bool known = !set;
        for (int s = 0; s < count; s++)
            known = known || sets[s] == set;
        for (int f = 0; f < local->factor_count; f++)
            known = known || (set >> f & 1 && !local->extent[f]);
        if (!known)
            sets[count++] = set;
    }
    return count;
}

static const char *sum_type(const LocalOp *local)
{
    DType dtype = local->results[0].value->type.dtype;
    return dtype == DTYPE_I32 || dtype == DTYPE_I64 ? "int64_t" : "double";
}

/* SUM += terms; inside the loops over `contracted`. */
static void emit_addition(Text *out, const LocalOp *local, uint32_t set, const Around *around, const char *sum, int depth)
{
    indent(out, depth);
    text_print(out, "%s += ", sum);
    emit_terms(out, local, set, around, true);
    text_string(out, ";\n");
}

/* The loops of a scalar sum; the outermost runs over `range` when that is given: "long k0 = FROM; k0 < TO; k0++". */
static void emit_scalar_sum(Text *out, const LocalOp *local, uint32_t set, const Around *around, const char *range, const char *sum,
                            int depth)
{
    const Nest *nest = around->contracted;
    for (int l = 0; l < nest->count; l++) {
        const Loop *loop = &nest->loop[l];
        if (l == nest->count - 1)
            text_print(out, "#pragma omp simd reduction(+ : %s)\n", sum);
        if (l == 0 && range) {
            indent(out, depth++);
            text_print(out, "for (%s)\n", range);
        } else {
            emit_for(out, depth++, loop, "");
        }
    }
    emit_addition(out, local, set, around, sum, depth);
}

/* A long sum in PARTS parts of fixed borders, so that threads share it. */
static void emit_parted_sum(Text *out, const LocalOp *local, uint32_t set, const Around *around, int depth)
{
    const Loop *outer = &around->contracted->loop[0];
    Arena *arena = out->arena;
    long long extent = (long long)outer->extent;
    const char *parts = arena_format(arena, "%d", PARTS), *blanks = arena_format(arena, "%*s", 4 * depth, "");
    const char *range = arena_format(arena, "long %s = %lldL * c / %d; %s < %lldL * (c + 1) / %d; %s++", outer->name, extent, PARTS,
                                     outer->name, extent, PARTS, outer->name);
    text_fill(out,
              "$b{\n"
              "$b    $type part[$parts];\n"
              "#pragma omp parallel for\n"
              "$b    for (int c = 0; c < $parts; c++) {\n"
              "$b        $type s = 0;\n",
              "b", blanks, "type", sum_type(local), "parts", parts, NULL);
    emit_scalar_sum(out, local, set, around, range, "s", depth + 2);
    text_fill(out,
              "$b        part[c] = s;\n"
              "$b    }\n"
              "$b    for (int c = 0; c < $parts; c++)\n"
              "$b        sum += part[c];\n"
              "$b}\n",
              "b", blanks, "parts", parts, NULL);
}

/* RESULT = sum + the terms that are not summed */
static void emit_sum_result(Text *out, const LocalOp *local, const Nest *outputs, const char *sum, int depth)
{
    Around around = {.outputs = outputs};
    indent(out, depth);
    emit_target(out, local, &around);
    text_print(out, "(%s)%s%s", local->results[0].value->type.dtype == DTYPE_BF16 ? "float" : c_type(local->results[0].value->type.dtype),
               has_terms(local, 0) ? "(" : "", sum);
    if (emit_terms(out, local, 0, &around, false) && has_terms(local, 0))
        text_string(out, ")");
    emit_target_end(out, local);
}

/* One sum for each element of the result. */
static void emit_row_sums(Text *out, const LocalOp *local, const Nest *outputs, const uint32_t *sets, int set_count, int64_t volume)
{
    int depth = 1;
    int64_t results = nest_volume(outputs, 0, outputs->count);
    bool parallel = volume >= PARALLEL && results >= SERIAL_OUTPUTS, parted = volume >= PARALLEL && !parallel;
    if (parallel)
        emit_parallel(out, outputs->count);
    for (int l = 0; l < outputs->count; l++)
        emit_for(out, depth++, &outputs->loop[l], l == outputs->count - 1 ? " {" : "");
    indent(out, depth);
    text_print(out, "%s sum = 0;\n", sum_type(local));
    for (int s = 0; s < set_count; s++) {
        Nest contracted = contracted_nest(local, sets[s]);
        Around around = {.outputs = outputs, .contracted = &contracted};
        if (parted && nest_volume(&contracted, 0, contracted.count) >= PARALLEL / SERIAL_OUTPUTS)
            emit_parted_sum(out, local, sets[s], &around, depth);
        else
            emit_scalar_sum(out, local, sets[s], &around, NULL, "sum", depth);
    }
    emit_sum_result(out, local, outputs, "sum", depth);
    if (outputs->count) {
        indent(out, depth - 1);
        text_string(out, "}\n");
    }
}

static void emit_column_loop(Text *out, const Loop *inner, int depth)
{
    text_string(out, "#pragma omp simd\n");
    indent(out, depth);
    text_print(out, "for (long %s = c; %s < end; %s++)\n", inner->name, inner->name, inner->name);
}

/* Sums over rows, COLUMNS neighbouring elements of the result at a time. */
static void emit_column_sums(Text *out, const LocalOp *local, const Nest *outputs, const uint32_t *sets, int set_count, int64_t volume)
{
    const Loop *inner = &outputs->loop[outputs->count - 1];
    const char *sum = arena_format(out->arena, "sum[%s - c]", inner->name);
    int depth = 1;
    if (volume >= PARALLEL)
        emit_parallel(out, outputs->count);
    for (int l = 0; l < outputs->count - 1; l++)
        emit_for(out, depth++, &outputs->loop[l], "");
    emit_chunks(out, depth++, inner->extent, COLUMNS);
    indent(out, depth);
    text_print(out, "%s sum[%d] = {0};\n", sum_type(local), COLUMNS);
    for (int s = 0; s < set_count; s++) {
        Nest contracted = contracted_nest(local, sets[s]);
        Around around = {.outputs = outputs, .contracted = &contracted};
        int inside = depth;
        for (int l = 0; l < contracted.count; l++)
            emit_for(out, inside++, &contracted.loop[l], "");
        emit_column_loop(out, inner, inside);
        emit_addition(out, local, sets[s], &around, sum, inside + 1);
    }
    emit_column_loop(out, inner, depth);
    emit_sum_result(out, local, outputs, sum, depth + 1);
    indent(out, depth - 1);
    text_string(out, "}\n");
}

/* Whether the largest operand is contiguous along the innermost loop of the result rather than along a contracted one. */
static bool sums_columns(const LocalOp *local, const Nest *outputs, uint32_t set)
{
    if (!outputs->count || outputs->loop[outputs->count - 1].extent < 8)
        return false;
    int largest = 0;
    for (int k = 1; k < local->operand_count; k++)
        if (tensor_count(&local->operands[k]) > tensor_count(&local->operands[largest]))
            largest = k;
    Nest contracted = contracted_nest(local, set);
    for (int l = 0; l < contracted.count; l++)
        if (contracted.loop[l].stride[1 + largest] == 1)
            return false;
    return outputs->loop[outputs->count - 1].stride[1 + largest] == 1;
}

void emit_body(Text *out, const LocalOp *local)
{
    uint32_t *sets = arena_array(out->arena, uint32_t, local->term_count + 1);
    int set_count = contracted_sets(local, sets);
    Nest outputs = output_nest(local);
    if (!set_count) {
        emit_elementwise(out, local, &outputs);
        return;
    }
    int64_t volume = 1;
    for (int f = 0; f < local->factor_count; f++)
        volume *= local->extent[f] ? local->extent[f] : 1;
    if (sums_columns(local, &outputs, sets[0]))
        emit_column_sums(out, local, &outputs, sets, set_count, volume);
    else
        emit_row_sums(out, local, &outputs, sets, set_count, volume);
}
