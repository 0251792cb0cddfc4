/* Copies a plan without scratch data. */
#include "reshard/plan_builder.h"

#include "support/intern.h"

/* The state of copying: the target arena, and the copies of lists that several parts share. */
typedef struct Copier {
    Arena *arena;
    Intern *lists;
} Copier;

/* Returns where the pointer to a list's copy is stored; the pointer is NULL before the list is
 * copied. Lists are identified by address and count, so shared lists stay shared. */
static void **copy_of(const Copier *copier, const void *list, int count) {
    struct {
        const void *list;
        int64_t count;
    } key = {list, count};
    return intern_slot(copier->lists, &key, sizeof key);
}

/* Returns the only copy of a list of `size` bytes, made at the first call; NULL if empty. */
static void *copy_once(const Copier *copier, const void *list, int count, size_t size) {
    void **copy = list && count ? copy_of(copier, list, count) : NULL;
    if (copy && !*copy) *copy = arena_copy(copier->arena, list, size);
    return copy ? *copy : NULL;
}

/* COPY copies a list. COPY_ARRAY replaces an array's list by a copy, COPY_ONCE by its only copy. */
#define COPY(arena, list, count)                                                                   \
    ((list) ? arena_copy((arena), (list), sizeof *(list) * (size_t)(count)) : NULL)
#define COPY_ARRAY(arena, array)                                                                   \
    ((array)->at = COPY(arena, (array)->at, (array)->count), (array)->capacity = (array)->count)
#define COPY_ONCE(copier, array)                                                                   \
    ((array)->at = copy_once((copier), (array)->at, (array)->count,                                \
                             sizeof *(array)->at * (size_t)(array)->count),                        \
     (array)->capacity = (array)->count)

static Region *copy_region(Arena *arena, const Region *region) {
    Region *copy = arena_copy(arena, region, sizeof *region);
    copy->boxes = COPY(arena, region->boxes, region->box_count);
    copy->placing = region->placing ? COPY(arena, region->placing, region->box_count) : NULL;
    return copy;
}

static void copy_holdings(Arena *arena, Holdings *side) {
    COPY_ARRAY(arena, &side->list);
    for (int h = 0; h < side->list.count; h++) {
        COPY_ARRAY(arena, &side->list.at[h].devices);
        side->list.at[h].region = copy_region(arena, side->list.at[h].region);
    }
    side->members = COPY(arena, side->members, side->device_count);
}

static const Overlap *copy_overlap(const Copier *copier, const Overlap *overlap) {
    Arena *arena = copier->arena;
    Overlap *copy = arena_copy(arena, overlap, sizeof *overlap);
    copy->view.shape.extent = COPY(arena, overlap->view.shape.extent, overlap->view.shape.rank);
    for (int f = 0; f < overlap->view.rank; f++)
        copy->cuts[f] = COPY(arena, overlap->cuts[f], overlap->cut_count[f]);
    for (int side = 0; side < 2; side++) copy_holdings(arena, &copy->side[side]);
    COPY_ARRAY(arena, &copy->bundles);
    for (int b = 0; b < copy->bundles.count; b++) {
        Bundle *bundle = &copy->bundles.at[b];
        COPY_ARRAY(arena, &bundle->cells);
        for (int side = 0; side < 2; side++)
            bundle->holders[side] =
                copy_once(copier, bundle->holders[side], bundle->holder_count[side],
                          sizeof *bundle->holders[side] * (size_t)bundle->holder_count[side]);
    }
    return copy;
}

static void copy_bucket(const Copier *copier, Bucket *bucket) {
    bucket->overlap = copy_overlap(copier, bucket->overlap);
    bucket->tensors = COPY(copier->arena, bucket->tensors, bucket->tensor_count);
}

/* Returns the copy of a task's contributions; tasks that share them share the copy. */
static Devices *copy_sources(const Copier *copier, Devices *sources, int count) {
    void **known = sources && count ? copy_of(copier, sources, count) : NULL;
    if (!known || *known) return known ? *known : NULL;
    Devices *copy = *known = COPY(copier->arena, sources, count);
    for (int p = 0; p < count; p++) COPY_ONCE(copier, &copy[p]);
    return copy;
}

static void copy_task(const Copier *copier, Task *task) {
    COPY_ONCE(copier, &task->targets);
    task->sources = copy_sources(copier, task->sources, task->source_count);
}

static void copy_step(const Copier *copier, Step *step) {
    Arena *arena = copier->arena;
    int parts = step_part_count(step);
    COPY_ONCE(copier, &step->group);
    COPY_ARRAY(arena, &step->messages);
    COPY_ARRAY(arena, &step->reductions);
    step->parts = COPY(arena, step->parts, parts);
    for (int i = 0; i < parts; i++) COPY_ARRAY(arena, &step->parts[i]);
    for (int i = 0; i < step->messages.count; i++)
        COPY_ARRAY(arena, &step->messages.at[i].segments);
}

Plan *plan_copy(Arena *arena, const Plan *plan) {
    Plan *copy = arena_copy(arena, plan, sizeof *plan);
    Arena *scratch = arena_create();
    const Copier copier = {arena, intern_create(scratch)};
    copy->arena = arena;
    copy->devices = COPY(arena, plan->devices, plan->device_count);
    copy->slots = COPY(arena, plan->slots, plan->span);
    copy->received = COPY(arena, plan->received, plan->device_count);
    copy->sent = COPY(arena, plan->sent, plan->device_count);
    copy->name = arena_string(arena, plan->name);
    COPY_ARRAY(arena, &copy->buckets);
    COPY_ARRAY(arena, &copy->tasks);
    COPY_ARRAY(arena, &copy->steps);
    COPY_ARRAY(arena, &copy->groups);
    for (int s = 0; s < copy->buckets.count; s++) copy_bucket(&copier, &copy->buckets.at[s]);
    for (int t = 0; t < copy->tasks.count; t++) copy_task(&copier, &copy->tasks.at[t]);
    for (int s = 0; s < copy->steps.count; s++) copy_step(&copier, &copy->steps.at[s]);
    for (int g = 0; g < copy->groups.count; g++)
        copy->groups.at[g].device =
            copy_once(&copier, copy->groups.at[g].device, copy->groups.at[g].count,
                      sizeof(int) * (size_t)copy->groups.at[g].count);
    arena_destroy(scratch);
    return copy;
}
