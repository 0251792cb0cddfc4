/* Writes expressions of rules as loops in C.
 *
 *     for (int64_t i_a = 0; i_a < n_a; i_a++)
 *         for (int64_t i_b = 0; i_b < n_b; i_b++)
 *             y[i_a * n_b + i_b] = x[i_a * n_b + i_b] + z[i_b];
 *
 * A factor f has index i_f and extent n_f. Sums accumulate in double, sums of integers in int64_t,
 * in the order of the indices. */
#include "operators.h"

#include "emit/backend.h"
#include "rule/expr.h"
#include "rule/gradient.h"

#include <string.h>

/* The function that is being written. */
typedef struct Loops {
    Text *out;
    const OpDef *def;
    const Rule *rule;
    int operand;       // the loops compute this operand's gradient; -1: the values
    uint32_t integers; // a bit for each operand, then for each result, of an integer type

    bool wide; // computes in double

} Loops;

/* A value that is computed: a result, a local value of equations, or dx. */
typedef struct Value {
    const Access *access;
    const char *name;
    const Expr *expr;
    bool integral;
} Value;

static const char *real_type(const Loops *loops) { return loops->wide ? "double" : "float"; }

/* ---- operands and factors of an expression ---- */

/* Returns the tensor of a leaf; NULL where the leaf is not a tensor. */
static const Access *leaf_access(const Loops *loops, const Expr *leaf) {
    const Rule *rule = loops->rule;
    if (leaf->kind == EXPR_ACCESS)
        return leaf->index < rule->operand_count ? &rule->operands[leaf->index] : &rule->results[0];
    if (leaf->kind == EXPR_RESULT)
        return leaf->index < rule->result_count
                   ? &rule->results[leaf->index]
                   : &rule->equations.locals[leaf->index - rule->result_count];
    return NULL;
}

static bool needs_factor(const Loops *loops, const Expr *expr, int factor) {
    const Access *access = leaf_access(loops, expr);
    bool needs = access && access_has(access, factor);
    for (int i = 0; i < expr->arg_count; i++)
        needs = needs || needs_factor(loops, expr->arg[i], factor);
    return needs;
}

/* Returns, as bits, the contracted factors: the factors of a term that the value lacks. */
static uint32_t contracted(const Loops *loops, const Expr *term, const Access *value) {
    uint32_t set = 0;
    for (int f = 0; f < loops->rule->factor_count; f++)
        if (needs_factor(loops, term, f) && !access_has(value, f)) set |= UINT32_C(1) << f;
    return set;
}

static bool is_integer(const Loops *loops, int operand) {
    return operand < loops->rule->operand_count && loops->integers >> operand & 1;
}

/* ---- expressions ---- */

/* Writes a row-major index: (i_a * n_b + i_b) * n_c + i_c. */
static void write_index(Text *out, const Rule *rule, const Access *access) {
    const char *index = NULL;
    for (int d = 0; d < access->dim_count; d++)
        for (int k = 0; k < access->dims[d].count; k++) {
            const char *name = rule->factors[access->dims[d].factors[k]].name;
            bool brackets = index && strchr(index, '+');
            index = index ? arena_format(out->arena,
                                         brackets ? "(%s) * n_%s + i_%s" : "%s * n_%s + i_%s",
                                         index, name, name)
                          : arena_format(out->arena, "i_%s", name);
        }
    text_print(out, "[%s]", index ? index : "0");
}

static const char *access_name(const Loops *loops, const Expr *leaf) {
    bool dy = leaf->kind == EXPR_ACCESS && leaf->index == loops->rule->operand_count;
    return dy ? "dy_" : leaf_access(loops, leaf)->name;
}

static const char *attr_name(const OpDef *def, int index) {
    for (int p = 0, a = 0; p < def->param_count; p++)
        if (def->params[p].kind != PARAM_TENSOR && def->params[p].kind != PARAM_TENSORS &&
            a++ == index)
            return def->params[p].name;
    BUG("%s has no argument %d", def->name, index);
}

