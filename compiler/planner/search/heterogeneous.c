/* Strategies for several device classes: a pipeline for each class, or weights along an axis. */
#include "planner/search/enumerate.h"
#include "planner/search/layers_on_stages.h"
#include "planner/search/devices.h"
#include "planner/search/evaluate.h"
#include "planner/search/layer_costs.h"
#include "planner/search/search_model.h"
#include "planner/search/probe.h"

#include <math.h>
#include <string.h>

typedef struct Mixer {
    Arena *arena;
    Profile *profile;
    const Correction *correction;
    ChoiceList *list;
    int groups;
    const DeviceGroup *members; // by class: the devices that share an axis by weights
    int member_count;           // number of members of all classes
    bool near;                  // all members are on one host
} Mixer;

static const SearchModel *model_of(const Mixer *mixer) { return mixer->profile->context->model; }

static void add_candidate(Mixer *mixer, const Candidate *candidate) {
    Choice choice = {.seconds = candidate->seconds, .need = candidate->need};
    choice.other = arena_copy(mixer->arena, candidate, sizeof *candidate);
    array_push(mixer->arena, mixer->list, choice);
}

/* Returns whether a candidate beats another one: it alone fits, or both fit and it takes fewer
 * seconds, or none fits and it needs less memory. */
static bool is_better(double seconds, double need, double other_seconds, double other_need) {
    if ((need <= 1) != (other_need <= 1)) return need <= 1;
    return need <= 1 ? seconds < other_seconds : need < other_need;
}

/* ---- a pipeline for each class ---- */

/* A choice, and the pipeline that it becomes. */
typedef struct GroupPipeline {
    Choice choice;
    PipelinePlan plan;
} GroupPipeline;

/* Finds the best pipeline of all devices of a class for `batch` rows; false: there is none. */
static bool best_of_group(Mixer *mixer, int group, int64_t batch, int zero, GroupPipeline *best) {
    ArrangementList shapes = shapes_of_group(mixer->arena, mixer->profile, group);
    RowList rows = rows_all(mixer->arena, mixer->profile, batch);
    PipelinePlan plan;
    bool found = false;
    for (int i = 0; i < shapes.count; i++)
        for (int r = 0; r < rows.count; r++) {
            Choice choice = {
                .shape = shapes.at[i], .zero = zero, .rows = rows.at[r], .batch = batch};
            if (!choice_plan(mixer->profile, mixer->correction, &choice, &plan) ||
                (found &&
                 !is_better(choice.seconds, choice.need, best->choice.seconds, best->choice.need)))
                continue;
            found = true;
            *best = (GroupPipeline){choice, plan};
        }
    return found;
}

/* Adds the candidate with a pipeline of batch[g] rows for each class g with rows; adds none when a
 * class has no pipeline for its rows. */
static void add_pipelines(Mixer *mixer, const int64_t *batch, int zero) {
    Candidate candidate = {.splits = mixer->profile->splits,
                           .zero = zero,
                           .pipelines = arena_array(mixer->arena, SearchPipeline, mixer->groups)};
    for (int g = 0; g < mixer->groups; g++) {
        GroupPipeline own;
        if (batch[g] < 1) continue;
        if (!best_of_group(mixer, g, batch[g], zero, &own)) return;
        candidate.pipelines[candidate.pipeline_count++] =
            plan_pipeline(mixer->arena, &own.plan, own.choice.rows);
        candidate.seconds = fmax(candidate.seconds, own.choice.seconds);
        candidate.need = fmax(candidate.need, own.choice.need);
    }
    Link link = devices_link(mixer->profile->context->devices,
                             (const int[]){0, mixer->profile->context->devices->count - 1}, 2);
    candidate.seconds += 2 * link_seconds(&link, (double)model_of(mixer)->parameter_bytes);
    if (candidate.pipeline_count > 1) add_candidate(mixer, &candidate);
}

