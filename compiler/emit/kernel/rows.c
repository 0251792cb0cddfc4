/* Writes what all backends share of kernels with loops along rows (sums, norms), and where their
 * values are rounded. rule/equations.c assigns equations to loops. */
#include "emit/kernel/rows.h"

#include "rule/expr.h"

/* ---- loops ---- */

/* Writes to factors[] the factors along rows (`inner`) or all others, in the order of their first
 * use by tensors; a tensor that has all factors comes first. Returns how many are written. */
static int factors_in_order(const Rows *rows, bool inner, int *factors) {
    const LocalOp *local = rows->local;
    int count = 0;
    uint32_t seen = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int t = 0; t < local->tensor_count; t++) {
            const Tensor *tensor = &local->tensors[t];
            if (!tensor->value || (pass == 0 && tensor->bound->rank != local->factor_count))
                continue;
            for (int d = 0; d < tensor->bound->rank; d++) {
                int factor = tensor->bound->dims[d].factors[0];
                bool along =
                    rows->plan.rows && rows->plan.inner[local->op->binding->factors[factor].factor];
                if (along == inner && !(seen >> factor & 1)) factors[count++] = factor;
                seen |= UINT32_C(1) << factor;
            }
        }
    return count;
}

Rows rows_of(Arena *arena, const LocalOp *local) {
    const Rule *rule = local->rule;
    Rows rows = {.local = local,
                 .equation_count = rule->equations.count,
                 .plan = equations_plan(arena, rule)};
    const Expr **expr = arena_array(arena, const Expr *, rule->equations.count);
    bool *present = arena_array(arena, bool, rule->operand_count + 1);
    int factors[IR_MAX_FACTORS];
    for (int k = 0; k < rule->operand_count; k++) present[k] = operand_of(local, k) >= 0;
    for (int e = 0; e < rule->equations.count; e++) {
        expr[e] = equations_present(arena, rule, rule->equations.at[e].expr, present);
        rows.calls = rows.calls || calls_functions(expr[e]);
    }
    rows.expr = expr;
    rows.outer = nest_of_factors(local, factors, factors_in_order(&rows, false, factors), 'i');
    rows.inner = nest_of_factors(local, factors, factors_in_order(&rows, true, factors), 'k');
    return rows;
}

/* ---- values ---- */

int rows_value(const Rows *rows, int equation) {
    return rows->local->rule->equations.at[equation].value;
}

bool rows_is_result(const Rows *rows, int equation) {
    return rows_value(rows, equation) < rows->local->result_count;
}

const char *rows_name(const Rows *rows, int value) {
    const LocalOp *local = rows->local;
    return value < local->result_count ? local->results[value].name
                                       : equations_value(local->rule, value)->name;
}

/* Returns the type of a value. A result has its storage's type, a local value the type that the
 * rule fixes; all other local values have the type of the first result. */
static DType value_dtype(const Rows *rows, int value) {
    const LocalOp *local = rows->local;
    const Element *element = &equations_value(local->rule, value)->element;
    if (value >= local->result_count && element->kind == ELEMENT_FIXED)
        return (DType)element->index;
    return local->results[value < local->result_count ? value : 0].value->type.dtype;
}

const char *rows_type(const Rows *rows, int value) {
    const LocalOp *local = rows->local;
    DType dtype = value_dtype(rows, value);
    return value_type(value >= local->result_count && !dtype_is_float(dtype) ? DTYPE_F32 : dtype);
}

static const EquationStep *step_of(const Rows *rows, int equation) {
    return &rows->plan.step[equation];
}

bool rows_computes(const Rows *rows, int equation, int loop) {
    return step_of(rows, equation)->form == EQUATION_ELEMENT &&
           step_of(rows, equation)->loops >> loop & 1;
}

bool rows_stores(const Rows *rows, int equation, int loop) {
    return rows_computes(rows, equation, loop) && rows_is_result(rows, equation) &&
           step_of(rows, equation)->loop == loop;
}

bool rows_adds(const Rows *rows, int equation, int loop) {
    return step_of(rows, equation)->form == EQUATION_SUM && step_of(rows, equation)->loop == loop;
}

bool rows_follows(const Rows *rows, int equation, int loop) {
    const EquationStep *step = step_of(rows, equation);
    return step->form != EQUATION_ELEMENT && step->loop + (step->form == EQUATION_SUM) == loop;
}

