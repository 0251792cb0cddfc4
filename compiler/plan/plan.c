#include "plan/plan.h"

#include <string.h>

const PlanKind plan_kinds[] = {
    {0},
};

const PlanKind *plan_kind(const char *name)
{
    for (const PlanKind *kind = plan_kinds; kind->name; kind++)
        if (!strcmp(kind->name, name))
            return kind;
    return NULL;
}
