/* Makes operators of pragmas `op`, and checks a user's operators with their kernels and gradients.
 * rule/grammar.h has the notation of rules. */
#include "frontend/pragma/pragma.h"

#include "rule/rule.h"

#include <string.h>

/* ---- functions and their rules ---- */

static bool param_kind(const CType *type, ParamKind *kind) {
    bool known = true;
    if (type->is_tensor) *kind = PARAM_TENSOR;
    else if (!strcmp(type->name, "struct ht_tensors")) *kind = PARAM_TENSORS;
    else if (!strcmp(type->name, "struct ht_dims")) *kind = PARAM_SHAPE;
    else if (!strcmp(type->name, "enum ht_dtype")) *kind = PARAM_DTYPE;
    else if (ctype_is_integer(type)) *kind = PARAM_INT;
    else if (ctype_is_floating(type)) *kind = PARAM_FLOAT;
    else known = false;
    return known;
}

static bool fill_params(CUnit *unit, const CFunction *function, OpParam *params) {
    bool good = true;
    for (int i = 0; i < function->params.count; i++) {
        const CVar *var = function->params.at[i];
        params[i].name = var->name;
        if (!*var->name) {
            diag_error(unit->diag, var->at,
                       "a parameter of the operator %s has no name; its rule refers to it by name",
                       function->name);
            good = false;
        } else if (!param_kind(var->type, &params[i].kind)) {
            diag_error(
                unit->diag, var->at,
                "a parameter of an operator is a tensor, a number, ht_dims or ht_dtype; this is %s",
                var->type->name);
            good = false;
        }
    }
    return good;
}

/* Checks that a function returns a tensor, or a struct with one for each result; false if not. */
static bool check_result(CUnit *unit, const CFunction *function, const Rule *rule) {
    const CType *type = function->result;
    bool good = type->is_tensor
                    ? rule->result_count == 1
                    : type->kind == CT_STRUCT && type->fields.count == rule->result_count;
    for (int i = 0; i < type->fields.count && !type->is_tensor; i++)
        good &= type->fields.at[i].type->is_tensor;
    if (!good)
        diag_error(unit->diag, function->at, "%s gives %s, but its rule has %d result%s",
                   function->name, type->name, rule->result_count,
                   rule->result_count == 1 ? "" : "s");
    return good;
}

static int param_named(const OpParam *params, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(params[i].name, name)) return i;
    return -1;
}

static void fill_order(CUnit *unit, COperator *op, OpDef *def) {
    op->operand_param = arena_array(unit->arena, int, def->rule->operand_count);
    op->attr_param = arena_array(unit->arena, int, def->param_count);
    for (int i = 0; i < def->rule->operand_count; i++)
        op->operand_param[i] =
            param_named(def->params, def->param_count, def->rule->operands[i].name);
    for (int i = 0; i < def->param_count; i++)
        if (def->params[i].kind != PARAM_TENSOR && def->params[i].kind != PARAM_TENSORS)
            op->attr_param[def->attr_count++] = i;
}

void operator_make(CUnit *unit, Pragma *pragma, CFunction *function) {
    OpParam *params = arena_array(unit->arena, OpParam, function->params.count);
    if (function->op && function->op->part != unit->part) return;
    if (function->op) {
        diag_error(unit->diag, pragma->at, "%s has a rule already", function->name);
        diag_note(unit->diag, function->op->pragma->at, "the other rule is here");
        return;
    }
    if (!fill_params(unit, function, params)) return;
    const Rule *rule = rule_parse(&pragma->tokens, params, function->params.count);
    if (!rule || !check_result(unit, function, rule)) return;
    OpDef *def = arena_new(unit->arena, OpDef);
    *def = (OpDef){.name = function->name,
                   .at = pragma->at,
                   .param_count = function->params.count,
                   .params = params,
                   .rule = rule};
    COperator *op = arena_new(unit->arena, COperator);
    *op = (COperator){.def = def, .function = function, .pragma = pragma, .part = unit->part};
    fill_order(unit, op, def);
    function->op = op;
    array_push(unit->arena, &unit->operators, op);
}

/* ---- functions that rules and bodies name ---- */

typedef struct BodyCheck {
    CUnit *unit;
    const CFunction *function;
    const RuleKernel *kernel; // kernel for plain C
} BodyCheck;

static void check_named(BodyCheck *check, const CExpr *list, const CExpr *value, const char *clause,
                        const char *wanted) {
    const CFunction *function = cexpr_function(value);
    bool none = !wanted || !strcmp(wanted, "none");
    if (none ? !function : function && !strcmp(function->name, wanted)) return;
    diag_error(check->unit->diag, value ? value->at : list->at,
               "the body of %s uses %s as its %s, its rule %s", check->function->name,
               function ? function->name : "nothing", clause, none ? "none" : wanted);
    diag_note(check->unit->diag, check->function->op->def->at, "the rule is here");
}

static void check_application(const CExpr *expr, void *data) {
    BodyCheck *check = data;
    if (expr->kind != C_INIT || strcmp(expr->type->name, "struct ht_application")) return;
    const Rule *rule = check->function->op->def->rule;
    if (rule->kind == RULE_CALL)
        check_named(check, expr, cexpr_member(expr, 0, "kernel"), "kernel",
                    check->kernel ? check->kernel->function : NULL);
    if (rule->kind == RULE_CALL || rule->grad.function)
        check_named(check, expr, cexpr_member(expr, 1, "gradient"), "gradient",
                    rule->grad.function);
}

