/* Finds the local shape of a value on a device, memoized. layout/region.c computes it, also for
 * extents that do not divide evenly. */
#include "ir/programs/regions.h"

#include "ir/analysis_cache.h"
#include "ir/programs/device_programs.h"
#include "support/intern.h"
#include "support/text.h"

#include <string.h>

/* A layout's regions by position, not device: layouts that differ only in devices share them. */
typedef struct PositionRegions {
    int count;
    const Region *at;
    const int *alike; // by position: the first position with the same boxes
} PositionRegions;

/* The regions of the devices of a layout. */
typedef struct Regions {
    int count;
    const int *devices; // in the layout's order
    PositionRegions of_positions;
    int least, span;  // device numbers are in [least, least + span)
    const int *place; // by device - least: its position + 1; 0: not in the layout
} Regions;

/* The key of memoized regions. */
typedef struct Key {
    const Layout *layout;
    int64_t rank;
    int64_t extent[IR_MAX_RANK]; // only the first `rank` entries are used
} Key;

/* An entry of a small direct-mapped cache in front of the hash table. */
typedef struct Recent {
    Key key;
    const Regions *regions;
} Recent;

enum { RECENT = 1024 };

/* The memoized regions of a module. */
struct RegionTable {
    Intern *keys;      // Regions by layout and extents
    Intern *positions; // PositionRegions by the layout with its devices renumbered 0, 1, ...
    Recent recent[RECENT];
};

static Recent *recent_of(struct RegionTable *table, const Layout *layout, Type type) {
    uint64_t number = (uint64_t)(uintptr_t)layout;
    for (int d = 0; d < type.rank; d++)
        number = (number ^ (uint64_t)type.extent[d]) *
                 11400714819323198485u; // 2^64 over the golden ratio
    return &table->recent[(number >> 32) % RECENT];
}

static bool is_recent(const Recent *recent, const Layout *layout, Type type) {
    bool same = recent->regions && recent->key.layout == layout && recent->key.rank == type.rank;
    for (int d = 0; same && d < type.rank; d++) same = recent->key.extent[d] == type.extent[d];
    return same;
}

static size_t key_size(const Key *key) {
    return offsetof(Key, extent) + sizeof *key->extent * (size_t)key->rank;
}

static Key key_of(const Layout *layout, Type type) {
    Key key = {.layout = layout, .rank = type.rank};
    for (int d = 0; d < type.rank; d++) key.extent[d] = type.extent[d];
    return key;
}

/* Returns for each position the first position with the same boxes. */
static const int *find_alike(Arena *arena, const Region *regions, int count) {
    int *alike = arena_array(arena, int, count);
    Arena *scratch = arena_create();
    Intern *first = intern_create(scratch); // by boxes: the first position + 1
    Text boxes = {.arena = scratch};
    for (int i = 0; i < count; i++) {
        boxes.length = 0;
        for (int b = 0; b < regions[i].box_count; b++)
            text_append(&boxes, (const char *)regions[i].boxes[b].dim,
                        sizeof(Range) * (size_t)regions[i].rank);
        intptr_t *slot = intern_slot(first, text_bytes(&boxes), boxes.length);
        *slot = *slot ? *slot : i + 1;
        alike[i] = (int)*slot - 1;
    }
    arena_destroy(scratch);
    return alike;
}

static PositionRegions position_regions(Module *module, const Layout *layout, Type type) {
    Arena *scratch = arena_create();
    Key key =
        key_of(layout_intern(module_interned(module), layout_renumbered(scratch, layout)), type);
    PositionRegions **known = intern_slot(module->cache->regions->positions, &key, key_size(&key));
    if (!*known) {
        PositionRegions *own = *known = arena_new(module->arena, PositionRegions);
        own->at = layout_regions(module->arena, key.layout, type_shape(type), &own->count);
        own->alike = find_alike(module->arena, own->at, own->count);
    }
    arena_destroy(scratch);
    return **known;
}