/* Writes a tensor's element; for an absent operand, the number that the rule gives in its place. */
static void write_access(Text *out, const Expr *leaf, const Loops *loops) {
    const Access *access = leaf_access(loops, leaf);
    const char *name = access_name(loops, leaf);
    bool absent = leaf->kind == EXPR_ACCESS && access->absent;
    if (absent) text_print(out, "(%s ? ", name);
    text_string(out, name);
    write_index(out, loops->rule, access);
    if (absent) text_print(out, " : %s)", access->absent->spelling);
}

/* Writes a leaf (an ExprLeaf); functions of math.h have the names that emitted CPU kernels call. */
static void write_leaf(Text *out, const Expr *leaf, void *context) {
    const Loops *loops = context;
    switch (leaf->kind) {
    case EXPR_ACCESS:
    case EXPR_RESULT: write_access(out, leaf, loops); break;
    case EXPR_ATTR: text_string(out, attr_name(loops->def, leaf->index)); break;
    case EXPR_SIZE: text_print(out, "n_%s", loops->rule->factors[leaf->index].name); break;
    default: text_string(out, backend_function(backend_find("cpu"), leaf->spelling, false)); break;
    }
}

/* Returns an optional operand whose absence drops the term; -1: there is none. */
static int needed_operand(const Loops *loops, const Expr *term) {
    for (int k = 0; k < loops->rule->operand_count; k++)
        if (loops->rule->operands[k].optional && !loops->rule->operands[k].absent &&
            expr_mentions(term, EXPR_ACCESS, k))
            return k;
    return -1;
}

/* Writes the terms that are summed over the factors `set`; returns their number. `first`: no term
 * precedes these terms. */
static int write_terms(const Loops *loops, const Value *value, uint32_t set, bool first) {
    int count = expr_terms(value->expr, NULL, 0), written = 0;
    ExprTerm *terms = arena_array(loops->out->arena, ExprTerm, count);
    expr_terms(value->expr, terms, count);
    for (int t = 0; t < count; t++) {
        const Expr *term = terms[t].expr;
        if (contracted(loops, term, value->access) != set) continue;
        int needed = needed_operand(loops, term);
        bool brackets = needed < 0 && term->kind >= EXPR_LT && term->kind <= EXPR_SELECT;
        text_string(loops->out, first && !written++ ? terms[t].negative ? "-" : ""
                                : terms[t].negative ? " - "
                                                    : " + ");
        text_string(loops->out, brackets ? "(" : "");
        if (needed >= 0) text_print(loops->out, "(%s ? ", loops->rule->operands[needed].name);
        expr_print(loops->out, loops->wide ? expr_widened(loops->out->arena, term) : term,
                   write_leaf, (void *)loops);
        text_string(loops->out, needed >= 0 ? " : 0)" : brackets ? ")" : "");
        written += !first;
    }
    return written;
}

/* ---- loops ---- */

static void indent(Text *out, int depth) { text_print(out, "%*s", 4 * depth, ""); }

static void write_for(Text *out, int depth, const char *factor, const char *end) {
    indent(out, depth);
    text_print(out, "for (int64_t i_%s = 0; i_%s < n_%s; i_%s++)%s\n", factor, factor, factor,
               factor, end);
}

/* Writes the product of extents of the factors `set`: n_a * n_b, or 1. */
static void write_volume(Text *out, const Rule *rule, uint32_t set) {
    const char *sign = "";
    for (int f = 0; f < rule->factor_count; f++)
        if (set >> f & 1) {
            text_print(out, "%sn_%s", sign, rule->factors[f].name);
            sign = " * ";
        }
    text_string(out, *sign ? "" : "1");
}

static uint32_t factors_of(const Access *access) {
    uint32_t set = 0;
    for (int f = 0; f < 32; f++) set |= (uint32_t)access_has(access, f) << f;
    return set;
}

/* Opens the loops over all elements of a value; returns the indentation depth inside. */
static int open_value(const Loops *loops, const Value *value, uint32_t all, const char *end) {
    const Access *access = value->access;
    int depth = 1, last = access->dim_count - 1;
    if (access->dim_count) {
        text_string(loops->out, "#pragma omp parallel for schedule(static) if (");
        write_volume(loops->out, loops->rule, all);
        text_string(loops->out, " > CPU_PARALLEL)\n");
    }
    for (int d = 0; d <= last; d++)
        for (int k = 0; k < access->dims[d].count; k++)
            write_for(loops->out, depth++, loops->rule->factors[access->dims[d].factors[k]].name,
                      d == last && k == access->dims[d].count - 1 ? end : "");
    return depth;
}