/* Returns the function that a rule names at `at`; NULL, after an error, when it is not declared. */
static const CFunction *declared(CUnit *unit, const char *name, Position at,
                                 const char *prototype) {
    Array(const char *) names = {0};
    const CFunction *function = cunit_lookup(unit, name).function;
    if (function) return function;
    for (int i = 0; i < unit->functions.count; i++)
        array_push(unit->arena, &names,
                   unit->functions.at[i]->library || unit->functions.at[i]->system
                       ? NULL
                       : unit->functions.at[i]->name);
    diag_error(unit->diag, at, "no function \"%s\" is declared in this file", name);
    if (!diag_suggest(unit->diag, at, name, names.at, names.count))
        diag_note(unit->diag, at, "declare it: %s", arena_format(unit->arena, prototype, name));
    return NULL;
}

/* Checks that the gradient function that a rule names is declared. */
static void check_gradient(CUnit *unit, const Rule *rule) {
    if (rule->grad.function && strcmp(rule->grad.function, "none"))
        declared(unit, rule->grad.function, rule->grad.at, "void %s(ht_grad *g);");
}

/* Returns whether `joiner` takes the results of two calls of `rule` and has as many as one call. */
static bool joins(const Rule *joiner, const OpDef *joining, const Rule *rule) {
    bool fits = joiner->result_count == rule->result_count &&
                joiner->operand_count == 2 * rule->result_count && !joining->attr_count;
    for (int k = 0; fits && k < joiner->operand_count; k++)
        fits = !joiner->operands[k].optional && !joiner->operands[k].variadic;
    return fits;
}

/* Checks that the operator of a clause `merge` exists and joins the results of two calls. */
static void check_merge(CUnit *unit, const CFunction *function, const Factor *factor) {
    const Rule *rule = function->op->def->rule;
    const CFunction *joiner =
        declared(unit, factor->merge, factor->merge_at, "an operator %s of two results");
    if (!joiner) return;
    if (!joiner->op) {
        diag_error(unit->diag, factor->merge_at, "\"%s\" in the clause merge is no operator",
                   factor->merge);
        diag_note(unit->diag, joiner->at, "give it a rule with #pragma hspmd op");
    } else if (!joins(joiner->op->def->rule, joiner->op->def, rule)) {
        diag_error(unit->diag, factor->merge_at,
                   "%s does not join results of %s: it would take %d tensors and nothing else, all "
                   "results of one piece and then of the other, and give %d",
                   factor->merge, function->name, 2 * rule->result_count, rule->result_count);
        diag_note(unit->diag, joiner->op->def->at, "its rule is here");
    }
}

static void check_merges(CUnit *unit, const CFunction *function) {
    const Rule *rule = function->op->def->rule;
    for (int f = 0; f < rule->factor_count; f++)
        if (rule->factors[f].merge) check_merge(unit, function, &rule->factors[f]);
}

/* Returns the joined names of backends: "'cpu' or 'cuda'". */
static const char *backend_words(Arena *arena, const char *const *backends) {
    const char *words = arena_format(arena, "'%s'", *backends);
    while (*++backends)
        words = arena_format(arena, backends[1] ? "%s, '%s'" : "%s or '%s'", words, *backends);
    return words;
}

/* Reports kernels of a rule whose backend is not one of `backends`. */
static void check_backends(CUnit *unit, const Rule *rule, const char *const *backends) {
    int count = 0;
    while (backends[count]) count++;
    for (int k = 0; k < rule->call.kernel_count; k++) {
        const RuleKernel *kernel = &rule->call.kernels[k];
        bool known = !kernel->backend;
        for (int b = 0; b < count; b++) known = known || !strcmp(kernel->backend, backends[b]);
        if (known) continue;
        diag_error(unit->diag, kernel->backend_at, "expected %s before ':', not '%s'",
                   backend_words(unit->arena, backends), kernel->backend);
        diag_suggest(unit->diag, kernel->backend_at, kernel->backend, backends, count);
    }
}

/* Checks that the kernel for plain C is declared, has a kernel's type, and is not static. */
static void check_kernel(CUnit *unit, const CFunction *operator, const RuleKernel * named) {
    const COperator *op = operator->op;
    if (op->def->rule->kind == RULE_CALL && !named)
        diag_error(
            unit->diag, op->pragma->first->at,
            "a rule of this form needs the clause kernel(f): the C function that computes it");
    const CFunction *kernel =
        named ? declared(unit, named->function, named->at, "void %s(const ht_call *call);") : NULL;
    if (!kernel) return;
    const CType *param = kernel->params.count == 1 ? kernel->params.at[0]->type : NULL;
    if (kernel->result->kind != CT_VOID || !param || param->kind != CT_POINTER ||
        strcmp(param->base->name, "struct ht_call"))
        diag_error(unit->diag, kernel->at, "a kernel is a function void %s(const ht_call *call)",
                   kernel->name);
    else if (kernel->is_static)
        diag_error(unit->diag, kernel->at,
                   "the kernel %s is static, but is called from another file; leave out \"static\"",
                   kernel->name);
    else return;
    diag_note(unit->diag, operator->op->def->at, "the rule of %s names it", operator->name);
}

void operators_check(CUnit *unit, const char *const *backends) {
    for (int i = 0; i < unit->operators.count; i++) {
        if (unit->operators.at[i]->part != unit->part) continue;
        const OpDef *def = unit->operators.at[i]->def;
        BodyCheck check = {unit, unit->operators.at[i]->function,
                           rule_kernel(def->rule, backends[0])};
        if (!check.function->library) {
            check_backends(unit, def->rule, backends);
            check_kernel(unit, check.function, check.kernel);
            check_gradient(unit, def->rule);
            check_merges(unit, check.function);
        }
        cstmt_walk(check.function->body, check_application, &check);
    }
}
