/* Finds the calls of ht_train and ht_infer, whose arguments are models. */
#include "frontend/models.h"

#include <string.h>

typedef struct Finder {
    CUnit *unit;
    const CFunction *inside;
    ModelCalls *calls;
} Finder;

static void find_call(const CExpr *expr, void *data) {
    Finder *finder = data;
    ModelCalls *calls = finder->calls;
    const CFunction *function = expr->kind == C_CALL ? cexpr_function(expr->a) : NULL;
    if (!function || function->body) return;
    calls->prepares |=
        !strcmp(function->name, "ht_prepare") || !strcmp(function->name, "ht_balance_with");
    calls->norm |= !strcmp(function->name, "ht_grad_norm");
    bool train = !strcmp(function->name, "ht_train_with"),
         infer = !strcmp(function->name, "ht_infer_with");
    if (expr->args.count == (train ? 4 : 3) && (train || infer))
        array_push(finder->unit->arena, &calls->list, (ModelCall){expr, finder->inside, train});
}

ModelCalls models_find(CUnit *unit) {
    ModelCalls calls = {0};
    Finder finder = {.unit = unit, .calls = &calls};
    for (int i = 0; i < unit->functions.count; i++) {
        finder.inside = unit->functions.at[i];
        if (!finder.inside->library && !finder.inside->part)
            cstmt_walk(finder.inside->body, find_call, &finder);
    }
    return calls;
}

bool models_exist(CUnit *unit) { return models_find(unit).list.count > 0; }

void models_walk(CUnit *unit, CVisit *visit, void *data) {
    ModelCalls calls = models_find(unit);
    for (int i = 0; i < calls.list.count; i++)
        for (int a = 0; a < calls.list.at[i].expr->args.count; a++)
            cexpr_walk(calls.list.at[i].expr->args.at[a], visit, data);
}
