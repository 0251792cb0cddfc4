#include "ir/roles.h"

#include "support/intern.h"

#include <string.h>

/* By layout and extents: what every device holds, by device number. */
struct RegionTable {
    Intern *keys;
};

typedef struct Key {
    const Layout *layout;
    int64_t rank;
    int64_t extent[IR_MAX_RANK];
} Key;

static int highest_device(const Layout *layout)
{
    int most = 0;
    for (int g = 0; g < layout->group_count; g++)
        for (int i = 0; i < layout->groups[g].device_count; i++)
            if (layout->groups[g].devices[i] > most)
                most = layout->groups[g].devices[i];
    return most;
}

static Region *all_regions(Arena *arena, const Layout *layout, Type type)
{
    int count = highest_device(layout) + 1;
    Region *regions = arena_array(arena, Region, count);
    for (int g = 0; g < layout->group_count; g++)
        for (int i = 0; i < layout->groups[g].device_count; i++) {
            int device = layout->groups[g].devices[i];
            regions[device] = layout_region(arena, layout, type_shape(type), device);
        }
    return regions;
}

/* The regions of a pair of layout and type, computed when it is first asked for. */
static const Region *regions_of(Module *module, const Layout *layout, Type type)
{
    if (!module->regions) {
        module->regions = arena_new(module->arena, struct RegionTable);
        module->regions->keys = intern_create(module->arena);
    }
    Key key;
    memset(&key, 0, sizeof key);
    key.layout = layout;
    key.rank = type.rank;
    if (type.rank)
        memcpy(key.extent, type.extent, sizeof *type.extent * (size_t)type.rank);
    Region **regions = intern_slot(module->regions->keys, &key, sizeof key);
    if (!*regions)
        *regions = all_regions(module->arena, layout, type);
    return *regions;
}

const Region *value_region(Module *module, const Value *value, int device)
{
    static const Region none;
    if (!value->layout)
        BUG("value %%%d has no layout", value->id);
    return device > highest_device(value->layout) ? &none : &regions_of(module, value->layout, value->type)[device];
}

ht_dtype dtype_runtime(DType dtype)
{
    static const ht_dtype dtypes[] = {
        [DTYPE_F32] = HT_F32, [DTYPE_BF16] = HT_BF16, [DTYPE_F64] = HT_F64, [DTYPE_I32] = HT_I32, [DTYPE_I64] = HT_I64};
    return dtypes[dtype];
}

Conversion op_conversion(Arena *arena, const Op *op)
{
    const Value *from = op->operands[0], *to = op->results[0];
    return (Conversion){value_shape(arena, to), dtype_runtime(to->type.dtype), from->layout, to->layout};
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

const Value *value_storage(const Value *value)
{
    while (value->storage)
        value = value->storage;
    return value;
}
