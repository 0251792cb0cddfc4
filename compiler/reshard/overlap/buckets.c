/* Buckets: conversions that are alike, planned as one. */
#include "reshard/overlap/tasks.h"
#include "support/intern.h"

/* Finds buckets by what makes conversions alike. */
typedef struct BucketTable {
    Arena *arena;
    Intern *bytes, *layouts, *buckets; // what a layout says by its address; the bucket's number + 1 by its key
} BucketTable;

/* Appends a list, and how long it is. */
static void append_list(Text *out, const void *list, size_t size, int count)
{
    count = list ? count : 0;
    text_append(out, (const char *)&count, sizeof count);
    text_append(out, list, size * (size_t)count);
}

/* All that a layout says, as bytes: equal ones give every device the same. */
static void append_layout(Text *out, const Layout *layout)
{
    const int64_t top[] = {layout->top, layout->top == TOP_SPLIT ? layout->top_dim : 0, layout->inner};
    append_list(out, top, sizeof *top, 3);
    append_list(out, layout->top_weights, sizeof *layout->top_weights, layout->group_count);
    append_list(out, layout->view, sizeof *layout->view, layout->view_rank);
    append_list(out, layout->view_dim, sizeof *layout->view_dim, layout->view_rank);
    for (const Group *group = layout->groups; group < layout->groups + layout->group_count; group++) {
        append_list(out, group->devices, sizeof *group->devices, group->device_count);
        append_list(out, &group->state_count, sizeof group->state_count, 1);
        for (const State *state = group->states; state < group->states + group->state_count; state++) {
            const int64_t cut[] = {state->kind, state->kind == STATE_SPLIT ? state->dim : 0, state->count};
            append_list(out, cut, sizeof *cut, 3);
            append_list(out, state->weights, sizeof *state->weights, state->count);
        }
    }
}

/* The same, once for all equal ones, and remembered by the layout's address. */
static const void *layout_bytes(BucketTable *table, const Layout *layout)
{
    const void **slot = intern_slot(table->layouts, &layout, sizeof layout);
    if (!*slot) {
        Text text = {.arena = table->arena};
        append_layout(&text, layout);
        *slot = intern(table->bytes, text_bytes(&text), text.length);
    }
    return *slot;
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
    int n = 0;
    int64_t key[LAYOUT_MAX_RANK + 3];
    key[n++] = (intptr_t)layout_bytes(table, conversion->from);
    key[n++] = (intptr_t)layout_bytes(table, conversion->to);
    key[n++] = conversion->dtype;
    for (int d = 0; d < conversion->shape.rank; d++)
        key[n++] = conversion->shape.extent[d];
    intptr_t *number = intern_slot(table->buckets, key, sizeof *key * (size_t)n);
    if (!*number) {
        *number = planner->plan->buckets.count + 1;
        array_push(planner->arena, &planner->plan->buckets, new_bucket(planner, conversion));
        return planner->plan->buckets.count - 1;
    }
    return (int)*number - 1;
}

void find_buckets(Planner *planner, const Conversion *conversions, int count)
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
