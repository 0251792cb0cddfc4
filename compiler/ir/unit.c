/* Finds the programs of one model under several strategies. */
#include "ir/unit.h"

#include <string.h>

int unit_device_count(const Unit *unit) {
    int most = 1;
    for (int m = 0; m < unit->modules.count; m++) {
        const Strategy *strategy = unit->modules.at[m]->strategy;
        int count = strategy ? strategy_device_count(strategy) : 1;
        most = count > most ? count : most;
    }
    return most;
}

static bool same_groups(const Module *a, const Module *b) {
    bool same = a->optimizer->groups.count == b->optimizer->groups.count &&
                a->optimizer->averaged == b->optimizer->averaged;
    for (int g = 0; same && g < a->optimizer->groups.count; g++)
        same =
            text_same(a->optimizer->groups.at[g].names, b->optimizer->groups.at[g].names) &&
            text_same(a->optimizer->groups.at[g].function, b->optimizer->groups.at[g].function) &&
            text_same(a->optimizer->groups.at[g].after, b->optimizer->groups.at[g].after);
    return same;
}

bool module_same_program(const Module *a, const Module *b) {
    return same_groups(a, b) && a->strategy != b->strategy && a->kind == b->kind &&
           !strcmp(a->name, b->name) && a->precision == b->precision &&
           a->optimizer->clip == b->optimizer->clip &&
           a->optimizer->state_count == b->optimizer->state_count &&
           !a->optimizer->op == !b->optimizer->op &&
           (!a->optimizer->op || !strcmp(a->optimizer->op->name, b->optimizer->op->name));
}

void unit_add(Unit *unit, Module *module) {
    array_push(unit->arena, &unit->modules, module);
    array_push(unit->arena, &unit->links, (ModuleLinks){0});
}

ModuleLinks *unit_links(const Unit *unit, const Module *module) {
    for (int m = 0; m < unit->modules.count; m++)
        if (unit->modules.at[m] == module) return &unit->links.at[m];
    BUG("module %s is in no unit", module->name);
}

static Module *find_optimizer_program(const Unit *unit, const Module *module) {
    for (int m = 0; m < unit->modules.count; m++) {
        Module *other = unit->modules.at[m];
        if (other->strategy && !strcmp(other->strategy->name, module->strategy->optimizer) &&
            module_same_program(module, other))
            return other;
    }
    return NULL;
}

void unit_find_optimizer_programs(const Unit *unit) {
    for (int m = 0; m < unit->modules.count; m++)
        if (unit->modules.at[m]->strategy && unit->modules.at[m]->strategy->optimizer)
            unit->links.at[m].optimizer_program = find_optimizer_program(unit, unit->modules.at[m]);
}
