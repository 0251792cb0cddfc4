/* Orders and merges the loops of a body; says in which type sums add up (sum_type). cpu/loops.c and
 * cuda/loops.c add threads and vectorisation. */
#include "emit/kernel/loops.h"

#include "emit/words.h"

#include <stdio.h>

/* ---- nests ---- */

/* Appends a loop over a bound factor of extent > 1, merged with the last loop if strides allow. */
static void nest_add(Nest *nest, const LocalOp *local, int factor, char letter) {
    if (local->extent[factor] == 1) return;
    Loop loop = {.extent = local->extent[factor]};
    for (int t = 0; t < local->tensor_count; t++)
        loop.stride[t] = tensor_stride(&local->tensors[t], factor);
    Loop *before = nest->count ? &nest->loop[nest->count - 1] : NULL;
    bool merges = before;
    for (int t = 0; merges && t < local->tensor_count; t++)
        merges = before->stride[t] == loop.stride[t] * loop.extent;
    if (merges) {
        loop.extent *= before->extent;
        nest->count--;
    }
    snprintf(loop.name, sizeof loop.name, "%c%d", letter, nest->count);
    nest->loop[nest->count++] = loop;
}

Nest nest_of_result(const LocalOp *local) {
    Nest nest = {0};
    const BoundAccess *bound = local->results[0].bound;
    for (int d = 0; d < bound->rank; d++) nest_add(&nest, local, bound->dims[d].factors[0], 'i');
    return nest;
}

Nest nest_of_sum(const LocalOp *local, uint32_t contracted) {
    Nest nest = {0};
    for (int k = 0; k < local->operand_count; k++)
        for (int d = 0; local->operands[k].value && d < local->operands[k].bound->rank; d++) {
            int factor = local->operands[k].bound->dims[d].factors[0];
            if (contracted >> factor & 1) nest_add(&nest, local, factor, 'k');
            contracted &= ~(1u << factor);
        }
    return nest;
}

Nest nest_of_factors(const LocalOp *local, const int *factors, int count, char letter) {
    Nest nest = {0};
    for (int f = 0; f < count; f++) nest_add(&nest, local, factors[f], letter);
    return nest;
}

int64_t nest_volume(const Nest *nest, int first, int last) {
    int64_t volume = 1;
    for (int l = first; l < last; l++) volume *= nest->loop[l].extent;
    return volume;
}

const Loop *nest_inner(const Nest *nest) {
    return nest->count ? &nest->loop[nest->count - 1] : NULL;
}

/* ---- elements ---- */

static void nest_index(Text *out, const Nest *nest, int tensor, bool *any) {
    for (int l = 0; nest && l < nest->count; l++) {
        const Loop *loop = &nest->loop[l];
        if (!loop->stride[tensor]) continue;
        text_print(out, "%s%s", *any ? " + " : "", loop->name);
        if (loop->stride[tensor] != 1) text_print(out, " * %lld", (long long)loop->stride[tensor]);
        *any = true;
    }
}

void text_index(Text *out, const Around *around, int tensor) {
    bool any = false;
    nest_index(out, around->outputs, tensor, &any);
    nest_index(out, around->contracted, tensor, &any);
    text_string(out, any ? "" : "0");
}

void text_tensor(Text *out, const LocalOp *local, int number, const Around *around) {
    const Tensor *tensor = &local->tensors[number];
    text_print(out, "%s%s[", tensor_is_half(tensor) ? "ht_bf16_load(" : "", tensor->name);
    text_index(out, around, number);
    text_string(out, tensor_is_half(tensor) ? "])" : "]");
}

void text_element(Text *out, const LocalOp *local, int operand, void *around) {
    text_tensor(out, local, local->result_count + operand, around);
}

void text_result(Text *out, const LocalOp *local, const Around *around) {
    text_print(out, "%s[", local->results[0].name);
    text_index(out, around, 0);
    text_string(out, tensor_is_half(&local->results[0]) ? "] = ht_bf16_store(" : "] = ");
}

void text_result_end(Text *out, const LocalOp *local) {
    text_string(out, tensor_is_half(&local->results[0]) ? ");\n" : ";\n");
}

/* ---- terms ---- */

