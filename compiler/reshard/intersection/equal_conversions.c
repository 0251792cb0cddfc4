/* Makes buckets: conversions with equal shape, type and layouts are planned as one tensor. */
#include "reshard/plan_builder.h"
#include "support/intern.h"

/* Tables that find the bucket of a conversion. */
typedef struct BucketTable {
    // shared: layouts by content; layouts: unique ones by address; buckets: number + 1 by key
    Intern *shared, *layouts, *buckets;
} BucketTable;

/* Returns the unique copy of a layout, cached by its address. */
static const Layout *find_layout(BucketTable *table, const Layout *layout) {
    const Layout **slot = intern_slot(table->layouts, &layout, sizeof layout);
    if (!*slot) *slot = layout_intern(table->shared, layout);
    return *slot;
}

static Bucket new_bucket(PlanBuilder *planner, const Conversion *conversion) {
    const Overlap *overlap =
        overlap_of(planner->arena, conversion->shape, conversion->from, conversion->to);
    StateKind from = overlap->side[SIDE_FROM].partial,
              kind = from != STATE_DUP ? from : overlap->side[SIDE_TO].partial;
    return (Bucket){.dtype = conversion->dtype,
                    .element = ht_dtype_size(conversion->dtype),
                    .reduction = kind == STATE_SUM   ? HT_SUM
                                 : kind == STATE_MAX ? HT_MAX
                                                     : HT_NO_REDUCTION,
                    .overlap = overlap};
}

/* Returns the index of a conversion's bucket; adds the bucket if it does not exist. */
static int find_bucket(PlanBuilder *planner, BucketTable *table, const Conversion *conversion) {
    int n = 0;
    int64_t key[LAYOUT_MAX_RANK + 3];
    key[n++] = (intptr_t)find_layout(table, conversion->from);
    key[n++] = (intptr_t)find_layout(table, conversion->to);
    key[n++] = conversion->dtype;
    for (int d = 0; d < conversion->shape.rank; d++) key[n++] = conversion->shape.extent[d];
    intptr_t *number = intern_slot(table->buckets, key, sizeof *key * (size_t)n);
    if (!*number) {
        *number = planner->plan->buckets.count + 1;
        array_push(planner->arena, &planner->plan->buckets, new_bucket(planner, conversion));
        return planner->plan->buckets.count - 1;
    }
    return (int)*number - 1;
}

void find_buckets(PlanBuilder *planner, const Conversion *conversions, int count) {
    Plan *plan = planner->plan;
    Arena *scratch = arena_create();
    BucketTable table = {intern_create(scratch), intern_create(scratch), intern_create(scratch)};
    int *bucket_of = arena_array(scratch, int, count),
        *tensors = arena_array(planner->arena, int, count);
    for (int i = 0; i < count; i++) {
        bucket_of[i] = find_bucket(planner, &table, &conversions[i]);
        plan->buckets.at[bucket_of[i]].tensor_count++;
    }
    int **next = arena_array(scratch, int *, plan->buckets.count);
    for (int s = 0; s < plan->buckets.count; s++) {
        plan->buckets.at[s].tensors = next[s] = tensors;
        tensors += plan->buckets.at[s].tensor_count;
    }
    for (int i = 0; i < count; i++) *next[bucket_of[i]]++ = i;
    plan->tensor_count = count;
    arena_destroy(scratch);
}