/* Adds candidates with a pipeline for each class: rows by speed, shifted by up to two row units. */
static void add_class_pipelines(Mixer *mixer) {
    const SearchModel *model = model_of(mixer);
    int64_t units = model->batch / model->unit, batch[GROUPS_MOST] = {0};
    double rate[GROUPS_MOST], all = 0;
    GroupPipeline best;
    for (int zero = 0; zero <= 1 && mixer->profile->cuts && model->trains; zero++) {
        all = 0;
        for (int g = 0; g < mixer->groups; g++) {
            rate[g] =
                best_of_group(mixer, g, model->batch, zero, &best) ? 1 / best.choice.seconds : 0;
            all += rate[g];
        }
        for (int shift = -2; all > 0 && shift <= 2; shift++) {
            int64_t left = units;
            for (int g = 1; g < mixer->groups; g++) {
                int64_t own =
                    (int64_t)floor((double)units * rate[g] / all + 0.5) + (g == 1 ? shift : 0);
                own = own < 0 ? 0 : own > left ? left : own;
                batch[g] = own * model->unit;
                left -= own;
            }
            batch[0] = left * model->unit;
            add_pipelines(mixer, batch, zero);
        }
    }
}

/* ---- one stage of several classes, with weights along an axis ---- */

/* Sets `weight` to small integers nearly in the ratio of the rates. */
static void weights_of(const double *rate, int count, int *weight) {
    enum { MOST = 8 };
    double best = INFINITY, least = INFINITY;
    for (int g = 0; g < count; g++) least = fmin(least, rate[g]);
    for (int base = 1; base <= MOST; base++) {
        double error = 0;
        int own[GROUPS_MOST];
        for (int g = 0; g < count; g++) {
            double exact = base * rate[g] / least;
            own[g] = (int)fmax(1, floor(exact + 0.5));
            error = fmax(error, fabs(own[g] / exact - 1));
        }
        if (error < best * 0.8) {
            best = error;
            memcpy(weight, own, sizeof own);
        }
    }
}

/* One stage on all devices of mixer->members; each class has a weight along dp or tp. */
typedef struct Weighted {
    bool along_data;
    int data, tensor, zero;
    int64_t rows;
    int weight[GROUPS_MOST]; // by class: weight of one position of the axis
    double total;            // sum of the weights of all positions
} Weighted;

/* Returns the link between the first members of the first two classes that have members. */
static Link heterogeneous_link(const Mixer *mixer) {
    int ends[2] = {0, 0}, found = 0;
    for (int g = 0; g < mixer->groups && found < 2; g++)
        if (mixer->members[g].count) ends[found++] = mixer->members[g].devices[0];
    return devices_link(mixer->profile->context->devices, ends, 2);
}

/* Raises a candidate's seconds and need to those of a class under the weights, by closed forms. */
static void estimate_group(Mixer *mixer, const Weighted *weighted, int group, Recompute recompute,
                           Candidate *candidate) {
    double seconds, need;
    const SearchModel *model = model_of(mixer);
    const DeviceGroup *devices = &mixer->members[group];
    double share = weighted->weight[group] / weighted->total,
           rows = (double)(weighted->rows ? weighted->rows : model->batch);
    double tensor = weighted->along_data ? weighted->tensor : 1 / share,
           own = weighted->along_data ? rows * share : rows / weighted->data;
    PipelinePlan plan = {.stage_count = 1,
                         .zero = weighted->zero,
                         .microbatches = weighted->rows ? model->batch / weighted->rows : 1};
    plan.stages[0] =
        (StagePlan){.stage = {.data = weighted->data,
                              .tensor = 1,
                              .end = model->layer_count,
                              .recompute = recompute},
                    .costs = profile_costs(mixer->profile, group, tensor, own),
                    .memory = devices->memory ? (double)devices->memory : (double)INFINITY,
                    .link = heterogeneous_link(mixer)};
    pipeline_estimate(mixer->profile, mixer->correction, &plan, &seconds, &need);
    candidate->seconds = fmax(candidate->seconds, seconds);
    candidate->need = fmax(candidate->need, need);
}

/* Sets the stage's devices, those of one dp position adjacent, and the axis's weights. */
static void place_weighted(Mixer *mixer, const Weighted *weighted, SearchStage *stage) {
    int *list = arena_array(mixer->arena, int, mixer->member_count),
        count = weighted->along_data ? weighted->data : weighted->tensor;
    int *weights = arena_array(mixer->arena, int, count), filled = 0, position = 0;
    for (int g = 0; g < mixer->groups && weighted->along_data; g++)
        for (int i = 0; i < mixer->members[g].count; i++) {
            weights[filled / weighted->tensor] = weighted->weight[g];
            list[filled++] = mixer->members[g].devices[i];
        }
    for (int d = 0; d < weighted->data && !weighted->along_data; d++, position = 0)
        for (int g = 0; g < mixer->groups; g++)
            for (int i = 0, own = mixer->members[g].count / weighted->data; i < own; i++) {
                weights[position++] = weighted->weight[g];
                list[filled++] = mixer->members[g].devices[d * own + i];
            }
    *stage = (SearchStage){.device_count = filled,
                           .devices = list,
                           .data = weighted->data,
                           .tensor = weighted->tensor};
    *(weighted->along_data ? &stage->data_weights : &stage->tensor_weights) = weights;
}

