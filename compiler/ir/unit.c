#include "ir/unit.h"

#include <string.h>

int unit_device_count(const Unit *unit)
{
    int most = 1;
    for (int m = 0; m < unit->modules.count; m++) {
        const Strategy *strategy = unit->modules.at[m]->strategy;
        int count = strategy ? strategy_device_count(strategy) : 1;
        most = count > most ? count : most;
    }
    return most;
}

bool module_same_program(const Module *a, const Module *b)
{
    return a->strategy != b->strategy && a->kind == b->kind && !strcmp(a->name, b->name) && a->precision == b->precision &&
           a->clip == b->clip && a->state_count == b->state_count && !a->update == !b->update &&
           (!a->update || !strcmp(a->update->name, b->update->name));
}

static Module *find_home(const Unit *unit, const Module *module)
{
    for (int m = 0; m < unit->modules.count; m++) {
        Module *other = unit->modules.at[m];
        if (other->strategy && !strcmp(other->strategy->name, module->strategy->optimizer) && module_same_program(module, other))
            return other;
    }
    return NULL;
}

void unit_find_homes(const Unit *unit)
{
    for (int m = 0; m < unit->modules.count; m++)
        if (unit->modules.at[m]->strategy && unit->modules.at[m]->strategy->optimizer)
            unit->modules.at[m]->home = find_home(unit, unit->modules.at[m]);
}
