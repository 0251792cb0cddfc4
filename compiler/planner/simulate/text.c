/* Writes simulated steps as a table. */
#include "planner/simulate/simulate.h"

const char *actor_devices(Arena *arena, const Actor *actor) {
    Text text = {.arena = arena};
    text_string(&text, "[");
    layout_print_devices(&text, actor->devices, actor->device_count, 2);
    text_string(&text, "]");
    return text_bytes(&text);
}

static void print_actor(Text *out, const SimulatedSteps *steps, int number, double length) {
    const Actor *actor = &steps->fold.actors[number];
    const ActorTime *time = &steps->times[number];
    const ActorMemory *memory = &steps->memory[number];
    double whole = length > 0 ? length : 1;
    text_print(out, "  %-16s %-10s %12.6g %5.1f%% %12.6g %5.1f%% %12.6g %5.1f%% %14lld %14lld\n",
               actor_devices(out->arena, actor), actor->class->name, time->computing,
               100 * time->computing / whole, time->exposed, 100 * time->exposed / whole,
               time->idle, 100 * time->idle / whole, (long long)memory->used,
               (long long)memory->peak);
}

void steps_table(Text *out, const SimulatedSteps *steps) {
    const Module *module = steps->module;
    double length = 0;
    text_print(out, "%s %s: %s, strategy %s, devices %d, simulated %d\n", module->source->file,
               module->name, module->kind == MODULE_TRAIN ? "train" : "infer",
               module->strategy ? module->strategy->name : "none",
               module->devices->roles->device_count, steps->fold.actor_count);
    for (int s = 0; s < steps->program.steps; s++) {
        text_print(out, "step %d: %.9g s\n", s, steps->seconds[s]);
        length += steps->seconds[s];
    }
    text_print(out, "  %-16s %-10s %12s %6s %12s %6s %12s %6s %14s %14s\n", "devices", "class",
               "computing s", "", "exposed s", "", "idle s", "", "bytes in use", "reserved");
    for (int a = 0; a < steps->fold.actor_count; a++) print_actor(out, steps, a, length);
}
