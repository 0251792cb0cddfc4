#include "passes/place/union.h"

#include <string.h>

typedef Array(Group) Groups;

/* The device that does in a pipeline what `device` of the stage's mesh does in the body's first. */
static int device_of_run(const Module *module, const BodyStage *stage, const BodyRun *run, int device)
{
    const Stage *own = &module->strategy->pipelines.at[run->pipeline].stages.at[stage->number];
    int position = 0;
    while (stage->mesh->devices[position] != device)
        position++;
    return own->devices.at[position];
}

/* The subgroup of one pipeline. */
static Group group_of_run(Arena *arena, const Module *module, const BodyStage *stage, const BodyRun *run, const Group *group)
{
    Group copy = *group;
    int *devices = arena_array(arena, int, group->device_count);
    for (int i = 0; i < group->device_count; i++)
        devices[i] = device_of_run(module, stage, run, group->devices[i]);
    copy.devices = devices;
    return copy;
}

static void add_groups(Arena *arena, const Module *module, Groups *groups, const Value *value)
{
    const BodyStage *stage = &module->bodies.stages.at[value->def->stage];
    for (int r = 0; r < module->bodies.runs.count; r++)
        if (module->bodies.runs.at[r].body == stage->body)
            array_push(arena, groups, group_of_run(arena, module, stage, &module->bodies.runs.at[r], &value->layout->groups[0]));
}

const Layout *union_layout(Module *module, TopKind top, Value *const *values, int count)
{
    Arena *scratch = arena_create();
    Groups groups = {0};
    for (int i = 0; i < count; i++)
        add_groups(scratch, module, &groups, values[i]);
    Layout layout = {.top = groups.count > 1 ? top : TOP_NONE, .group_count = groups.count, .groups = groups.at};
    const Layout *shared = layout_shared(module_shared(module), &layout);
    arena_destroy(scratch);
    return shared;
}
