/* Makes the layout of a value that several pipelines or stages hold, each over its own mesh. */
#include "passes/seed_layouts/seed_layouts.h"

typedef Array(Group) Groups;

/* Returns the positions of a subgroup's devices in its stage's mesh. */
static const int *mesh_positions(Arena *arena, const Mesh *mesh, const Group *group) {
    int most = 0, *positions = arena_array(arena, int, group->device_count);
    for (int i = 0; i < mesh->device_count; i++)
        most = mesh->devices[i] > most ? mesh->devices[i] : most;
    int *position = arena_array(arena, int, most + 1);
    for (int i = 0; i < mesh->device_count; i++) position[mesh->devices[i]] = i;
    for (int i = 0; i < group->device_count; i++) positions[i] = position[group->devices[i]];
    return positions;
}

/* Returns a pipeline's subgroup that corresponds to `group` of the template's first pipeline. */
static Group group_of_run(Arena *arena, const Module *module, const TemplateStage *stage,
                          const PipelineRun *run, const Group *group, const int *positions) {
    const Stage *own = &module->strategy->pipelines.at[run->pipeline].stages.at[stage->number];
    Group copy = *group;
    int *devices = arena_array(arena, int, group->device_count);
    for (int i = 0; i < group->device_count; i++) devices[i] = own->devices.at[positions[i]];
    copy.devices = devices;
    return copy;
}

static void add_groups(Arena *arena, const Module *module, Groups *groups, const Value *value) {
    const TemplateStage *stage = &module->templates->stages.at[value->def->stage];
    const Group *group = &value->layout->groups[0];
    const int *positions = mesh_positions(arena, stage->mesh, group);
    for (int r = 0; r < module->templates->runs.count; r++)
        if (module->templates->runs.at[r].template_index == stage->template_index)
            array_push(arena, groups,
                       group_of_run(arena, module, stage, &module->templates->runs.at[r], group,
                                    positions));
}

/* Aborts if a device is in two subgroups of a sum, as conversions read one piece a device. */
static void check_apart(Arena *arena, const Groups *groups) {
    int most = 0;
    for (int g = 0; g < groups->count; g++)
        for (int i = 0; i < groups->at[g].device_count; i++)
            most = groups->at[g].devices[i] > most ? groups->at[g].devices[i] : most;
    bool *taken = arena_array(arena, bool, most + 1);
    for (int g = 0; g < groups->count; g++)
        for (int i = 0; i < groups->at[g].device_count; i++) {
            if (taken[groups->at[g].devices[i]])
                BUG("device %d stands in two subgroups of a sum", groups->at[g].devices[i]);
            taken[groups->at[g].devices[i]] = true;
        }
}

const Layout *union_layout(Module *module, TopKind top, Value *const *values, int count) {
    Arena *scratch = arena_create();
    Groups groups = {0};
    for (int i = 0; i < count; i++) add_groups(scratch, module, &groups, values[i]);
    if (top == TOP_SUM) check_apart(scratch, &groups);
    Layout layout = {
        .top = groups.count > 1 ? top : TOP_NONE, .group_count = groups.count, .groups = groups.at};
    const Layout *shared = layout_intern(module_interned(module), &layout);
    arena_destroy(scratch);
    return shared;
}
