/* Prints a candidate as a strategy file, and in words. */
#include "planner/search/candidate.h"

#include "planner/search/devices.h"
#include "planner/search/evaluate.h"
#include "planner/search/search_model.h"
#include "support/text.h"
#include "support/array.h"

static const int *copy_numbers(Arena *arena, const int *numbers, int count) {
    return numbers ? arena_copy(arena, numbers, sizeof *numbers * (size_t)count) : NULL;
}

static void copy_stage(Arena *arena, SearchStage *stage) {
    stage->devices = copy_numbers(arena, stage->devices, stage->device_count);
    stage->data_weights = copy_numbers(arena, stage->data_weights, stage->data);
    stage->tensor_weights = copy_numbers(arena, stage->tensor_weights, stage->tensor);
}

Candidate candidate_copy(Arena *arena, const Candidate *candidate) {
    Candidate copy = *candidate;
    copy.pipelines = arena_copy(arena, candidate->pipelines,
                                sizeof *copy.pipelines * (size_t)copy.pipeline_count);
    for (int p = 0; p < copy.pipeline_count; p++) {
        SearchPipeline *pipeline = &copy.pipelines[p];
        pipeline->stages = arena_copy(arena, pipeline->stages,
                                      sizeof *pipeline->stages * (size_t)pipeline->stage_count);
        for (int s = 0; s < pipeline->stage_count; s++) copy_stage(arena, &pipeline->stages[s]);
    }
    return copy;
}

static void print_axis(Text *out, const char *name, int count, const int *weights, bool *any) {
    if (count < 2) return;
    text_print(out, "%s%s:%d", *any ? ", " : " mesh(", name, count);
    for (int i = 0; weights && i < count; i++)
        text_print(out, "%s%d", i ? ":" : " by ", weights[i]);
    *any = true;
}

/* Prints how a pipeline divides its rows. With `own`, leaves out the rows of a micro-batch, so that
 * each program divides its own batch. A strategy of one pipeline requires this if the batches of
 * programs differ in size. */
static void print_rows(Text *out, const SearchPipeline *pipeline, bool own) {
    if (pipeline->rows) text_print(out, " microbatches(%lld)", (long long)pipeline->microbatches);
    if (pipeline->rows && !own) text_print(out, " rows(%lld)", (long long)pipeline->rows);
}

static void print_stage(Text *out, const SearchStage *stage, const SearchModel *model, bool alone) {
    static const char *const words[RECOMPUTES] = {"", " recompute(selective)", " recompute(full)"};
    bool any = false;
    text_string(out, "    stage devices(");
    layout_print_devices(out, stage->devices, stage->device_count, 2);
    text_string(out, ")");
    print_axis(out, "dp", stage->data, stage->data_weights, &any);
    print_axis(out, "tp", stage->tensor, stage->tensor_weights, &any);
    text_string(out, any ? ")" : "");
    if (!alone)
        text_print(out, " layers(%s)", model_layers(out->arena, model, stage->first, stage->end));
    text_print(out, "%s\n", words[stage->recompute]);
}

/* Returns whether some stage has more than one device along an axis. */
static bool has_axis(const Candidate *candidate, bool data) {
    bool has = false;
    for (int p = 0; p < candidate->pipeline_count; p++)
        for (int s = 0; s < candidate->pipelines[p].stage_count; s++) {
            const SearchStage *stage = &candidate->pipelines[p].stages[s];
            has |= (data ? stage->data : stage->tensor) > 1;
        }
    return has;
}

static void print_splits(Text *out, const Candidate *candidate, const SearchModel *model) {
    bool data = has_axis(candidate, true), tensor = has_axis(candidate, false);
    if (!data && !tensor) return;
    text_string(out, "  split");
    if (data) text_print(out, " %s:dp", model->batch_dim);
    for (int i = 0; tensor && i < candidate->splits->count; i++)
        text_print(out, " %s:tp", candidate->splits->dims[i]);
    text_string(out, "\n");
}

static void mark_working(const Candidate *candidate, bool *works, int *last) {
    for (int p = 0; p < candidate->pipeline_count; p++)
        for (int s = 0; s < candidate->pipelines[p].stage_count; s++) {
            const SearchStage *stage = &candidate->pipelines[p].stages[s];
            for (int i = 0; i < stage->device_count; i++) {
                *last = stage->devices[i] > *last ? stage->devices[i] : *last;
                works[stage->devices[i]] = true;
            }
        }
}