static void write_left_side(const Loops *loops, const Value *value, int depth) {
    indent(loops->out, depth);
    text_string(loops->out, value->name);
    write_index(loops->out, loops->rule, value->access);
    text_string(loops->out, " = ");
}

/* Writes SUM += TERMS inside loops over the factors `set`. */
static void write_sum(const Loops *loops, const Value *value, uint32_t set, int depth) {
    for (int f = 0; f < loops->rule->factor_count; f++)
        if (set >> f & 1) write_for(loops->out, depth++, loops->rule->factors[f].name, "");
    indent(loops->out, depth);
    text_string(loops->out, "sum_ += ");
    write_terms(loops, value, set, true);
    text_string(loops->out, ";\n");
}

/* Writes to `sets` the different sets of factors over which terms of the value are summed. Writes
 * to *all the union of these sets and of the value's factors. Returns the number of sets. */
static int sum_sets(const Loops *loops, const Value *value, uint32_t *sets, uint32_t *all) {
    int count = expr_terms(value->expr, NULL, 0), found = 0;
    ExprTerm *terms = arena_array(loops->out->arena, ExprTerm, count);
    expr_terms(value->expr, terms, count);
    *all = factors_of(value->access);
    for (int t = 0; t < count; t++) {
        uint32_t set = contracted(loops, terms[t].expr, value->access);
        bool known = !set;
        for (int s = 0; s < found; s++) known |= sets[s] == set;
        if (!known) sets[found++] = set;
        *all |= set;
    }
    return found;
}

/* Returns whether an expression divides by the extent of a factor. */
static bool divides_by(const Expr *expr, int factor) {
    bool divides = expr->kind == EXPR_DIV && expr_mentions(expr->arg[1], EXPR_SIZE, factor);
    for (int i = 0; i < expr->arg_count; i++) divides = divides || divides_by(expr->arg[i], factor);
    return divides;
}

/* Writes the initial value of a sum: 0, but NaN for a mean over nothing. */
static void write_start(const Loops *loops, const Value *value, uint32_t summed) {
    for (int f = 0; f < loops->rule->factor_count; f++)
        if (summed >> f & 1 && divides_by(value->expr, f))
            text_print(loops->out, "n_%s == 0 ? NAN : ", loops->rule->factors[f].name);
    text_string(loops->out, "0;\n");
}

static void write_value(const Loops *loops, const Value *value) {
    uint32_t *sets = arena_array(loops->out->arena, uint32_t, expr_terms(value->expr, NULL, 0) + 1),
             all;
    int count = sum_sets(loops, value, sets, &all);
    bool block = count && value->access->dim_count;
    int depth = open_value(loops, value, all, block ? " {" : "");
    if (count) {
        indent(loops->out, depth);
        text_print(loops->out, "%s sum_ = ", value->integral ? "int64_t" : "double");
        write_start(loops, value, all & ~factors_of(value->access));
    }
    for (int s = 0; s < count; s++) write_sum(loops, value, sets[s], depth);
    write_left_side(loops, value, depth);
    text_string(loops->out, count ? "sum_" : "");
    if (!write_terms(loops, value, 0, !count) && !count) text_string(loops->out, "0");
    text_string(loops->out, ";\n");
    if (block) {
        indent(loops->out, depth - 1);
        text_string(loops->out, "}\n");
    }
}

/* ---- products ---- */

/* Returns whether the value has a factor that exactly one of x and w has. */
static bool is_matrix(const Loops *loops, const Value *value, const Expr *x, const Expr *w) {
    for (int f = 0; f < loops->rule->factor_count; f++)
        if (access_has(value->access, f) && needs_factor(loops, x, f) != needs_factor(loops, w, f))
            return true;
    return false;
}

/* Returns whether a value is a matrix product, x * w summed over a factor, for operator_product to
 * compute. Sets *product, and *bias to the bias or NULL. */
