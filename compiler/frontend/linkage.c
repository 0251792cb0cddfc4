/* Joins the sources of a program: finds and reads the source that defines a function or variable
 * that models need, and checks that the main file can name it. */

#include "frontend/clang/clang.h"
#include "frontend/eval/eval.h"
#include "frontend/models.h"
#include "ir/unit.h"

void linkage_defined(const CUnit *unit, LinkNames *names) {
    for (int i = 0; i < unit->functions.count; i++) {
        const CFunction *function = unit->functions.at[i];
        if (function->body && !function->is_static && !function->library && !function->part)
            array_push(unit->arena, names, function->name);
    }
    for (int i = 0; i < unit->vars.count; i++) {
        const CVar *var = unit->vars.at[i];
        if (var->defined && !var->internal && !var->function && !var->part)
            array_push(unit->arena, names, var->name);
    }
}

typedef struct Search {
    CUnit *unit;
    LinkNames *names;
    bool *functions, *vars; // by number of the function or variable: it has been visited
} Search;

static void find_in_expression(const CExpr *expr, void *data);

static void add_name(Search *search, const char *name) {
    if (text_find(search->names->at, search->names->count, name) < 0)
        array_push(search->unit->arena, search->names, name);
}

static void find_function(Search *search, const CFunction *function);

/* Visits the function that a rule names. */
static void find_named(Search *search, const OpDef *def, const char *name) {
    const CFunction *function = name ? cunit_lookup_beside(search->unit, def, name).function : NULL;
    if (function) find_function(search, function);
}

static void find_in_rule(Search *search, const OpDef *def) {
    find_named(search, def, def->rule->grad.function);
    find_named(search, def, def->rule->tiles.op);
    find_named(search, def, def->rule->with.op);
    find_named(search, def, def->rule->with.whole);
    for (int f = 0; f < def->rule->factor_count; f++)
        find_named(search, def, def->rule->factors[f].merge);
}

static void find_function(Search *search, const CFunction *function) {
    if (search->functions[function->number]) return;
    search->functions[function->number] = true;
    if (function->op) find_in_rule(search, function->op->def);
    else if (function->body) cstmt_walk(function->body, find_in_expression, search);
    else if (!function->system && !function->library && !function->is_static &&
             !builtin_find(function->name))
        add_name(search, function->name);
}

static void find_variable(Search *search, const CVar *var) {
    if (var->local || search->vars[var->slot]) return;
    search->vars[var->slot] = true;
    if (!var->defined && !var->is_static && !var->system) add_name(search, var->name);
    cexpr_walk(var->init, find_in_expression, search);
}

static void find_in_expression(const CExpr *expr, void *data) {
    Search *search = data;
    if (expr->kind == C_FUNCTION) find_function(search, expr->function);
    else if (expr->kind == C_VAR) find_variable(search, expr->var);
}

void linkage_absent(CUnit *unit, LinkNames *names) {
    Search search = {.unit = unit,
                     .names = names,
                     .functions = arena_array(unit->arena, bool, unit->functions.count + 1),
                     .vars = arena_array(unit->arena, bool, unit->vars.count + 1)};
    models_walk(unit, find_in_expression, &search);
    for (int i = 0; i < unit->shapes.count && models_exist(unit); i++)
        find_variable(&search, unit->shapes.at[i]);
}

/* Reads the first source that defines one of the names and is not taken[] yet; sets its taken[] and
 * *more. Returns false on errors. */
static bool read_next(CUnit *unit, const FrontendOptions *options, const LinkNames *names,
                      bool *taken, bool *more) {
    for (int n = 0; n < names->count; n++)
        for (int p = 0; p < options->part_count; p++)
            if (!taken[p] && text_find(options->parts[p].defined, options->parts[p].defined_count,
                                       names->at[n]) >= 0) {
                taken[p] = *more = true;
                return clang_read_more(unit, &options->parts[p]);
            }
    return true;
}

bool linkage_read(CUnit *unit, const FrontendOptions *options) {
    bool good = true, *taken = arena_array(unit->arena, bool, options->part_count + 1);
    for (bool more = options->part_count; good && more;) {
        LinkNames names = {0};
        linkage_absent(unit, &names);
        more = false;
        good = read_next(unit, options, &names, taken, &more);
    }
    return good;
}

/* ---- names that the main file needs ---- */

static void check_function(CUnit *unit, const char *name, const char *what, Position at) {
    if (cunit_lookup(unit, name).function) return;
    diag_error(unit->diag, at, "%s %s is not known in %s, which must name it", what, name,
               unit->file);
    diag_note(unit->diag, at,
              "declare it in a header that %s includes, too; it cannot be static in another file",
              unit->file);
}

void linkage_check(CUnit *unit, const Unit *made) {
    for (int m = 0; m < made->modules.count; m++) {
        const Module *module = made->modules.at[m];
        check_function(unit, module->name, "the model", module->source->at);
        for (int g = 0; g < module->optimizer->groups.count; g++) {
            if (!module->optimizer->groups.at[g].function_name)
                check_function(unit, module->optimizer->groups.at[g].function,
                               "the optimizer's function", module->source->at);
            if (module->optimizer->groups.at[g].after &&
                !module->optimizer->groups.at[g].after_name)
                check_function(unit, module->optimizer->groups.at[g].after,
                               "the optimizer's function", module->source->at);
        }
    }
    for (int i = 0; i < unit->shapes.count; i++) {
        const CVar *var = unit->shapes.at[i];
        if (cunit_lookup(unit, var->name).var == var) continue;
        diag_error(unit->diag, var->at,
                   "the shape variable %s is not known in %s, where strategies set it", var->name,
                   unit->file);
        diag_note(unit->diag, var->at,
                  "declare it in a header that both files include: extern %s %s;", var->type->name,
                  var->name);
    }
}
