/* Decides which loop along a row computes which equation, and what is computed again. */
#include "rule/equations.h"

#include "rule/expr.h"

const Access *equations_value(const Rule *rule, int value) {
    return value < rule->result_count ? &rule->results[value]
                                      : &rule->equations.locals[value - rule->result_count];
}

/* Returns the factors along rows: those that the value of some equation lacks. */
static const bool *inner_factors(Arena *arena, const Rule *rule) {
    bool *inner = arena_array(arena, bool, rule->factor_count + 1);
    for (int f = 0; f < rule->factor_count; f++)
        for (int e = 0; e < rule->equations.count; e++)
            inner[f] |= !access_has(equations_value(rule, rule->equations.at[e].value), f);
    return inner;
}

/* Returns whether a tensor has a factor that goes along rows; true if the plan has no rows. */
static bool is_along(const Rule *rule, const EquationPlan *plan, const Access *access) {
    for (int f = 0; plan->rows && f < rule->factor_count; f++)
        if (plan->inner[f] && access_has(access, f)) return true;
    return !plan->rows;
}

static const Access *leaf_access(const Rule *rule, const Expr *leaf) {
    return leaf->kind == EXPR_ACCESS   ? &rule->operands[leaf->index]
           : leaf->kind == EXPR_RESULT ? equations_value(rule, leaf->index)
                                       : NULL;
}

bool equations_along(const Rule *rule, const EquationPlan *plan, const Expr *expr) {
    const Access *access = leaf_access(rule, expr);
    bool along = access && is_along(rule, plan, access);
    for (int i = 0; i < expr->arg_count; i++)
        along = along || equations_along(rule, plan, expr->arg[i]);
    return along;
}

/* Returns the first loop in which all values that an expression reads are known. */
static int known_at(const EquationPlan *plan, const Expr *expr) {
    int loop = 0;
    if (expr->kind == EXPR_RESULT) {
        const EquationStep *step = &plan->step[plan->equation[expr->index]];
        loop = step->loop + (step->form == EQUATION_SUM);
    }
    for (int i = 0; i < expr->arg_count; i++) {
        int own = known_at(plan, expr->arg[i]);
        loop = own > loop ? own : loop;
    }
    return loop;
}

/* State of equations_plan. */
typedef struct Planning {
    const Rule *rule;
    EquationPlan *plan;
    EquationStep *steps; // plan->step, writable
    uint32_t *reads;     // plan->reads, writable
} Planning;

/* Records what `loop` does to compute an expression: the operands read, the values computed. */
static void note_loop(Planning *planning, const Expr *expr, int loop) {
    const Rule *rule = planning->rule;
    if (expr->kind == EXPR_ACCESS && is_along(rule, planning->plan, &rule->operands[expr->index]))
        planning->reads[expr->index] |= UINT32_C(1) << loop;
    if (expr->kind == EXPR_RESULT) {
        int equation = planning->plan->equation[expr->index];
        EquationStep *step = &planning->steps[equation];
        bool stored = expr->index < rule->result_count && step->loop < loop;
        if (step->form == EQUATION_ELEMENT && !stored && !(step->loops >> loop & 1)) {
            step->loops |= UINT32_C(1) << loop;
            note_loop(planning, rule->equations.at[equation].expr, loop);
        }
    }
    for (int i = 0; i < expr->arg_count; i++) note_loop(planning, expr->arg[i], loop);
}

/* Returns whether a loop must compute the equation even if no other equation reads its value. */
static bool is_wanted(const Rule *rule, const EquationStep *step, int value) {
    return step->form == EQUATION_SUM ||
           (step->form == EQUATION_ELEMENT && value < rule->result_count);
}