/* Computes the regions of a layout's devices, and the position of each device. */
static const Regions *all_regions(Module *module, const Layout *layout, Type type) {
    Regions *all = arena_new(module->arena, Regions);
    int most = -1;
    all->devices = layout_devices(module->arena, layout, &all->count);
    all->of_positions = position_regions(module, layout, type);
    all->least = all->count ? all->devices[0] : 0;
    for (int i = 0; i < all->count; i++) {
        most = all->devices[i] > most ? all->devices[i] : most;
        all->least = all->devices[i] < all->least ? all->devices[i] : all->least;
    }
    all->span = most + 1 - all->least;
    int *place = arena_array(module->arena, int, all->span);
    for (int i = 0; i < all->count; i++) place[all->devices[i] - all->least] = i + 1;
    all->place = place;
    return all;
}

/* Returns the regions of a pair of layout and type, memoized. */
static const Regions *regions_of(Module *module, const Layout *layout, Type type) {
    if (!module->cache->regions) {
        module->cache->regions = arena_new(module->arena, struct RegionTable);
        module->cache->regions->keys = intern_create(module->arena);
        module->cache->regions->positions = intern_create(module->arena);
    }
    Recent *recent = recent_of(module->cache->regions, layout, type);
    if (is_recent(recent, layout, type)) return recent->regions;
    Key key = key_of(layout, type);
    const Regions **regions = intern_slot(module->cache->regions->keys, &key, key_size(&key));
    if (!*regions) *regions = all_regions(module, layout, type);
    *recent = (Recent){key, *regions};
    return *regions;
}

/* Returns the position of a device, or of its representative, in a value's layout; -1: none. */
static int place_of(Module *module, const Value *value, const Regions *regions, int device) {
    if (value->def && value->def->stage != STAGE_ALL)
        device = representative_device(module, device);
    int number = device - regions->least;
    return (number >= 0 && number < regions->span ? regions->place[number] : 0) - 1;
}

const Region *value_region(Module *module, const Value *value, int device) {
    static const Region none;
    if (!value->layout) BUG("value %%%d has no layout", value->id);
    const Regions *regions = regions_of(module, value->layout, value->type);
    int place = place_of(module, value, regions, device);
    return place < 0 ? &none : &regions->of_positions.at[place];
}

int value_same_boxes(Module *module, const Value *value, int device) {
    const Regions *regions = regions_of(module, value->layout, value->type);
    int place = place_of(module, value, regions, device);
    return place < 0 ? -1 : regions->of_positions.alike[place];
}

const Region *value_regions(Module *module, const Value *value, const int **devices, int *count) {
    const Regions *regions = regions_of(module, value->layout, value->type);
    *devices = regions->devices;
    *count = regions->count;
    return regions->of_positions.at;
}

const int *value_holders(Arena *arena, Module *module, const Value *value, int *count) {
    const Regions *regions = regions_of(module, value->layout, value->type);
    *count = regions->count;
    if (!value->def || value->def->stage == STAGE_ALL) return regions->devices;
    Array(int) holders = {0};
    for (int i = 0; i < regions->count; i++)
        for (int device = first_represented(module, regions->devices[i]); device >= 0;
             device = next_represented(module, device))
            array_push(arena, &holders, device);
    *count = holders.count;
    return holders.at;
}

bool value_local(Module *module, const Value *value, int device, int64_t *extent) {
    const Region *region = value_region(module, value, device);
    int64_t volume = 1;
    for (int d = 0; d < value->type.rank; d++) {
        const Range *range = region->box_count ? &region->boxes[0].dim[d] : NULL;
        extent[d] = !range            ? 0
                    : region->placing ? region->placing[0].extent[d]
                                      : range->hi - range->lo;
        volume *= extent[d];
    }
    return !region->box_count || volume == region->volume;
}

/* ---- pieces of several boxes ---- */

/* Returns whether a kernel may run on any piece of each factor: no factor has the clause
 * `replicate` or `offset`, and each contracted one has a reduction. */
static bool free_factors(const Op *op) {
    for (int f = 0; f < op->binding->factor_count; f++) {
        int number = op->binding->factors[f].factor;
        const Factor *factor = number < 0 ? NULL : &op->def->rule->factors[number];
        if (!factor || factor->replicate || factor->offset ||
            (factor->contracted && factor->reduction == REDUCE_NONE))
            return false;
    }
    return true;
}