bool rows_stored(const Rows *rows, int value, int loop) {
    int equation = rows->plan.equation[value];
    return step_of(rows, equation)->form == EQUATION_ELEMENT &&
           !rows_computes(rows, equation, loop);
}

/* Returns whether the value is rounded to its type before other equations use it. */
static bool rows_rounds(const Rows *rows, int value) {
    const LocalOp *local = rows->local;
    bool given = value < local->result_count ||
                 equations_value(local->rule, value)->element.kind == ELEMENT_FIXED;
    if (!given || value_dtype(rows, value) != DTYPE_BF16) return false;
    for (int e = 0; e < rows->equation_count; e++)
        if (expr_mentions(rows->expr[e], EXPR_RESULT, value)) return true;
    return false;
}

/* ---- text ---- */

RowsPlace rows_place(const Rows *rows, int loop, AccessWriter *access, const void *more) {
    return (RowsPlace){.around = {.outputs = &rows->outer,
                                  .contracted = &rows->inner,
                                  .access = access,
                                  .more = more},
                       .rows = rows,
                       .loop = loop};
}

void text_row_access(Text *out, const LocalOp *local, int operand, void *context) {
    RowsPlace *place = context;
    int value = -1 - operand;
    if (operand >= 0) text_element(out, local, operand, &place->around);
    else if (rows_stored(place->rows, value, place->loop))
        text_tensor(out, local, value, &place->around);
    else text_print(out, "%s_v", rows_name(place->rows, value));
}

static void text_expr(Text *out, const RowsPlace *place, const Expr *expr) {
    emit_expr(out, place->rows->local, expr, place->around.access, (void *)place);
}

/* Appends the terms of a sum that have elements along the row, or all other terms. `first`: no term
 * has been written yet. */
static void text_terms_along(Text *out, const RowsPlace *place, int equation, bool along,
                             bool first) {
    const Rows *rows = place->rows;
    int count = expr_terms(rows->expr[equation], NULL, 0);
    ExprTerm *terms = arena_array(out->arena, ExprTerm, count);
    expr_terms(rows->expr[equation], terms, count);
    for (int t = 0; t < count; t++) {
        if (equations_along(rows->local->rule, &rows->plan, terms[t].expr) != along) continue;
        text_string(out, first ? terms[t].negative ? "-" : "" : terms[t].negative ? " - " : " + ");
        first = false;
        bool brackets = terms[t].expr->kind >= EXPR_LT && terms[t].expr->kind <= EXPR_SELECT;
        text_string(out, brackets ? "(" : "");
        text_expr(out, place, terms[t].expr);
        text_string(out, brackets ? ")" : "");
    }
}

void emit_row_value(Text *out, const RowsPlace *place, int equation, const char *sum, int depth) {
    const Rows *rows = place->rows;
    int value = rows_value(rows, equation);
    const char *type = rows_type(rows, value);
    bool rounds = rows_rounds(rows, value);
    indent(out, depth);
    text_print(out, "const %s %s_v = %s", type, rows_name(rows, value),
               rounds ? "ht_bf16_load(ht_bf16_store(" : "");
    if (sum) {
        text_print(out, "(%s)%s", type, sum);
        text_terms_along(out, place, equation, false, false);
    } else {
        text_expr(out, place, rows->expr[equation]);
    }
    text_string(out, rounds ? "));\n" : ";\n");
}

void emit_row_element(Text *out, const RowsPlace *place, int depth) {
    const Rows *rows = place->rows;
    for (int e = 0; e < rows->equation_count; e++)
        if (rows_computes(rows, e, place->loop)) emit_row_value(out, place, e, NULL, depth);
    for (int e = 0; e < rows->equation_count; e++)
        if (rows_adds(rows, e, place->loop)) {
            indent(out, depth);
            text_print(out, "%s_s += ", rows_name(rows, rows_value(rows, e)));
            text_terms_along(out, place, e, true, true);
            text_string(out, ";\n");
        }
}

void emit_row_store(Text *out, const RowsPlace *place, int equation, int depth) {
    int value = rows_value(place->rows, equation);
    const Tensor *result = &place->rows->local->results[value];
    indent(out, depth);
    text_print(out, "%s[", result->name);
    text_index(out, &place->around, value);
    text_print(out, tensor_is_half(result) ? "] = ht_bf16_store(%s_v);\n" : "] = %s_v;\n",
               rows_name(place->rows, value));
}
