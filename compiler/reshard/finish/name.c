/* Names a plan by the collectives that it consists of. */
#include "reshard/plan_builder.h"

#include <string.h>

/* Returns whether each device sends and receives at most one message, and none is combined. */
static bool is_permutation(PlanBuilder *planner, const Step *step) {
    char *uses = arena_array(planner->arena, char, planner->plan->device_count);
    for (int i = 0; i < step->messages.count; i++) {
        char *sender = &uses[plan_slot(planner->plan, step->messages.at[i].sender)],
             *receiver = &uses[plan_slot(planner->plan, step->messages.at[i].receiver)];
        if (*sender & 1) return false;
        *sender |= 1;
        if (*receiver & 2) return false;
        *receiver |= 2;
    }
    return !step->combine;
}

static const char *step_name(PlanBuilder *planner, const Step *step) {
    static const char *const names[] = {
        [HT_ALL_REDUCE] = "all-reduce", [HT_REDUCE_SCATTER] = "reduce-scatter",
        [HT_ALL_GATHER] = "all-gather", [HT_ALL_TO_ALL] = "all-to-all",
        [HT_BROADCAST] = "broadcast",   [HT_REDUCE] = "reduce"};
    if (step->verb != HT_EXCHANGE) return names[step->verb];
    return is_permutation(planner, step) ? "permute" : "send-receive";
}

const char *name_plan(PlanBuilder *planner) {
    const Plan *plan = planner->plan;
    if (!plan->steps.count) return plan->nothing ? "nothing" : "local slice";
    Text name = {.arena = plan->arena};
    const char *last = "";
    for (int s = 0; s < plan->steps.count; s++) {
        const char *next = step_name(planner, &plan->steps.at[s]);
        if (strcmp(last, next)) text_print(&name, "%s%s", *last ? ", " : "", next);
        last = next;
    }
    return text_bytes(&name);
}
