#include "ir/roles.h"

#include "support/intern.h"

#include <string.h>

/* What every device holds, by device number; those from `count` on hold nothing. */
typedef struct Regions {
    int count;
    const Region *at;
} Regions;

/* Regions by layout and extents. */
struct RegionTable {
    Intern *keys;
};

typedef struct Key {
    const Layout *layout;
    int64_t rank;
    int64_t extent[IR_MAX_RANK];
} Key;

static const Regions *all_regions(Arena *arena, const Layout *layout, Type type)
{
    Regions *all = arena_new(arena, Regions);
    int count;
    const int *devices = layout_devices(arena, layout, &count);
    const Region *held = layout_regions(arena, layout, type_shape(type), &count);
    for (int i = 0; i < count; i++)
        all->count = devices[i] >= all->count ? devices[i] + 1 : all->count;
    Region *regions = arena_array(arena, Region, all->count);
    for (int i = 0; i < count; i++)
        regions[devices[i]] = held[i];
    all->at = regions;
    return all;
}

/* The regions of a pair of layout and type, computed when it is first asked for. */
static const Regions *regions_of(Module *module, const Layout *layout, Type type)
{
    if (!module->caches.regions) {
        module->caches.regions = arena_new(module->arena, struct RegionTable);
        module->caches.regions->keys = intern_create(module->arena);
    }
    Key key;
    memset(&key, 0, sizeof key);
    key.layout = layout;
    key.rank = type.rank;
    if (type.rank)
        memcpy(key.extent, type.extent, sizeof *type.extent * (size_t)type.rank);
    const Regions **regions = intern_slot(module->caches.regions->keys, &key, sizeof key);
    if (!*regions)
        *regions = all_regions(module->arena, layout, type);
    return *regions;
}

const Region *value_region(Module *module, const Value *value, int device)
{
    static const Region none;
    if (!value->layout)
        BUG("value %%%d has no layout", value->id);
    const Regions *regions = regions_of(module, value->layout, value->type);
    return device < regions->count ? &regions->at[device] : &none;
}

ht_dtype dtype_runtime(DType dtype)
{
    static const ht_dtype dtypes[] = {
        [DTYPE_F32] = HT_F32, [DTYPE_BF16] = HT_BF16, [DTYPE_F64] = HT_F64, [DTYPE_I32] = HT_I32, [DTYPE_I64] = HT_I64};
    return dtypes[dtype];
}

PlannedConversion *conversion_add(Module *module, Type type, const Layout *from, const Layout *to)
{
    PlannedConversion *conversion = arena_new(module->arena, PlannedConversion);
    *conversion = (PlannedConversion){.number = module->conversions.count, .type = type, .from = from, .to = to};
    array_push(module->arena, &module->conversions, conversion);
    return conversion;
}

void conversion_use(Module *module, PlannedConversion *conversion, Op *op)
{
    op->conversion = conversion;
    if (conversion->user)
        return;
    conversion->user = op;
    Conversion tensor = {type_shape(conversion->type), dtype_runtime(conversion->type.dtype), conversion->from, conversion->to};
    conversion->plan = reshard_plan(module->arena, module->options.cluster, &tensor);
}

bool value_local(Module *module, const Value *value, int device, int64_t *extent)
{
    const Region *region = value_region(module, value, device);
    for (int d = 0; d < value->type.rank; d++)
        extent[d] = region->box_count != 1                                ? 0
                    : value->micro == d + 1 && value->kind != VALUE_PARAM ? 1
                                                                          : region->boxes[0].dim[d].hi - region->boxes[0].dim[d].lo;
    return region->box_count <= 1;
}

int64_t value_local_bytes(Module *module, const Value *value, int device)
{
    int64_t bytes = value_region(module, value, device)->volume * dtype_size(value->type.dtype);
    return value->micro > 0 && value->kind == VALUE_RESULT ? bytes / module->microbatches : bytes;
}

int64_t role_scratch_bytes(const Role *role, const Op *op)
{
    int64_t most = 0;
    for (int i = 0; op->conversion && i < role->device_count; i++) {
        int64_t bytes = plan_scratch_bytes(op->conversion->plan, role->devices[i]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

const Value *value_storage(const Value *value)
{
    while (value->storage)
        value = value->storage;
    return value;
}
