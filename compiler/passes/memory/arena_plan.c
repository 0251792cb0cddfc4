#include "passes/memory/arena_plan.h"

#include <string.h>

static int64_t rounded(int64_t bytes) { return (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT; }

static void remove_hole(ArenaPlan *plan, int at)
{
    memmove(plan->holes.at + at, plan->holes.at + at + 1, sizeof(Hole) * (size_t)(plan->holes.count - at - 1));
    plan->holes.count--;
}

static void insert_hole(ArenaPlan *plan, int at, Hole hole)
{
    array_push(plan->arena, &plan->holes, hole);
    memmove(plan->holes.at + at + 1, plan->holes.at + at, sizeof(Hole) * (size_t)(plan->holes.count - 1 - at));
    plan->holes.at[at] = hole;
}

int64_t arena_plan_take(ArenaPlan *plan, int64_t bytes)
{
    int best = -1;
    bytes = rounded(bytes);
    for (int i = 0; i < plan->holes.count; i++)
        if (plan->holes.at[i].bytes >= bytes && (best < 0 || plan->holes.at[i].bytes < plan->holes.at[best].bytes))
            best = i;
    if (best < 0) {
        int64_t offset = plan->end;
        plan->end += bytes;
        plan->peak = plan->end > plan->peak ? plan->end : plan->peak;
        return offset;
    }
    Hole *hole = &plan->holes.at[best];
    int64_t offset = hole->offset;
    hole->offset += bytes;
    hole->bytes -= bytes;
    if (!hole->bytes)
        remove_hole(plan, best);
    return offset;
}

/* Index of the first hole at or behind an offset. */
static int hole_after(const ArenaPlan *plan, int64_t offset)
{
    int low = 0, high = plan->holes.count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (plan->holes.at[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The end of the arena moves back over a hole that reaches it. */
static void trim(ArenaPlan *plan)
{
    const Hole *last = plan->holes.count ? &plan->holes.at[plan->holes.count - 1] : NULL;
    if (last && last->offset + last->bytes == plan->end) {
        plan->end = last->offset;
        plan->holes.count--;
    }
}

void arena_plan_give(ArenaPlan *plan, int64_t offset, int64_t bytes)
{
    bytes = rounded(bytes);
    if (!bytes)
        return;
    int at = hole_after(plan, offset);
    Hole *before = at ? &plan->holes.at[at - 1] : NULL, *after = at < plan->holes.count ? &plan->holes.at[at] : NULL;
    if (before && before->offset + before->bytes == offset) {
        before->bytes += bytes;
        if (after && after->offset == offset + bytes) {
            before->bytes += after->bytes;
            remove_hole(plan, at);
        }
    } else if (after && after->offset == offset + bytes) {
        after->offset = offset;
        after->bytes += bytes;
    } else
        insert_hole(plan, at, (Hole){offset, bytes});
    trim(plan);
}