static bool is_product(const Loops *loops, const Value *value, const Expr **product,
                       const Expr **bias) {
    const Expr *expr = value->expr;
    bool biased = expr->kind == EXPR_ADD && expr->arg[1]->kind == EXPR_ACCESS &&
                  !contracted(loops, expr->arg[1], value->access);
    *bias = biased ? expr->arg[1] : NULL;
    *product = biased ? expr->arg[0] : expr;
    if ((*product)->kind != EXPR_MUL || loops->wide || value->integral ||
        !contracted(loops, *product, value->access))
        return false;
    for (int i = 0; i < 2; i++) {
        const Expr *arg = (*product)->arg[i];
        if (arg->kind != EXPR_ACCESS || is_integer(loops, arg->index) ||
            needed_operand(loops, arg) >= 0)
            return false;
    }
    return is_matrix(loops, value, (*product)->arg[0], (*product)->arg[1]) &&
           !(*bias && is_integer(loops, (*bias)->index));
}

/* Writes the stride of a factor in a tensor: the product of the extents of later factors; 0 where
 * the tensor lacks the factor. */
static void write_stride(Text *out, const Rule *rule, const Access *access, int factor) {
    bool behind = false;
    const char *sign = "";
    text_string(out, ", ");
    for (int d = 0; access && d < access->dim_count; d++)
        for (int k = 0; k < access->dims[d].count; k++) {
            if (behind)
                text_print(out, "%sn_%s", sign, rule->factors[access->dims[d].factors[k]].name);
            sign = behind ? " * " : "";
            behind |= access->dims[d].factors[k] == factor;
        }
    text_string(out, !behind ? "0" : *sign ? "" : "1");
}

static void write_product(const Loops *loops, const Value *value, const Expr *product,
                          const Expr *bias) {
    Text *out = loops->out;
    uint32_t all = factors_of(value->access) | contracted(loops, product, value->access);
    const Access *access[] = {value->access, leaf_access(loops, product->arg[0]),
                              leaf_access(loops, product->arg[1]),
                              bias ? leaf_access(loops, bias) : NULL};
    text_string(out, "    const ht_axis axes[] = {\n");
    for (int f = 0; f < loops->rule->factor_count; f++) {
        if (!(all >> f & 1)) continue;
        text_print(out, "        {n_%s", loops->rule->factors[f].name);
        for (int t = 0; t < 4; t++) write_stride(out, loops->rule, access[t], f);
        text_string(out, "},\n");
    }
    text_print(out,
               "    };\n    operator_product(%s, %s, %s, %s, sizeof axes / sizeof *axes, axes);\n",
               value->name, access_name(loops, product->arg[0]),
               access_name(loops, product->arg[1]), bias ? access_name(loops, bias) : "NULL");
}

/* ---- functions ---- */

/* Sets *values to what the function computes: dx (the gradient of loops->operand), the rule's body,
 * or the values of its equations in order. Returns their number. */
static int values_of(const Loops *loops, Arena *arena, Value **values) {
    const Rule *rule = loops->rule;
    int count = loops->operand >= 0 || rule->kind == RULE_BODY ? 1 : rule->equations.count;
    *values = arena_array(arena, Value, count);
    if (loops->operand >= 0) {
        **values = (Value){&rule->operands[loops->operand], "dx_",
                           rule_gradient(arena, rule, loops->operand, loops->integers), false};
        return count;
    }
    for (int v = 0; v < count; v++) {
        Expr leaf = {.kind = EXPR_RESULT,
                     .index = rule->kind == RULE_BODY ? 0 : rule->equations.at[v].value};
        const Access *access = leaf_access(loops, &leaf);
        const Expr *expr = rule->kind == RULE_BODY ? rule->body : rule->equations.at[v].expr;
        bool integral = leaf.index < rule->result_count &&
                        loops->integers >> (rule->operand_count + leaf.index) & 1;
        (*values)[v] = (Value){access, access->name, expr,
                               integral && !opdef_float_in(loops->def, expr, loops->integers)};
    }
    return count;
}

static bool any_mentions(const Value *values, int count, ExprKind kind, int index) {
    for (int v = 0; v < count; v++)
        if (expr_mentions(values[v].expr, kind, index)) return true;
    return false;
}

