#include "plan/plan.h"

#include "plan/hydraulis/hydraulis.h"
#include "plan/malleus/malleus.h"

#include <string.h>

const PlanKind plan_kinds[] = {
    {"malleus", "pipelines around straggling devices", malleus_plan, malleus_certify},
    {"hydraulis", "a set of strategies for batches of unequal lengths", hydraulis_plan, hydraulis_certify},
    {"hydraulis-batch", "a batch's sequences over the pipelines of one of the strategies", hydraulis_batch_plan, hydraulis_batch_certify},
    {0},
};

const PlanKind *plan_kind(const char *name)
{
    for (const PlanKind *kind = plan_kinds; kind->name; kind++)
        if (!strcmp(kind->name, name))
            return kind;
    return NULL;
}
