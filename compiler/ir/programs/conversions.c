/* Plans each distinct conversion once for a module. passes/propagate_layouts/propagate_layouts.c
 * inserts conversions; reshard/reshard.h plans one. */
#include "ir/programs/conversions.h"

#include "ir/programs/device_programs.h"
#include "reshard/cost/communication.h"
#include "support/intern.h"
#include "ir/analysis_cache.h"

ht_dtype dtype_runtime(DType dtype) {
    static const ht_dtype dtypes[] = {[DTYPE_F32] = HT_F32,
                                      [DTYPE_BF16] = HT_BF16,
                                      [DTYPE_F64] = HT_F64,
                                      [DTYPE_I32] = HT_I32,
                                      [DTYPE_I64] = HT_I64};
    return dtypes[dtype];
}

PlannedConversion *conversion_add(Module *module) {
    PlannedConversion *conversion = arena_new(module->arena, PlannedConversion);
    *conversion = (PlannedConversion){.number = module->devices->conversions.count};
    array_push(module->arena, &module->devices->conversions, conversion);
    return conversion;
}

void conversion_use(PlannedConversion *conversion, int tensor, Op *op) {
    op->convert.plan = conversion;
    op->convert.tensor = tensor;
    if (!conversion->user) conversion->user = op;
}

static Conversion planned_tensor(const ConvertedTensor *tensor) {
    return (Conversion){type_shape(tensor->type), dtype_runtime(tensor->type.dtype), tensor->from,
                        tensor->to};
}

/* A tensor of a plan, as a key of the memoization cache: pointers are interned in the module. */
typedef struct PlannedKey {
    const Layout *from, *to;
    const int64_t *extent;
    int64_t rank, dtype;
} PlannedKey;

const Plan *module_plan(Module *module, const Conversion *tensors, int count) {
    Intern *shared = module_interned(module);
    // intern layouts and extents, so that equal tensors have equal keys
    if (!module->cache->plans) module->cache->plans = intern_create(module->arena);
    Conversion *own = arena_copy(module->arena, tensors, sizeof *own * (size_t)count);
    PlannedKey *key = arena_array(module->arena, PlannedKey, count);
    for (int t = 0; t < count; t++) {
        own[t].from = layout_intern(shared, tensors[t].from);
        own[t].to = layout_intern(shared, tensors[t].to);
        key[t] = (PlannedKey){own[t].from, own[t].to,
                              intern(shared, tensors[t].shape.extent,
                                     sizeof(int64_t) * (size_t)tensors[t].shape.rank),
                              tensors[t].shape.rank, tensors[t].dtype};
    }
    const Plan **plan = intern_slot(module->cache->plans, key, sizeof *key * (size_t)count);
    if (!*plan)
        *plan = reshard_plan_all(module->arena, module->devices->target.cluster, own, count);
    return *plan;
}

void conversion_plan(Module *module, PlannedConversion *conversion) {
    Arena *scratch = conversion->plan ? NULL : arena_create();
    if (conversion->plan) return;
    Conversion *tensors = arena_array(scratch, Conversion, conversion->tensors.count);
    for (int t = 0; t < conversion->tensors.count; t++)
        tensors[t] = planned_tensor(&conversion->tensors.at[t]);
    conversion->groups =
        replica_groups_of(module->arena, module->devices->target.cluster,
                          module_equivalent_devices(module), tensors, conversion->tensors.count);
    conversion->plan = module_plan(module, conversion->groups.first, conversion->tensors.count);
    arena_destroy(scratch);
}

int64_t conversion_runs(const Module *module, const Op *op) {
    int64_t runs = 0;
    if (op->stage == STAGE_ALL) return op_runs(module, op);
    for (int r = 0; r < module->templates->runs.count; r++)
        if (module->templates->runs.at[r].template_index ==
            module->templates->stages.at[op->stage].template_index)
            runs += loop_repeats(op->loop) ? module->templates->runs.at[r].microbatches : 1;
    return runs;
}

const Plan *op_plan_alone(Arena *arena, Module *module, const Op *op,
                          ReplicaGroups *replica_groups) {
    Conversion tensor = planned_tensor(&op->convert.plan->tensors.at[op->convert.tensor]);
    *replica_groups = op->convert.plan->groups;
    if (op->convert.plan->tensors.count == 1) return op->convert.plan->plan;
    *replica_groups = replica_groups_of(arena, module->devices->target.cluster,
                                        module_equivalent_devices(module), &tensor, 1);
    return module_plan(module, replica_groups->first, 1);
}

int conversion_device(Module *module, const Op *op, int device) {
    return replica_groups_name(&op->convert.plan->groups,
                               op_representative_device(module, op, device));
}

/* Returns, by slot of the plan, the device of the conversion. */
static const int *devices_of(Arena *arena, const PlannedConversion *conversion) {
    const ReplicaGroups *groups = &conversion->groups;
    int *devices = arena_array(arena, int, conversion->plan->device_count);
    for (int m = 0; m < groups->size; m++) {
        int slot = plan_slot(conversion->plan, groups->name[m]);
        if (slot >= 0) devices[slot] = groups->devices[m];
    }
    return devices;
}

void conversion_load_uplinks(const PlannedConversion *conversion, UplinkLoads *loads) {
    Arena *scratch = arena_create();
    const int *devices = devices_of(scratch, conversion);
    for (int s = 0; s < conversion->plan->steps.count; s++)
        load_uplinks(conversion->plan, &conversion->plan->steps.at[s], devices, loads);
    arena_destroy(scratch);
}