EquationPlan equations_plan(Arena *arena, const Rule *rule) {
    EquationStep *steps = arena_array(arena, EquationStep, rule->equations.count);
    int *equation = arena_array(arena, int, rule->result_count + rule->equations.local_count);
    uint32_t *reads = arena_array(arena, uint32_t, rule->operand_count + 1);
    EquationPlan plan = {.inner = inner_factors(arena, rule),
                         .loop_count = 1,
                         .step = steps,
                         .equation = equation,
                         .reads = reads};
    Planning planning = {rule, &plan, steps, reads};
    for (int f = 0; f < rule->factor_count; f++) plan.rows |= plan.inner[f];
    // Find the form of each equation and the first loop that can compute it.
    for (int e = 0; e < rule->equations.count; e++) {
        const RuleEquation *own = &rule->equations.at[e];
        bool along = equations_along(rule, &plan, own->expr),
             row = plan.rows && !is_along(rule, &plan, equations_value(rule, own->value));
        steps[e].form = !row ? EQUATION_ELEMENT : along ? EQUATION_SUM : EQUATION_ROW;
        steps[e].loop = known_at(&plan, own->expr);
        equation[own->value] = e;
        if (steps[e].form != EQUATION_ROW && steps[e].loop >= plan.loop_count)
            plan.loop_count = steps[e].loop + 1;
    }
    if (plan.loop_count > EQUATIONS_MOST_LOOPS)
        BUG("a rule of %d loops: %s", plan.loop_count, rule->text);
    // add the loops that compute a local value again for the equations that read it
    for (int e = 0; e < rule->equations.count; e++)
        if (is_wanted(rule, &steps[e], rule->equations.at[e].value)) {
            steps[e].loops |= UINT32_C(1) << steps[e].loop;
            note_loop(&planning, rule->equations.at[e].expr, steps[e].loop);
        }
    return plan;
}

typedef struct Presence {
    Arena *arena;
    const Rule *rule;
    const bool *present;
} Presence;

static bool is_absent(const Presence *presence, const Expr *expr) {
    return expr->kind == EXPR_ACCESS && !presence->present[expr->index];
}

/* Returns whether an expression has an absent operand without a default number. */
static bool lacks(const Presence *presence, const Expr *expr) {
    bool lacking = is_absent(presence, expr) && !presence->rule->operands[expr->index].absent;
    for (int i = 0; i < expr->arg_count; i++) lacking = lacking || lacks(presence, expr->arg[i]);
    return lacking;
}

/* Returns the default number of an absent operand. */
static const Expr *number_of(const Presence *presence, const Expr *access) {
    return presence->rule->operands[access->index].absent;
}

/* Returns an expression with default numbers for absent operands. Drops a multiplication by 1. */
static const Expr *with_numbers(const Presence *presence, const Expr *expr) {
    if (is_absent(presence, expr)) return number_of(presence, expr);
    if (!expr->arg_count) return expr;
    for (int i = 0; expr->kind == EXPR_MUL && i < 2; i++)
        if (is_absent(presence, expr->arg[i]) && number_of(presence, expr->arg[i])->number == 1)
            return with_numbers(presence, expr->arg[1 - i]);
    Expr *copy = arena_copy(presence->arena, expr, sizeof *expr);
    for (int i = 0; i < expr->arg_count; i++) copy->arg[i] = with_numbers(presence, expr->arg[i]);
    return copy;
}

const Expr *equations_present(Arena *arena, const Rule *rule, const Expr *expr,
                              const bool *present) {
    Presence presence = {arena, rule, present};
    int count = expr_terms(expr, NULL, 0);
    ExprTerm *terms = arena_array(arena, ExprTerm, count);
    const Expr *total = NULL;
    expr_terms(expr, terms, count);
    for (int t = 0; t < count; t++) {
        if (lacks(&presence, terms[t].expr)) continue;
        const Expr *term = with_numbers(&presence, terms[t].expr);
        if (total) total = expr_binary(arena, terms[t].negative ? EXPR_SUB : EXPR_ADD, total, term);
        else total = terms[t].negative ? expr_negative(arena, term) : term;
    }
    return total ? total : expr_number(arena, 0, NULL);
}

void equations_mark(const Rule *rule, const Expr *expr, bool *marked) {
    const Access *access = expr->kind == EXPR_ACCESS   ? &rule->operands[expr->index]
                           : expr->kind == EXPR_RESULT ? equations_value(rule, expr->index)
                                                       : NULL;
    for (int f = 0; access && f < rule->factor_count; f++) marked[f] |= access_has(access, f);
    for (int i = 0; i < expr->arg_count; i++) equations_mark(rule, expr->arg[i], marked);
}
