/* The table of hetu-plan's kinds. budget_work turns --limit and --effort into steps. */
#include "planner/kinds/kinds.h"

#include "planner/kinds/flexsp/flexsp.h"
#include "planner/kinds/galvatron/galvatron.h"
#include "planner/kinds/hydraulis/hydraulis.h"
#include "planner/kinds/malleus/malleus.h"
#include "planner/kinds/spindle/spindle.h"

#include <math.h>
#include <string.h>

const PlanKind plan_kinds[] = {
    {"malleus", "pipelines around straggling devices", malleus_plan, malleus_certify},
    {"hydraulis", "a set of strategies for batches of unequal lengths", hydraulis_plan,
     hydraulis_certify},
    {"hydraulis-batch", "a batch's sequences over the pipelines of one of the strategies",
     hydraulis_batch_plan, hydraulis_batch_certify},
    {"flexsp", "sequence parallelism by length: micro-batches of groups of different degrees",
     flexsp_answer, flexsp_certify},
    {"galvatron", "a pipeline over device classes, and every layer's strategy", galvatron_answer,
     galvatron_certify},
    {"spindle", "several tasks and modalities: slices of operators over devices and time",
     spindle_answer, spindle_certify},
    {0},
};

const PlanKind *plan_kind(const char *name) {
    for (const PlanKind *kind = plan_kinds; kind->name; kind++)
        if (!strcmp(kind->name, name)) return kind;
    return NULL;
}

/* ---- budgets (budget.h) ---- */

Budget budget_begin(double limit) {
    Budget budget = {.limit = limit, .effort = 1};
    clock_gettime(CLOCK_MONOTONIC, &budget.begin);
    return budget;
}

double budget_left(const Budget *budget) {
    struct timespec now;
    if (isinf(budget->limit)) return INFINITY;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return budget->limit - (double)(now.tv_sec - budget->begin.tv_sec) -
           (double)(now.tv_nsec - budget->begin.tv_nsec) * 1e-9;
}

long budget_work(const Budget *budget, long usual, double rate) {
    double work = (double)usual * budget->effort;
    return (long)(work <= budget->limit * rate ? work : budget->limit * rate);
}
