/* Prints a rule of a pass: its body or equations, and clauses size, replicate, dtype, epilogue.
 *
 *     y[i..], z[i..] = name(x[i..]) body(z[i..] = 2 * x[i..]; y[i..] = expf(z[i..]))
 */
#include "rule/equations.h"
#include "rule/draft.h"
#include "support/text.h"

void rule_print_access(Text *out, const Rule *rule, const Access *access) {
    text_print(out, "%s%s[", access->name, access->variadic ? "[]" : "");
    for (int d = 0; d < access->dim_count; d++) {
        const RuleDim *dim = &access->dims[d];
        text_string(out, d ? ", " : "");
        text_string(out, dim->count > 1 ? "(" : "");
        for (int k = 0; k < dim->count; k++) {
            const Factor *factor = &rule->factors[dim->factors[k]];
            text_print(out, "%s%s%s", k ? " " : "", factor->name, factor->ellipsis ? ".." : "");
        }
        text_string(out, dim->count > 1 ? ")" : "");
    }
    text_string(out, "]");
}

/* Prints a leaf as the rule writes it. Implements ExprLeaf. */
static void print_leaf(Text *out, const Expr *leaf, void *context) {
    const Rule *rule = context;
    switch (leaf->kind) {
    case EXPR_ACCESS: rule_print_access(out, rule, &rule->operands[leaf->index]); return;
    case EXPR_RESULT: rule_print_access(out, rule, equations_value(rule, leaf->index)); return;
    case EXPR_SIZE: text_print(out, "size(%s)", rule->factors[leaf->index].name); return;
    case EXPR_CALL: text_string(out, leaf->spelling); return;
    default: BUG("a rule that was built has an argument");
    }
}

static void print_accesses(Text *out, const Rule *rule, const Access *accesses, int count) {
    for (int i = 0; i < count; i++) {
        text_string(out, i ? ", " : "");
        rule_print_access(out, rule, &accesses[i]);
    }
}

static void print_equations(Text *out, const Rule *rule, const char *name) {
    text_print(out, "%s(", name);
    print_accesses(out, rule, rule->operands, rule->operand_count);
    text_string(out, ") body(");
    for (int e = 0; e < rule->equations.count; e++) {
        text_string(out, e ? "; " : "");
        rule_print_access(out, rule, equations_value(rule, rule->equations.at[e].value));
        text_string(out, " = ");
        expr_print(out, rule->equations.at[e].expr, print_leaf, (void *)rule);
    }
    text_string(out, ")");
}

static void print_dtype(Text *out, const Access *value) {
    if (value->element.kind == ELEMENT_FIXED)
        text_print(out, " dtype(%s: %s)", value->name, dtype_name((DType)value->element.index));
}

const char *rule_printed(Arena *arena, const Rule *rule, const char *name) {
    Text out = {.arena = arena};
    print_accesses(&out, rule, rule->results, rule->result_count);
    text_string(&out, " = ");
    if (rule->kind == RULE_BODY) expr_print(&out, rule->body, print_leaf, (void *)rule);
    else print_equations(&out, rule, name);
    for (int f = 0; f < rule->factor_count; f++) {
        if (rule->factors[f].size) {
            text_print(&out, " size(%s: ", rule->factors[f].name);
            expr_print(&out, rule->factors[f].size, print_leaf, (void *)rule);
            text_string(&out, ")");
        }
        if (rule->factors[f].replicate) text_print(&out, " replicate(%s)", rule->factors[f].name);
    }
    for (int r = 0; rule->kind == RULE_BODY && r < rule->result_count; r++)
        print_dtype(&out, &rule->results[r]);
    for (int e = 0; e < rule->equations.count; e++)
        print_dtype(&out, equations_value(rule, rule->equations.at[e].value));
    if (rule->epilogue) text_print(&out, " epilogue(%s)", rule->epilogue);
    return text_bytes(&out);
}