static void add_weighted(Mixer *mixer, const Weighted *weighted) {
    const SearchModel *model = model_of(mixer);
    Candidate best = {.need = INFINITY};
    for (int mode = 0; mode < RECOMPUTES; mode++) {
        Candidate candidate = {.splits = mixer->profile->splits,
                               .zero = weighted->zero,
                               .pipeline_count = 1,
                               .pipelines = arena_new(mixer->arena, SearchPipeline)};
        SearchStage *stage = arena_new(mixer->arena, SearchStage);
        if (!profile_allows(mixer->profile, (Recompute)mode)) continue;
        for (int g = 0; g < mixer->groups; g++)
            if (mixer->members[g].count)
                estimate_group(mixer, weighted, g, (Recompute)mode, &candidate);
        place_weighted(mixer, weighted, stage);
        stage->end = model->layer_count;
        stage->recompute = (Recompute)mode;
        candidate.pipelines[0] = (SearchPipeline){
            weighted->rows ? model->batch / weighted->rows : 1, weighted->rows, 1, stage};
        if (!best.pipeline_count ||
            is_better(candidate.seconds, candidate.need, best.seconds, best.need))
            best = candidate;
    }
    add_candidate(mixer, &best);
}

/* Sets the classes' weights, by their rates, and `total`. Returns false if all are equal. */
static bool weigh(Mixer *mixer, Weighted *weighted) {
    double rate[GROUPS_MOST];
    bool differ = false;
    int count = weighted->along_data ? weighted->data : weighted->tensor, first = -1;
    for (int g = 0; g < mixer->groups; g++) {
        double rows = device_rows(model_of(mixer), weighted->rows, weighted->data), seconds = 0;
        const Costs *costs =
            profile_costs(mixer->profile, g, weighted->along_data ? weighted->tensor : count, rows);
        for (int slot = 0; slot < model_of(mixer)->layer_count + 2; slot++)
            seconds += costs->slots[RECOMPUTE_NONE][slot].seconds;
        rate[g] = 1 / seconds;
    }
    weights_of(rate, mixer->groups, weighted->weight);
    weighted->total = 0;
    for (int g = 0; g < mixer->groups; g++) {
        int positions = weighted->along_data ? mixer->members[g].count / weighted->tensor
                                             : mixer->members[g].count / weighted->data;
        weighted->total += (double)positions * weighted->weight[g];
        if (mixer->members[g].count && first < 0) first = g;
        differ |= mixer->members[g].count && weighted->weight[g] != weighted->weight[first];
    }
    return differ && weighted->total > 0;
}

/* Returns whether `by`, the degree of the axis without weights, divides each class's members. */
static bool divides(const Mixer *mixer, int by) {
    for (int g = 0; g < mixer->groups; g++)
        if (mixer->members[g].count % by) return false;
    return true;
}

/* Returns the highest degree of tensor parallelism of any class, or of all devices. */
static int most_tensor(const Mixer *mixer) {
    int most = 1;
    for (int g = 0; g <= mixer->groups; g++) {
        int own = profile_most_tensor(mixer->profile, g);
        most = own > most ? own : most;
    }
    return most;
}

