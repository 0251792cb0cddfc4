/* Fuses collectives: each large tensor has its own; small tensors of the same kind share one.
 *
 * The data of a collective is contiguous, so parts of several tensors are packed before it and
 * unpacked afterwards. Fusion is faster as long as both copies take less time than the start of
 * another collective. propagate_layouts.c converts a value once for all its readers. */
#include "reshard/devices.h"
#include "reshard/plan_builder.h"
#include "reshard/cost/communication.h"
#include "support/intern.h"

#include <string.h>

/* The parts of one tensor in a collective. */
typedef struct Share {
    int tensor;
    int64_t bytes;
    Segments *parts; // by position in the group, like Step.parts
} Share;

typedef Array(Share) Shares;

/* Steps that could be fused: of the same kind, group, root and type. */
typedef struct FuseKind {
    const Step *step; // the first step of the kind
    Segments *parts;  // the small tensors' parts, by position in the group
    int64_t bytes;
} FuseKind;

typedef Array(FuseKind *) Kinds;

typedef struct Fusion {
    PlanBuilder *planner;
    int *share_of; // by tensor: index + 1 of its share of the current step; 0: none
    Kinds kinds;
    Intern *known; // the kinds by their key
} Fusion;

static Share *find_share(Fusion *fusion, Shares *shares, int tensor, int parts) {
    if (!fusion->share_of[tensor]) {
        array_push(fusion->planner->arena, shares,
                   (Share){.tensor = tensor,
                           .parts = arena_array(fusion->planner->arena, Segments, parts)});
        fusion->share_of[tensor] = shares->count;
    }
    return &shares->at[fusion->share_of[tensor] - 1];
}

/* Appends the pieces of a segment, by tensor, to part `i` of the tensors' shares. */
static void divide_segment(Fusion *fusion, Shares *shares, const Segment *segment, int i,
                           int parts) {
    const Plan *plan = fusion->planner->plan;
    const Task *task = &plan->tasks.at[segment->task];
    const Bucket *bucket = &plan->buckets.at[task->bucket];
    int64_t volume = bucket->overlap->bundles.at[task->bundle].volume;
    for (int64_t k = segment->lo / volume; k * volume < segment->hi; k++) {
        Segment piece = *segment;
        piece.lo = segment->lo > k * volume ? segment->lo : k * volume;
        piece.hi = segment->hi < (k + 1) * volume ? segment->hi : (k + 1) * volume;
        Share *share = find_share(fusion, shares, bucket->tensors[k], parts);
        share->bytes += segment_bytes(plan, &piece);
        array_push(fusion->planner->arena, &share->parts[i], piece);
    }
}

static Shares divide_step(Fusion *fusion, const Step *step) {
    Shares shares = {0};
    int parts = step_part_count(step);
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < step->parts[i].count; k++)
            divide_segment(fusion, &shares, &step->parts[i].at[k], i, parts);
    for (int i = 0; i < shares.count; i++) fusion->share_of[shares.at[i].tensor] = 0;
    return shares;
}

/* Returns whether packing and unpacking `bytes` takes longer than another collective's start. */
static bool is_large(const Plan *plan, const Step *step, int64_t bytes) {
    int device = step->group.at[0],
        rounds = (step->group.count - 1) * (step->verb == HT_ALL_REDUCE ? 2 : 1);
    double copies = 2 * (double)bytes / cluster_link(plan->cluster, device, device).bandwidth;
    return copies > rounds * group_link(plan, &step->group).latency;
}

static const Segment *first_segment(const Step *step) {
    for (int i = 0; i < step_part_count(step); i++)
        if (step->parts[i].count) return &step->parts[i].at[0];
    BUG("a collective moves nothing");
}

static FuseKind *find_kind(Fusion *fusion, const Step *step) {
    PlanBuilder *planner = fusion->planner;
    const Bucket *bucket = task_bucket(planner->plan, first_segment(step)->task);
    bool reduces = step_reduces(step);
    int count = step->group.count, *key = arena_array(planner->arena, int, count + 4), n = 0;
    key[n++] = step->verb;
    key[n++] = reduces ? (int)bucket->dtype : bucket->element;
    key[n++] = reduces ? (int)bucket->reduction : 0;
    key[n++] = step->verb == HT_BROADCAST || step->verb == HT_REDUCE ? step->group.at[0] : 0;
    memcpy(key + n, step->group.at, sizeof *key * (size_t)count);
    sort_devices(key + n, count);
    FuseKind **kind = intern_slot(fusion->known, key, sizeof *key * (size_t)(n + count));
    if (!*kind) {
        *kind = arena_new(planner->arena, FuseKind);
        (*kind)->step = step;
        array_push(planner->arena, &fusion->kinds, *kind);
    }
    return *kind;
}

