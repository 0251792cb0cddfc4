/* Decides which gradients share an all-reduce or reduce-scatter, and how large buckets are.
 * ir/analysis/async_collectives.h says when a bucket starts. No sum is divided by the number of
 * ranks: a mean divides by the whole batch (microbatch/microbatch.c). */
#include "passes/gradient_buckets.h"

#include "ir/analysis/async_collectives.h"
#include "ir/programs/conversions.h"
#include "ir/programs/regions.h"
#include "reshard/plan.h"
#include "support/intern.h"

#include <stdlib.h>
#include <string.h>

/* Conversions that may share a bucket, and the bucket that is being filled. */
typedef struct ConversionKind {
    int64_t bytes, limit; // bytes of all tensors of the kind; bytes of a full bucket
    Ops open;             // operators of the bucket that is being filled
    int64_t open_bytes;   // bytes of their tensors
} ConversionKind;

typedef struct Filler {
    Module *module;
    const Roles *roles;
    int64_t given; // bytes of --bucket; 0: not given
    Arena *arena;
    Intern *kinds;
    ConversionKind **of; // by conversion: its kind; NULL: not determined yet
} Filler;

typedef Array(int) Words;

static void add_devices(Arena *arena, Words *words, const int *devices, int count) {
    array_push(arena, words, count);
    for (int i = 0; i < count; i++) array_push(arena, words, devices[i]);
}

/* Adds a layout's address to a key. Keys are only compared, so addresses change no output. */
static void add_layout(Arena *arena, Words *words, const Layout *layout) {
    int part[sizeof layout / sizeof(int)];
    memcpy(part, &layout, sizeof layout);
    for (size_t w = 0; w < sizeof layout / sizeof(int); w++) array_push(arena, words, part[w]);
}

/* Returns the kind of a conversion of one tensor. The kind's key has the replica groups, the groups
 * of the plan's steps, the element type and the plan's name. With several replica groups it also
 * has the layouts, because only tensors of equal layouts can share replica groups. */
static ConversionKind *kind_of(Filler *filler, const PlannedConversion *conversion) {
    ConversionKind **known = &filler->of[conversion->number];
    if (*known) return *known;
    Words words = {0};
    const Plan *plan = conversion->plan;
    const ReplicaGroups *replica_groups = &conversion->groups;
    const ConvertedTensor *tensor = &conversion->tensors.at[0];
    if (replica_groups->count > 1) {
        add_layout(filler->arena, &words, tensor->from);
        add_layout(filler->arena, &words, tensor->to);
    }
    array_push(filler->arena, &words, replica_groups->size);
    array_push(filler->arena, &words, (int)conversion->tensors.at[0].type.dtype);
    add_devices(filler->arena, &words, replica_groups->devices,
                replica_groups->count * replica_groups->size);
    add_devices(filler->arena, &words, plan->devices, plan->device_count);
    for (int g = 0; g < plan->groups.count; g++)
        add_devices(filler->arena, &words, plan->groups.at[g].device, plan->groups.at[g].count);
    for (const char *c = plan_name(plan); *c; c++) array_push(filler->arena, &words, *c);
    ConversionKind **kind =
        intern_slot(filler->kinds, words.at, sizeof *words.at * (size_t)words.count);
    if (!*kind) *kind = arena_new(filler->arena, ConversionKind);
    return *known = *kind;
}

/* Returns how many bytes a value takes on the device that holds most of it. */
static int64_t most_bytes(const Filler *filler, const Value *value) {
    int64_t most = 0;
    for (int r = 0; r < filler->roles->role_count; r++) {
        int64_t bytes = value_local_bytes(filler->module, value, filler->roles->at[r].devices[0]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static int compare_indices(const void *a, const void *b) {
    return (*(Op *const *)a)->index - (*(Op *const *)b)->index;
}

/* Closes the bucket. Several operators in a bucket get one conversion, with a tensor for each
 * operator in the order of module->ops. */
static void close_bucket(Filler *filler, ConversionKind *kind) {
    Module *module = filler->module;
    if (kind->open.count > 1) {
        PlannedConversion *bucket = conversion_add(module);
        qsort(kind->open.at, (size_t)kind->open.count, sizeof(Op *), compare_indices);
        for (int t = 0; t < kind->open.count; t++) {
            Op *op = kind->open.at[t];
            array_push(module->arena, &bucket->tensors, op->convert.plan->tensors.at[0]);
            conversion_use(bucket, t, op);
        }
        conversion_plan(module, bucket);
    }
    kind->open = (Ops){0};
    kind->open_bytes = 0;
}

static void find_limit(const Filler *filler, ConversionKind *kind) {
    int64_t share = (kind->bytes + MIN_GRADIENT_BUCKETS - 1) / MIN_GRADIENT_BUCKETS;
    kind->limit = filler->given                   ? filler->given
                  : share < GRADIENT_BUCKET_BYTES ? share
                                                  : GRADIENT_BUCKET_BYTES;
}

/* Drops unused conversions, renumbers the others, and sets the `user` of each to its first op. */
static void drop_unused(Module *module) {
    int count = 0;
    for (int c = 0; c < module->devices->conversions.count; c++)
        module->devices->conversions.at[c]->user = NULL;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        PlannedConversion *own =
            op->convert.plan ? module->devices->conversions.at[op->convert.plan->number] : NULL;
        if (own && !own->user) own->user = op;
    }
    for (int c = 0; c < module->devices->conversions.count; c++)
        if (module->devices->conversions.at[c]->user) {
            module->devices->conversions.at[count] = module->devices->conversions.at[c];
            module->devices->conversions.at[count]->number = count;
            count++;
        }
    module->devices->conversions.count = count;
}

/* Returns whether a bucket is full: its bytes reach the limit or, without --bucket, it has
 * MOST_PIECES pieces (a piece of each tensor on each device). */
static bool is_full(const Filler *filler, const ConversionKind *kind, int devices) {
    return kind->open_bytes >= kind->limit ||
           (!filler->given && (int64_t)kind->open.count * devices >= MOST_PIECES);
}

void fill_gradient_buckets(Module *module, const Roles *roles, int64_t bytes) {
    Filler filler = {.module = module, .roles = roles, .given = bytes, .arena = arena_create()};
    filler.kinds = intern_create(filler.arena);
    filler.of = arena_array(filler.arena, ConversionKind *, module->devices->conversions.count + 1);
    AsyncCollectives collectives = module_async_collectives(filler.arena, module);
    ConversionKind **kind = arena_array(filler.arena, ConversionKind *, collectives.count + 1);
    // 1: classify async collectives, and add up the bytes of each kind
    for (int f = 0; f < collectives.count; f++) {
        kind[f] = kind_of(&filler, collectives.at[f].op->convert.plan);
        kind[f]->bytes += most_bytes(&filler, collectives.at[f].op->operands[0]);
    }
    // 2: fill buckets in the order in which backward makes the gradients
    for (int f = 0; f < collectives.count; f++) {
        find_limit(&filler, kind[f]);
        array_push(module->arena, &kind[f]->open, module->ops.at[collectives.at[f].op->index]);
        kind[f]->open_bytes += most_bytes(&filler, collectives.at[f].op->operands[0]);
        if (is_full(&filler, kind[f], collectives.at[f].op->convert.plan->groups.size))
            close_bucket(&filler, kind[f]);
    }
    // 3: close the buckets that are not full
    for (int f = 0; f < collectives.count; f++) close_bucket(&filler, kind[f]);
    if (collectives.count) drop_unused(module);
    arena_destroy(filler.arena);
}