/* Returns whether one term is summed over exactly `set`, with a plus sign and without a flag. */
static bool one_term(const LocalOp *local, uint32_t set) {
    int count = 0;
    for (int t = 0; t < local->term_count; t++)
        if (local->terms[t].contracted == set)
            count += 1 + local->terms[t].flagged + local->terms[t].minus;
    return count == 1;
}

/* Appends one term, in brackets if its operator binds less tightly than `+`. */
static void text_term(Text *out, const LocalOp *local, const Term *term, const Around *around,
                      bool alone) {
    bool brackets = !alone && term->expr->kind >= EXPR_LT && term->expr->kind <= EXPR_SELECT;
    text_string(out, brackets ? "(" : "");
    emit_expr(out, local, term->expr, around->access, (void *)around);
    text_string(out, brackets ? ")" : "");
}

bool text_terms(Text *out, const LocalOp *local, uint32_t set, const Around *around, bool first) {
    int flag = 0;
    bool alone = first && one_term(local, set);
    for (int t = 0; t < local->term_count; t++) {
        const Term *term = &local->terms[t];
        int mine = term->flagged ? flag++ : -1;
        if (term->contracted != set) continue;
        text_string(out, first ? term->minus ? "-" : "" : term->minus ? " - " : " + ");
        first = false;
        if (mine >= 0) { // a number of the device says whether the term is added
            text_string(out, "(");
            text_fill(out, around->number, "n", arena_format(out->arena, "%d", mine), NULL);
            text_string(out, " ? ");
        }
        text_term(out, local, term, around, alone);
        text_string(out, mine >= 0 ? " : 0)" : "");
    }
    return !first;
}

/* Returns whether some term is summed over exactly these factors. */
static bool has_terms(const LocalOp *local, uint32_t set) {
    for (int t = 0; t < local->term_count; t++)
        if (local->terms[t].contracted == set) return true;
    return false;
}

void text_sum_value(Text *out, const LocalOp *local, const Around *around, const char *sum) {
    bool more = has_terms(local, 0);
    text_print(out, "(%s)%s%s", value_type(local->results[0].value->type.dtype), more ? "(" : "",
               sum);
    text_terms(out, local, 0, around, false);
    text_string(out, more ? ")" : "");
}

uint64_t terms_operands(const LocalOp *local, uint32_t set) {
    uint64_t operands = 0;
    bool absent;
    for (int t = 0; t < local->term_count; t++)
        if (local->terms[t].contracted == set)
            operands |= expr_operands(local, local->terms[t].expr, &absent);
    return operands;
}

int contracted_sets(const LocalOp *local, uint32_t *sets) {
    int count = 0;
    for (int t = 0; t < local->term_count; t++) {
        uint32_t set = local->terms[t].contracted;
        bool known = !set;
        for (int s = 0; s < count; s++) known = known || sets[s] == set;
        for (int f = 0; f < local->factor_count; f++)
            known = known || (set >> f & 1 && !local->extent[f]);
        if (!known) sets[count++] = set;
    }
    return count;
}

bool sums_columns(const LocalOp *local, const Nest *outputs, uint32_t set) {
    const Loop *inner = nest_inner(outputs);
    if (!inner || inner->extent < 8) return false;
    int largest = 0;
    for (int k = 1; k < local->operand_count; k++)
        if (tensor_elements(&local->operands[k]) > tensor_elements(&local->operands[largest]))
            largest = k;
    Nest contracted = nest_of_sum(local, set);
    for (int l = 0; l < contracted.count; l++)
        if (contracted.loop[l].stride[local->result_count + largest] == 1) return false;
    return inner->stride[local->result_count + largest] == 1;
}

/* ---- words ---- */

const char *sum_type(const LocalOp *local) {
    DType dtype = local->results[0].value->type.dtype;
    return dtype == DTYPE_I32 || dtype == DTYPE_I64 ? "int64_t" : "double";
}

const char *value_type(DType dtype) { return dtype == DTYPE_BF16 ? "float" : c_type(dtype); }

bool calls_functions(const Expr *expr) {
    bool calls = expr->kind == EXPR_CALL;
    for (int a = 0; a < expr->arg_count; a++) calls = calls || calls_functions(expr->arg[a]);
    return calls;
}

void indent(Text *out, int depth) { text_print(out, "%*s", 4 * depth, ""); }

void close_bracket(Text *out, int depth) { text_print(out, "%*s}\n", 4 * depth, ""); }