/* Adds the strategies of one stage of all members, with weights along dp or along tp. */
static void add_weights(Mixer *mixer) {
    const SearchModel *model = model_of(mixer);
    const int count = mixer->member_count, most = most_tensor(mixer),
              widest = mixer->near ? count : 2 * most;
    RowList rows = rows_all(mixer->arena, mixer->profile, model->batch);
    for (int by = 1; by <= count; by++)
        for (int r = 0; divides(mixer, by) && r < rows.count; r++)
            for (int zero = 0; zero <= 3; zero++) {
                Weighted data = {.along_data = true,
                                 .data = count / by,
                                 .tensor = by,
                                 .zero = zero,
                                 .rows = rows.at[r]};
                Weighted tensor = {
                    .data = by, .tensor = count / by, .zero = zero, .rows = rows.at[r]};
                int64_t units = (rows.at[r] ? rows.at[r] : model->batch) / model->unit;
                if (by <= most && data.data > 1 && model->batch_dim && units >= data.data &&
                    weigh(mixer, &data))
                    add_weighted(mixer, &data);
                if (tensor.tensor <= widest && most > 1 &&
                    (by == 1 || (model->batch_dim && units >= by)) && (zero == 0 || by > 1) &&
                    weigh(mixer, &tensor))
                    add_weighted(mixer, &tensor);
            }
}

/* Returns the group of a class with only those of its devices that are on a host. */
static DeviceGroup part_on(const Mixer *mixer, int group, int host) {
    const Fleet *devices = mixer->profile->context->devices;
    DeviceGroup part = devices->groups[group];
    int *list = arena_array(mixer->arena, int, part.count), count = 0;
    for (int i = 0; i < part.count; i++)
        if (cluster_host(devices->cluster, part.devices[i]) == host)
            list[count++] = part.devices[i];
    part.devices = list;
    part.count = count;
    return part;
}

/* Adds the strategies of one stage on each host with several classes; none if there is one host. */
static void add_weights_of_hosts(Mixer *mixer) {
    const Fleet *devices = mixer->profile->context->devices;
    DeviceGroup *parts = arena_array(mixer->arena, DeviceGroup, mixer->groups);
    for (int host = 0; host < devices->cluster->host_count && devices->cluster->host_count > 1;
         host++) {
        int classes = 0;
        mixer->member_count = 0;
        for (int g = 0; g < mixer->groups; g++) {
            parts[g] = part_on(mixer, g, host);
            classes += parts[g].count > 0;
            mixer->member_count += parts[g].count;
        }
        mixer->members = parts;
        mixer->near = true;
        if (classes > 1) add_weights(mixer);
    }
}

/* Makes the first counts[g] devices of each class g the members. Returns whether the members are of
 * several classes and not all devices. */
static bool take_some(Mixer *mixer, DeviceGroup *parts, const int *counts) {
    const Fleet *devices = mixer->profile->context->devices;
    int classes = 0, first = -1;
    mixer->members = parts;
    mixer->member_count = 0;
    mixer->near = true;
    for (int g = 0; g < mixer->groups; g++) {
        parts[g] = devices->groups[g];
        parts[g].count = counts[g];
        classes += counts[g] > 0;
        mixer->member_count += counts[g];
        for (int i = 0; i < counts[g]; i++) {
            int host = cluster_host(devices->cluster, parts[g].devices[i]);
            first = first < 0 ? host : first;
            mixer->near &= host == first;
        }
    }
    return classes > 1 && mixer->member_count < devices->count;
}

/* Advances to the next combination of numbers of devices by class. Returns false after the last. */
static bool next_counts(const Mixer *mixer, int *counts) {
    for (int g = 0; g < mixer->groups; g++) {
        if (counts[g]++ < mixer->profile->context->devices->groups[g].count) return true;
        counts[g] = 0;
    }
    return false;
}

/* Adds the strategies of one stage of some devices of each class, in small clusters only. */
static void add_weights_of_some(Mixer *mixer) {
    enum { FEW = 8 };
    DeviceGroup *parts = arena_array(mixer->arena, DeviceGroup, mixer->groups);
    int counts[GROUPS_MOST] = {0};
    while (mixer->profile->context->devices->count <= FEW && next_counts(mixer, counts))
        if (take_some(mixer, parts, counts)) add_weights(mixer);
}

void heterogeneous_add(Arena *arena, Profile *profile, const Correction *correction,
                       ChoiceList *list) {
    const Fleet *devices = profile->context->devices;
    Mixer mixer = {arena,
                   profile,
                   correction,
                   list,
                   devices->group_count,
                   devices->groups,
                   devices->count,
                   devices->cluster->host_count == 1};
    if (mixer.groups < 2 || mixer.groups > GROUPS_MOST) return;
    add_class_pipelines(&mixer);
    add_weights(&mixer);
    add_weights_of_hosts(&mixer);
    add_weights_of_some(&mixer);
}