/* Writes declarations of the extents, arguments and tensors that the values use. */
static void write_names(const Loops *loops, const Value *values, int count) {
    Text *out = loops->out;
    const Rule *rule = loops->rule;
    for (int f = 0; f < rule->factor_count; f++) {
        bool needed = any_mentions(values, count, EXPR_SIZE, f);
        for (int v = 0; v < count; v++)
            needed =
                needed || access_has(values[v].access, f) || needs_factor(loops, values[v].expr, f);
        if (needed)
            text_print(out, "    const int64_t n_%s = data->size[%d];\n", rule->factors[f].name, f);
    }
    for (int a = 0; a < loops->def->attr_count; a++) {
        bool real = opdef_attr_kind(loops->def, a) == PARAM_FLOAT;
        if (any_mentions(values, count, EXPR_ATTR, a))
            text_print(out, "    const %s %s = (%s)data->attr[%d].%s;\n",
                       real ? real_type(loops) : "int64_t", attr_name(loops->def, a),
                       real ? real_type(loops) : "int64_t", a, real ? "f" : "i");
    }
    for (int k = 0; k <= rule->operand_count; k++) {
        Expr leaf = {.kind = EXPR_ACCESS, .index = k};
        if (any_mentions(values, count, EXPR_ACCESS, k))
            text_print(out, "    const %s *restrict %s = data->from[%d];\n",
                       is_integer(loops, k) ? "int64_t" : real_type(loops),
                       access_name(loops, &leaf), k);
    }
    if (loops->operand >= 0)
        text_print(out, "    %s *restrict dx_ = data->to[0];\n", real_type(loops));
    for (int r = 0; loops->operand < 0 && r < rule->result_count; r++)
        text_print(out, "    %s *restrict %s = data->to[%d];\n",
                   loops->integers >> (rule->operand_count + r) & 1 ? "int64_t" : real_type(loops),
                   rule->results[r].name, r);
}

/* Writes the allocation of memory for a local value of equations. */
static void write_local(const Loops *loops, const Access *local) {
    bool fixed = local->element.kind == ELEMENT_FIXED;
    const char *type = fixed && local->element.index == DTYPE_F64 ? "double"
                       : fixed                                    ? "float"
                                                                  : real_type(loops);
    text_print(loops->out, "    %s *restrict %s = eager_alloc((size_t)(", type, local->name);
    write_volume(loops->out, loops->rule, factors_of(local));
    text_print(loops->out, ") * sizeof *%s);\n", local->name);
}

/* Writes the rounding of a value to bf16, if the value has this type and later values read it. */
static void write_rounding(const Loops *loops, const Value *values, int count, int at) {
    const Rule *rule = loops->rule;
    int value = rule->kind == RULE_EQUATIONS ? rule->equations.at[at].value : 0,
        result = value < rule->result_count;
    const Element *element = &values[at].access->element;
    bool half = element->kind == ELEMENT_FIXED && element->index == DTYPE_BF16;
    if (loops->operand >= 0 || values[at].integral ||
        !any_mentions(values, count, EXPR_RESULT, value) || (!result && !half))
        return;
    if (result) text_print(loops->out, "    if (data->half[%d])\n    ", value);
    text_print(loops->out, "    operator_round_%s(%s, ", result ? real_type(loops) : "float",
               values[at].name);
    write_volume(loops->out, rule, factors_of(values[at].access));
    text_string(loops->out, ");\n");
}

void loops_write(Text *out, const OpDef *def, const char *name, LoopsVariant variant) {
    Loops loops = {.out = out,
                   .def = def,
                   .rule = def->rule,
                   .operand = variant.operand,
                   .integers = variant.integers,
                   .wide = variant.wide};
    Value *values;
    const Expr *product, *bias;
    int count = values_of(&loops, out->arena, &values);
    text_print(out, "static void %s(const OperatorData *data)\n{\n", name);
    write_names(&loops, values, count);
    for (int v = 0; v < count; v++) {
        if (values[v].access >= def->rule->equations.locals &&
            values[v].access < def->rule->equations.locals + def->rule->equations.local_count)
            write_local(&loops, values[v].access);
        if (is_product(&loops, &values[v], &product, &bias))
            write_product(&loops, &values[v], product, bias);
        else write_value(&loops, &values[v]);
        write_rounding(&loops, values, count, v);
    }
    text_string(out, "}\n\n");
}
