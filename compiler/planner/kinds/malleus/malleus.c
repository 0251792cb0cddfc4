/* Shares micro-batches among pipelines, and writes the plan. search.c finds groups, pipeline.c the
 * layers of stages. */
#include "planner/kinds/malleus/malleus.h"

#include "planner/kinds/malleus/problem.h"

#include <math.h>

static json_t *devices_json(const Malleus *malleus, const Group *group) {
    json_t *list = json_array();
    for (int i = 0; i < malleus->tp >> group->size; i++)
        json_array_append_new(list,
                              json_integer(malleus->nodes[group->node].devices[group->first + i]));
    return list;
}

static json_t *pipeline_json(const Malleus *malleus, const Grouping *grouping, int pipeline,
                             int microbatches) {
    MalleusStage stages[MOST_STAGES];
    int count = grouping_stages(malleus, grouping, pipeline, stages);
    json_t *list = json_array();
    pipeline_arrange(malleus, stages, count, microbatches);
    for (int i = 0; i < count; i++)
        json_array_append_new(list,
                              json_pack("{s:o,s:i}", "devices",
                                        devices_json(malleus, &grouping->groups[stages[i].group]),
                                        "layers", stages[i].layers));
    return json_pack("{s:i,s:o}", "microbatches", microbatches, "stages", list);
}

/* Returns the devices of all groups that are in no pipeline. */
static json_t *idle_json(const Malleus *malleus, const Grouping *grouping) {
    json_t *list = json_array();
    for (int i = 0; i < grouping->count; i++)
        if (grouping->groups[i].owner == malleus->pipelines) {
            json_t *devices = devices_json(malleus, &grouping->groups[i]);
            json_array_extend(list, devices);
            json_decref(devices);
        }
    return list;
}

/* Returns the number of micro-batches of each pipeline with which a step takes the least time. */
static int *share(Arena *arena, const Malleus *malleus, const Grouping *grouping) {
    Pipeline *pipelines = arena_array(arena, Pipeline, malleus->pipelines);
    int *microbatches = arena_array(arena, int, malleus->pipelines);
    double smooth;
    for (int p = 0; p < malleus->pipelines; p++) {
        MalleusStage stages[MOST_STAGES];
        pipeline_weigh(malleus, stages, grouping_stages(malleus, grouping, p, stages),
                       &pipelines[p]);
    }
    pipelines_share(malleus, pipelines, malleus->pipelines, microbatches, &smooth);
    return microbatches;
}

json_t *malleus_plan(Arena *arena, Field input, Budget *budget) {
    Malleus *malleus = malleus_read(arena, input);
    if (!malleus) return NULL;
    double time;
    Grouping grouping = malleus_search(arena, malleus, budget, &time);
    if (isinf(time)) {
        field_refuse(
            field_get(input, "memory"),
            "no plan was found whose stages have room for %d layers in each of %d pipelines",
            malleus->layers, malleus->pipelines);
        return NULL;
    }
    int *microbatches = share(arena, malleus, &grouping);
    json_t *pipelines = json_array();
    for (int p = 0; p < malleus->pipelines; p++)
        json_array_append_new(pipelines, pipeline_json(malleus, &grouping, p, microbatches[p]));
    return json_pack("{s:o,s:o,s:f}", "pipelines", pipelines, "idle", idle_json(malleus, &grouping),
                     "objective", time);
}
