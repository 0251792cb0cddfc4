#include "ir/unit.h"

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