/* Prints the devices in no stage that are among the first `count` or before a stage's last one. */
static void print_idle(Text *out, const Candidate *candidate, const Fleet *devices, int count) {
    int last = -1;
    Array(int) idle = {0};
    bool *works = arena_array(out->arena, bool, devices->count);
    mark_working(candidate, works, &last);
    for (int device = 0; device < count || device < last; device++)
        if (!works[device]) array_push(out->arena, &idle, device);
    if (!idle.count) return;
    text_string(out, "  idle devices(");
    layout_print_devices(out, idle.at, idle.count, 2);
    text_string(out, ")\n");
}

void candidate_print(Text *out, const Candidate *candidate, const EvaluationContext *context,
                     int count, const char *name) {
    const SearchModel *model = context->model;
    text_print(out, "strategy %s\n", name);
    print_splits(out, candidate, model);
    if (candidate->zero) text_print(out, "  zero %d\n", candidate->zero);
    for (int p = 0; p < candidate->pipeline_count; p++) {
        const SearchPipeline *pipeline = &candidate->pipelines[p];
        text_string(out, "  pipeline");
        print_rows(out, pipeline, model->batches_differ && candidate->pipeline_count == 1);
        text_string(out, "\n");
        for (int s = 0; s < pipeline->stage_count; s++)
            print_stage(out, &pipeline->stages[s], model, pipeline->stage_count == 1);
    }
    print_idle(out, candidate, context->devices, count);
    text_string(out, "end strategy\n");
}

static void describe_axis(Text *out, const char *name, int count, const int *weights) {
    if (count < 2) return;
    text_print(out, " %s%d", name, count);
    for (int i = 0; weights && i < count; i++)
        text_print(out, "%s%d", i ? ":" : " by ", weights[i]);
}

/* Prints the classes of a stage's devices in their order, with counts: "2 fast + 1 slow". */
static void describe_devices(Text *out, const SearchStage *stage, const Fleet *devices) {
    for (int i = 0, next; i < stage->device_count; i = next) {
        const DeviceClass *class = devices->cluster->devices[stage->devices[i]].class;
        for (next = i + 1; next < stage->device_count &&
                           devices->cluster->devices[stage->devices[next]].class == class;)
            next++;
        text_print(out, "%s%d %s", i ? " + " : "", next - i, class ? class->name : "devices");
    }
}

static void describe_stage(Text *out, const SearchStage *stage, const Fleet *devices) {
    static const char *const words[RECOMPUTES] = {"", " selective", " full"};
    describe_devices(out, stage, devices);
    describe_axis(out, "dp", stage->data, stage->data_weights);
    describe_axis(out, "tp", stage->tensor, stage->tensor_weights);
    if (stage->end > stage->first)
        text_print(out, " %d layer%s", stage->end - stage->first,
                   stage->end - stage->first == 1 ? "" : "s");
    text_string(out, words[stage->recompute]);
}

void candidate_describe(Text *out, const Candidate *candidate, const Fleet *devices) {
    for (int p = 0; p < candidate->pipeline_count; p++) {
        const SearchPipeline *pipeline = &candidate->pipelines[p];
        text_string(out, p ? " | " : "");
        for (int s = 0; s < pipeline->stage_count; s++) {
            text_string(out, s ? " > " : "");
            describe_stage(out, &pipeline->stages[s], devices);
        }
        if (pipeline->rows)
            text_print(out, "; %lld x %lld rows", (long long)pipeline->microbatches,
                       (long long)pipeline->rows);
    }
    if (candidate->zero) text_print(out, "; zero %d", candidate->zero);
    for (int i = 0; has_axis(candidate, false) && i < candidate->splits->count; i++)
        text_print(out, "%s%s", i ? " " : "; tp cuts ", candidate->splits->dims[i]);
}

const char *candidate_kind(Arena *arena, const Candidate *candidate, const Fleet *devices) {
    static const SplitList none = {0};
    Text text = {.arena = arena};
    Candidate bare = candidate_copy(arena, candidate);
    bare.splits = &none;
    bare.zero = 0;
    for (int p = 0; p < bare.pipeline_count; p++)
        for (int s = 0; s < bare.pipelines[p].stage_count; s++) {
            SearchStage *stage = &bare.pipelines[p].stages[s];
            stage->data_weights = stage->tensor_weights = NULL;
            stage->first = stage->end = 0;
            stage->recompute = RECOMPUTE_NONE;
        }
    candidate_describe(&text, &bare, devices);
    return text_bytes(&text);
}