static void emit_kind(Fusion *fusion, FuseKind *kind) {
    if (kind->bytes)
        add_countable_collective(fusion->planner, &kind->step->group, kind->parts,
                                 kind->step->verb);
    kind->bytes = 0;
    kind->parts = NULL;
}

/* Adds a small tensor's share of `step` to the fused collective of its kind. */
static void join(Fusion *fusion, FuseKind *kind, const Step *step, const Share *share) {
    Arena *arena = fusion->planner->arena;
    int parts = step_part_count(step);
    if (kind->bytes + share->bytes > INT32_MAX) emit_kind(fusion, kind);
    if (!kind->parts) kind->parts = arena_array(arena, Segments, parts);
    for (int i = 0; i < parts; i++) {
        int place = parts == 1 ? 0 : devices_find(&kind->step->group, step->group.at[i]);
        for (int k = 0; k < share->parts[i].count; k++)
            array_push(arena, &kind->parts[place], share->parts[i].at[k]);
    }
    kind->bytes += share->bytes;
}

/* Fuses steps that do not depend on each other. */
static void fuse(Fusion *fusion, const Step *steps, int count) {
    fusion->kinds = (Kinds){0};
    fusion->known = intern_create(fusion->planner->arena);
    for (int s = 0; s < count; s++) {
        Shares shares = divide_step(fusion, &steps[s]);
        for (int i = 0; i < shares.count; i++)
            if (is_large(fusion->planner->plan, &steps[s], shares.at[i].bytes))
                add_countable_collective(fusion->planner, &steps[s].group, shares.at[i].parts,
                                         steps[s].verb);
            else join(fusion, find_kind(fusion, &steps[s]), &steps[s], &shares.at[i]);
    }
    for (int i = 0; i < fusion->kinds.count; i++) emit_kind(fusion, fusion->kinds.at[i]);
}

/* Returns a number that is equal for adjacent steps of one stage that do not depend on each other;
 * -1: the step is not a collective that may be fused. */
static int phase_of(const Step *step) {
    switch (step->verb) {
    case HT_ALL_REDUCE: return 0;
    case HT_REDUCE_SCATTER:
    case HT_REDUCE: return 1;
    case HT_ALL_GATHER:
    case HT_BROADCAST: return 2;
    default: return -1;
    }
}

/* Sorts the steps from `first` on stably by verb. */
static void sort_by_verb(PlanBuilder *planner, int first) {
    Plan *plan = planner->plan;
    int count = plan->steps.count - first, kept = 0;
    Step *steps = arena_copy(planner->arena, plan->steps.at + first, sizeof *steps * (size_t)count);
    for (int verb = HT_ALL_REDUCE; verb <= HT_REDUCE; verb++)
        for (int s = 0; s < count; s++)
            if ((int)steps[s].verb == verb) plan->steps.at[first + kept++] = steps[s];
}

void fuse_collectives(PlanBuilder *planner) {
    Plan *plan = planner->plan;
    Fusion fusion = {.planner = planner,
                     .share_of = arena_array(planner->arena, int, plan->tensor_count)};
    const Step *steps = plan->steps.at;
    int count = plan->steps.count;
    memset(&plan->steps, 0, sizeof plan->steps);
    for (int s = 0, end; s < count; s = end) {
        int phase = phase_of(&steps[s]), first = plan->steps.count;
        for (end = s + 1; end < count && phase >= 0 && phase_of(&steps[end]) == phase &&
                          steps[end].stage == steps[s].stage;)
            end++;
        planner->stage = steps[s].stage;
        if (phase < 0) array_push(planner->arena, &plan->steps, steps[s]);
        else if (plan->tensor_count == 1)
            for (int i = s; i < end; i++)
                add_countable_collective(planner, &steps[i].group, steps[i].parts, steps[i].verb);
        else fuse(&fusion, steps + s, end - s);
        if (phase >= 0) sort_by_verb(planner, first);
    }
}
