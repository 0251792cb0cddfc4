/* Buckets: conversions that are alike, planned as one. */
#include "reshard/planner.h"
#include "support/intern.h"

#include <string.h>

typedef Array(int64_t) Words;

/* What makes two conversions alike. */
typedef struct BucketKey {
    const void *from, *to, *extents; // interned
    int64_t rank, dtype;
} BucketKey;

/* Finds buckets by what makes them alike. */
typedef struct BucketTable {
    Arena *arena;
    Intern *bytes, *layouts, *buckets; // what a layout says by its address; the bucket's number + 1 by its key
} BucketTable;

static void push_list(Arena *arena, Words *words, const int64_t *list, int count)
{
    array_push(arena, words, list ? count : 0);
    for (int i = 0; list && i < count; i++)
        array_push(arena, words, list[i]);
}

static void push_group(Arena *arena, Words *words, const Group *group)
{
    array_push(arena, words, group->device_count);
    for (int i = 0; i < group->device_count; i++)
        array_push(arena, words, group->devices[i]);
    array_push(arena, words, group->state_count);
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        array_push(arena, words, state->kind);
        array_push(arena, words, state->kind == STATE_SPLIT ? state->dim : 0);
        array_push(arena, words, state->count);
        push_list(arena, words, state->weights, state->count);
    }
}

/* All that a layout says, as numbers: equal ones give every device the same. */
static const void *layout_words(BucketTable *table, const Layout *layout)
{
    Words words = {0};
    array_push(table->arena, &words, layout->top);
    array_push(table->arena, &words, layout->top == TOP_SPLIT ? layout->top_dim : 0);
    array_push(table->arena, &words, layout->inner);
    push_list(table->arena, &words, layout->top_weights, layout->group_count);
    push_list(table->arena, &words, layout->view, layout->view_rank);
    for (int f = 0; f < layout->view_rank; f++)
        array_push(table->arena, &words, layout->view_dim[f]);
    array_push(table->arena, &words, layout->group_count);
    for (int g = 0; g < layout->group_count; g++)
        push_group(table->arena, &words, &layout->groups[g]);
    return intern(table->bytes, words.at, sizeof *words.at * (size_t)words.count);
}

/* The same, remembered by the layout's address. */
static const void *known_words(BucketTable *table, const Layout *layout)
{
    const void **slot = intern_slot(table->layouts, &layout, sizeof layout);
    if (*slot)
        return *slot;
    const void *words = layout_words(table, layout);
    slot = intern_slot(table->layouts, &layout, sizeof layout);
    return *slot = words;
}

static Bucket new_bucket(Planner *planner, const Conversion *conversion)
{
    const Overlap *overlap = overlap_of(planner->arena, conversion->shape, conversion->from, conversion->to);
    StateKind from = overlap->side[SIDE_FROM].partial, kind = from != STATE_DUP ? from : overlap->side[SIDE_TO].partial;
    return (Bucket){.dtype = conversion->dtype,
                   .element = ht_dtype_size(conversion->dtype),
                   .reduction = kind == STATE_SUM   ? HT_SUM
                                : kind == STATE_MAX ? HT_MAX
                                                    : HT_NO_REDUCTION,
                   .overlap = overlap};
}

/* The number of the bucket that a conversion belongs to; a new one where it is like none before. */
static int find_bucket(Planner *planner, BucketTable *table, const Conversion *conversion)
{
    BucketKey key;
    memset(&key, 0, sizeof key);
    key.from = known_words(table, conversion->from);
    key.to = known_words(table, conversion->to);
    key.extents = intern(table->bytes, conversion->shape.extent, sizeof(int64_t) * (size_t)conversion->shape.rank);
    key.rank = conversion->shape.rank;
    key.dtype = conversion->dtype;
    intptr_t *number = intern_slot(table->buckets, &key, sizeof key);
    if (!*number) {
        *number = planner->plan->buckets.count + 1;
        array_push(planner->arena, &planner->plan->buckets, new_bucket(planner, conversion));
        return planner->plan->buckets.count - 1;
    }
    return (int)*number - 1;
}

void plan_buckets(Planner *planner, const Conversion *conversions, int count)
{
    Plan *plan = planner->plan;
    Arena *scratch = arena_create();
    BucketTable table = {scratch, intern_create(scratch), intern_create(scratch), intern_create(scratch)};
    int *bucket_of = arena_array(scratch, int, count), *tensors = arena_array(planner->arena, int, count);
    for (int i = 0; i < count; i++) {
        bucket_of[i] = find_bucket(planner, &table, &conversions[i]);
        plan->buckets.at[bucket_of[i]].tensor_count++;
    }
    int **next = arena_array(scratch, int *, plan->buckets.count);
    for (int s = 0; s < plan->buckets.count; s++) {
        plan->buckets.at[s].tensors = next[s] = tensors;
        tensors += plan->buckets.at[s].tensor_count;
    }
    for (int i = 0; i < count; i++)
        *next[bucket_of[i]]++ = i;
    plan->tensor_count = count;
    arena_destroy(scratch);
}
