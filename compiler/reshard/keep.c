/* Keeping a plan: a copy without what planning left behind. */
#include "reshard/build.h"

#define COPY(arena, list, count) ((list) ? arena_copy((arena), (list), sizeof *(list) * (size_t)(count)) : NULL)

#define KEEP(arena, array) ((array)->at = COPY(arena, (array)->at, (array)->count), (array)->capacity = (array)->count)

/* ---- cells ---- */

static Region *keep_region(Arena *arena, const Region *region)
{
    Region *kept = arena_copy(arena, region, sizeof *region);
    kept->boxes = COPY(arena, region->boxes, region->box_count);
    return kept;
}

static void keep_side(Arena *arena, CellSide *side)
{
    Piece *pieces = COPY(arena, side->pieces, side->piece_count);
    for (int p = 0; p < side->piece_count; p++) {
        pieces[p].devices = COPY(arena, pieces[p].devices, pieces[p].device_count);
        pieces[p].storage = COPY(arena, pieces[p].storage, pieces[p].region->box_count + 1);
        pieces[p].region = keep_region(arena, pieces[p].region);
    }
    side->pieces = pieces;
    side->devices = COPY(arena, side->devices, side->device_count);
    side->piece_of = COPY(arena, side->piece_of, side->device_count);
}

static const Cells *keep_cells(Arena *arena, const Cells *cells)
{
    Cells *kept = arena_copy(arena, cells, sizeof *cells);
    Bundle *bundles = COPY(arena, cells->bundles, cells->bundle_count);
    kept->arena = arena;
    kept->shape.extent = COPY(arena, cells->shape.extent, cells->shape.rank);
    for (int f = 0; f < cells->rank; f++)
        kept->cuts[f] = COPY(arena, cells->cuts[f], cells->cut_count[f]);
    for (int side = 0; side < 2; side++)
        keep_side(arena, &kept->side[side]);
    for (int b = 0; b < cells->bundle_count; b++) {
        bundles[b].cells = COPY(arena, bundles[b].cells, bundles[b].cell_count);
        for (int side = 0; side < 2; side++)
            bundles[b].holders[side] = COPY(arena, bundles[b].holders[side], bundles[b].holder_count[side]);
    }
    kept->bundles = bundles;
    return kept;
}

/* ---- the plan ---- */

static void keep_stack(Arena *arena, Stack *stack)
{
    stack->cells = keep_cells(arena, stack->cells);
    stack->shape = stack->cells->shape;
    stack->tensors = COPY(arena, stack->tensors, stack->tensor_count);
}

static void keep_task(Arena *arena, Task *task)
{
    KEEP(arena, &task->wanted);
    task->sources = COPY(arena, task->sources, task->source_count);
    for (int p = 0; p < task->source_count; p++)
        KEEP(arena, &task->sources[p]);
}

static void keep_step(Arena *arena, Step *step)
{
    int parts = step_part_count(step);
    KEEP(arena, &step->group);
    KEEP(arena, &step->messages);
    KEEP(arena, &step->reductions);
    step->parts = COPY(arena, step->parts, parts);
    for (int i = 0; i < parts; i++)
        KEEP(arena, &step->parts[i]);
    for (int i = 0; i < step->messages.count; i++)
        KEEP(arena, &step->messages.at[i].segments);
}

Plan *plan_keep(Arena *arena, const Plan *plan)
{
    Plan *kept = arena_copy(arena, plan, sizeof *plan);
    kept->arena = arena;
    kept->devices = COPY(arena, plan->devices, plan->device_count);
    kept->received = COPY(arena, plan->received, plan->device_count);
    kept->sent = COPY(arena, plan->sent, plan->device_count);
    kept->name = arena_string(arena, plan->name);
    KEEP(arena, &kept->stacks);
    KEEP(arena, &kept->tasks);
    KEEP(arena, &kept->steps);
    KEEP(arena, &kept->groups);
    for (int s = 0; s < kept->stacks.count; s++)
        keep_stack(arena, &kept->stacks.at[s]);
    for (int t = 0; t < kept->tasks.count; t++)
        keep_task(arena, &kept->tasks.at[t]);
    for (int s = 0; s < kept->steps.count; s++)
        keep_step(arena, &kept->steps.at[s]);
    for (int g = 0; g < kept->groups.count; g++)
        kept->groups.at[g].device = COPY(arena, kept->groups.at[g].device, kept->groups.at[g].count);
    return kept;
}
