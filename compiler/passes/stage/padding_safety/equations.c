/* Follows ranges of kept and dropped elements through rules that are expressions. */
#include "passes/stage/padding_safety/call.h"
#include "rule/equations.h"

static Bounds attribute(const Call *call, int index) {
    const Attr *attr = &call->op->attrs[index];
    return bounds_number(opdef_attr_kind(call->op->def, index) == PARAM_FLOAT ? attr->f
                                                                              : (double)attr->i);
}

/* Returns the operand of the call that is bound to operand `index` of the rule and is present. */
static int operand_of(const Call *call, int index) {
    for (int k = 0; k < call->op->operand_count; k++)
        if (call->op->binding->operands[k].access == index && call->op->operands[k]) return k;
    BUG("an operand of %s is absent in an expression", call->op->def->name);
}

static Bounds leaf_range(const Expr *leaf, void *context) {
    const Call *call = context;
    switch (leaf->kind) {
    case EXPR_ACCESS: return call_operand(call, operand_of(call, leaf->index), call->assignment);
    case EXPR_RESULT:
        return call->values[leaf->index]
                           [call->assignment &
                            call_bits(call, equations_value(call->op->def->rule, leaf->index))];
    case EXPR_ATTR: return attribute(call, leaf->index);
    default: return bounds_number((double)call->sizes[leaf->index]);
    }
}

static const Access *leaf_access(const Call *call, const Expr *leaf) {
    const Rule *rule = call->op->def->rule;
    return leaf->kind == EXPR_ACCESS   ? &rule->operands[leaf->index]
           : leaf->kind == EXPR_RESULT ? equations_value(rule, leaf->index)
                                       : NULL;
}

/* Returns the shorter factors of an expression as bits. Sets *sums if the expression has factors,
 * shorter or not, that the value lacks. */
static unsigned term_bits(const Call *call, const Expr *expr, const Access *value, bool *sums) {
    const Access *access = leaf_access(call, expr);
    unsigned bits = access ? call_bits(call, access) : 0;
    for (int f = 0; access && f < call->op->def->rule->factor_count; f++)
        *sums |= access_has(access, f) && !access_has(value, f);
    for (int i = 0; i < expr->arg_count; i++) bits |= term_bits(call, expr->arg[i], value, sums);
    return bits;
}

/* Returns the range of a term, summed over factors that the value lacks. `assignment` has bits of
 * the value's factors. Sets bits of *more for factors along which dropped elements contribute. */
static Bounds term_range(Call *call, const Expr *term, const Access *value, unsigned assignment,
                         unsigned *more) {
    bool sums = false;
    unsigned own = call_bits(call, value), summed = term_bits(call, term, value, &sums) & ~own;
    Bounds total = bounds_number(0);
    for (unsigned a = 0; a < 1u << call->count; a++) {
        if (a & ~summed) continue;
        call->assignment = assignment | a;
        Bounds range = bounds_of(term, leaf_range, call);
        if (!sums) return range;
        if (bounds_is(range, 0)) continue;
        if (a) *more |= a;
        total = range.open || total.open ? bounds_open() : bounds_finite();
    }
    return total;
}

/* Writes to ranges[] the range of an equation's value in each assignment; false after an error. */
static bool evaluate(Call *call, const Expr *expr, const Access *value, Bounds *ranges) {
    const Expr *whole =
        equations_present(call->behind->arena, call->op->def->rule, expr, call->present);
    int count = expr_terms(whole, NULL, 0);
    ExprTerm *terms = arena_array(call->behind->arena, ExprTerm, count);
    unsigned bits = call_bits(call, value), more = 0;
    expr_terms(whole, terms, count);
    for (unsigned a = 0; a < 1u << call->count; a++) {
        if (a & ~bits) continue;
        ranges[a] = bounds_number(0);
        for (int t = 0; t < count; t++) {
            unsigned behind = 0;
            Bounds range = term_range(call, terms[t].expr, value, a, &behind);
            ranges[a] = bounds_sum(ranges[a], terms[t].negative ? bounds_negative(range) : range);
            more |= a ? 0 : behind;
        }
    }
    return !more || call_refuse(call, more, "adds up what stands behind the length of a row");
}

bool follow_equations(Call *call) {
    const Rule *rule = call->op->def->rule;
    for (int v = 0; v < rule->result_count + rule->equations.local_count; v++)
        call->values[v] = arena_array(call->behind->arena, Bounds, 1 << call->count);
    for (int e = 0; e < rule->equations.count; e++) {
        const RuleEquation *equation = &rule->equations.at[e];
        if (!evaluate(call, equation->expr, equations_value(rule, equation->value),
                      call->values[equation->value]))
            return false;
    }
    return rule->equations.count || evaluate(call, rule->body, &rule->results[0], call->values[0]);
}