/* Returns whether a tensor is a scalar, or has all the operator's factors ordered as in `first`. */
static bool has_all_factors(const Op *op, const BoundAccess *access, const BoundAccess *first) {
    if (access->rank && access->rank != op->binding->factor_count) return false;
    for (int d = 0; d < access->rank; d++)
        if (access->dims[d].count != 1 || access->dims[d].factors[0] != first->dims[d].factors[0])
            return false;
    return true;
}

static const BoundAccess *tensor_access(const Op *op, int k) {
    return k < op->operand_count ? &op->binding->operands[k]
                                 : &op->binding->results[k - op->operand_count];
}

static const Value *tensor_value(const Op *op, int k) {
    return k < op->operand_count ? op->operands[k] : op->results[k - op->operand_count];
}

bool op_takes_elements(const Op *op) {
    const BoundAccess *first = NULL; // access of the first tensor that is not a scalar
    bool takes = op->def->rule->kind != RULE_VIEW && free_factors(op);
    for (int k = 0; takes && k < op->operand_count + op->result_count; k++) {
        const BoundAccess *access = tensor_access(op, k);
        first = first || !access->rank ? first : access;
        takes = has_all_factors(op, access, first);
    }
    return takes && first;
}

static bool same_boxes(const Region *a, const Region *b) {
    bool same = a->box_count == b->box_count;
    for (int i = 0; same && i < a->box_count; i++)
        same = !memcmp(a->boxes[i].dim, b->boxes[i].dim, sizeof(Range) * (size_t)a->rank);
    return same;
}

/* Returns whether a device holds the same elements of all non-scalar tensors of an operator. */
static bool same_pieces(Module *module, const Op *op, const Value *value, int device) {
    const Region *region = value_region(module, value, device);
    for (int k = 0; k < op->operand_count + op->result_count; k++) {
        const Value *other = tensor_value(op, k);
        if (other && other->type.rank && !same_boxes(region, value_region(module, other, device)))
            return false;
    }
    return true;
}

bool op_local(Module *module, const Op *op, const Value *value, int device, int64_t *extent) {
    if (value_local(module, value, device, extent)) return true;
    for (int d = 0; d < value->type.rank; d++) extent[d] = 1;
    extent[value->type.rank - 1] =
        value_local_bytes(module, value, device) / dtype_size(value->type.dtype);
    return op_takes_elements(op) && same_pieces(module, op, value, device);
}

/* Returns the number of micro-batches of the device's pipeline; 0: `op` is of another template. */
static int64_t microbatches_of(const Module *module, const Op *op, int device) {
    for (int r = 0; r < module->templates->runs.count; r++) {
        const PipelineRun *run = &module->templates->runs.at[r];
        const TemplateStage *own =
            &module->templates->stages.at[op->stage == STAGE_ALL ? 0 : op->stage];
        if (run->template_index != own->template_index) continue;
        const Stage *stage = &module->strategy->pipelines.at[run->pipeline].stages.at[own->number];
        for (int i = 0; i < stage->devices.count; i++)
            if (stage->devices.at[i] == device) return run->microbatches;
    }
    return 0;
}

/* Returns the bytes of an input that micro-batches read in parts, summed over micro-batches. */
static int64_t input_bytes(Module *module, const Value *input, int device) {
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op->def == module->builtin->local_part && op->operands[0] == input &&
            value_region(module, op->results[0], device)->member)
            return value_local_bytes(module, op->results[0], device) *
                   microbatches_of(module, op, device);
    }
    return 0;
}

int64_t value_local_bytes(Module *module, const Value *value, int device) {
    if (value->kind == VALUE_INPUT && !value->layout) return input_bytes(module, value, device);
    if (value->def && value->def->def == module->builtin->collect)
        return value_local_bytes(module, value->def->operands[0], device) *
               microbatches_of(module, value->def, device);
    return value_region(module, value, device)->volume * dtype_size(value->type.dtype);
}
