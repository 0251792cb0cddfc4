/* The memory of a session that runs several programs of a strategy. */
#include "cost/cost.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"

#include <string.h>

/* Returns a parameter of equal name, strategy and layout in a module before `at`, or NULL. */
static const Parameter *shared_from(const Unit *unit, int at, const Parameter *parameter) {
    Module *own = unit->modules.at[at];
    for (int m = 0; m < at; m++) {
        const Module *other = unit->modules.at[m];
        for (int p = 0; p < other->params.count && other->strategy == own->strategy; p++)
            if (!strcmp(other->params.at[p]->name, parameter->name) &&
                module_layouts_equal(own, other->params.at[p]->value->layout,
                                     parameter->value->layout, parameter->value->type))
                return other->params.at[p];
    }
    return NULL;
}

/* Subtracts from `bytes`, by device, the parameters of module `at` that an earlier module keeps. */
static void share_parameters(const Unit *unit, int at, int64_t *bytes) {
    Module *module = unit->modules.at[at];
    for (int p = 0; p < module->params.count; p++) {
        if (!shared_from(unit, at, module->params.at[p])) continue;
        for (int r = 0; r < module->devices->roles->role_count; r++) {
            const Role *role = &module->devices->roles->at[r];
            int64_t own = value_local_bytes(module, module->params.at[p]->value, role->devices[0]);
            for (int i = 0; i < role->device_count; i++) bytes[role->devices[i]] -= own;
        }
    }
}

/* Adds a device's peak to `bytes`, by device. */
static void add_peak(void *bytes, int device, const RoleMemory *memory) {
    ((int64_t *)bytes)[device] += memory->peak;
}

int session_programs(const Unit *unit, const Strategy *strategy) {
    int count = 0;
    for (int m = 0; m < unit->modules.count; m++)
        count += unit->modules.at[m]->strategy == strategy;
    return count;
}

int64_t *session_bytes(Arena *arena, const Unit *unit, const Strategy *strategy) {
    int64_t *bytes = arena_array(arena, int64_t, unit_device_count(unit));
    for (int m = 0; m < unit->modules.count; m++)
        if (unit->modules.at[m]->strategy == strategy) {
            devices_memory_each(unit->modules.at[m], add_peak, bytes);
            share_parameters(unit, m, bytes);
        }
    return bytes;
}
