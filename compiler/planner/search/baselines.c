/* Makes the plain strategies (one stage or equal stages, dp x tp) that every search tries. */
#include "planner/search/neighbours.h"

#include "planner/search/evaluated.h"

/* A block strategy: the first `used` devices of a group, in equal stages with equal meshes. */
typedef struct Blocks {
    const DeviceGroup *group;
    int used, stages, tensor;
} Blocks;

/* Returns the most rows that cut the batch into at least `microbatches` equal micro-batches; the
 * batch's rows if none do; 0 (the batch as a whole) for a program without training or rows. */
static int64_t rows_of(const Search *search, int64_t microbatches) {
    const SearchModel *model = &search->model;
    int64_t best = model->batch;
    if (!model->trains || !model->batch) return 0;
    for (int64_t rows = model->unit; search->profiles[0].cuts && rows <= model->batch;
         rows += model->unit)
        if (model->batch % rows == 0 && model->batch / rows >= microbatches) best = rows;
    return best;
}

/* Returns the candidate of a block strategy: one pipeline, with the layers in equal parts. */
static Candidate blocks_candidate(Search *search, const SplitList *splits, const Blocks *blocks,
                                  int64_t rows, int zero) {
    int size = blocks->used / blocks->stages, layers = search->model.layer_count;
    SearchPipeline *pipeline = arena_new(search->arena, SearchPipeline);
    SearchStage *stages = arena_array(search->arena, SearchStage, blocks->stages);
    for (int s = 0; s < blocks->stages; s++)
        stages[s] = (SearchStage){.device_count = size,
                                  .devices = blocks->group->devices + s * size,
                                  .data = size / blocks->tensor,
                                  .tensor = blocks->tensor,
                                  .first = layers * s / blocks->stages,
                                  .end = layers * (s + 1) / blocks->stages};
    *pipeline =
        (SearchPipeline){rows ? search->model.batch / rows : 1, rows, blocks->stages, stages};
    return (Candidate){.splits = splits, .zero = zero, .pipeline_count = 1, .pipelines = pipeline};
}

/* Adds block strategies with ZeRO up to `zero`; adds none if layers or rows are too few. */
static void add_blocks(Search *search, CandidateList *list, const SplitList *splits, Blocks blocks,
                       int zero) {
    const SearchModel *model = &search->model;
    int data = blocks.used / blocks.stages / blocks.tensor;
    int64_t last = 0;
    if (blocks.stages > 1 && (blocks.stages > model->layer_count || blocks.stages > STAGE_MOST))
        return;
    for (int round = 0; round < (blocks.stages > 1 ? 3 : 1); round++) {
        int64_t rows =
            rows_of(search, round < 2 ? blocks.stages << round : model->batch / model->unit);
        if (round && rows == last) continue;
        last = rows;
        if (data > 1 && (!model->batch_dim || (rows ? rows : model->batch) / model->unit < data))
            continue;
        for (int level = 0; level <= (model->trains && data > 1 ? zero : 0); level++) {
            Candidate candidate = blocks_candidate(search, splits, &blocks, rows, level);
            add_changed(search, list, &candidate);
        }
    }
}

/* Adds the strategies of one stage with the devices and the degree of tensor parallelism of
 * `blocks`; with `deep`, also pipelines and ZeRO levels. */
static void add_meshes(Search *search, CandidateList *list, const SplitList *splits, Blocks blocks,
                       bool deep) {
    int hosts = blocks.group->count / blocks.group->host_most, widest = blocks.used / blocks.tensor;
    const int stages[] = {2, hosts, widest};
    add_blocks(search, list, splits, blocks, deep ? blocks.tensor > 1 ? 1 : 3 : 0);
    for (int i = 0; i < 3 && deep; i++) {
        blocks.stages = stages[i];
        bool again = (i > 0 && stages[i] == stages[0]) || (i > 1 && stages[i] == stages[1]);
        if (stages[i] > 1 && !again && widest % stages[i] == 0)
            add_blocks(search, list, splits, blocks, 0);
    }
}

static void add_group(Search *search, CandidateList *list, const DeviceGroup *group, int variant) {
    const SplitList *splits = &search->splits[variant];
    const int used[] = {1, group->host_most, group->count};
    for (int i = 0; i < 3; i++) {
        Blocks blocks = {group, used[i], 1, 1};
        if (i && used[i] == used[i - 1]) continue;
        if (variant == 0) add_meshes(search, list, splits, blocks, used[i] == group->count);
        blocks.tensor = group->host_most;
        if (blocks.tensor > 1 && splits->count && used[i] % blocks.tensor == 0)
            add_meshes(search, list, splits, blocks, used[i] == group->count);
    }
}

void search_baselines(Search *search) {
    int first = search->tried.count, groups = search->devices.group_count;
    CandidateList list = {0};
    for (int v = 0; v < search->variant_count; v++)
        for (int g = 0; g < (groups > 1 ? groups + 1 : groups); g++)
            add_group(search, &list, &search->devices.groups[g], v);
    try_candidates(search, &list, list.count);
    correct_all(search, first);
}
