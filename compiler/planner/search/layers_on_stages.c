/* Divides layers among stages, chooses recomputation, predicts seconds and bytes (closed form). */
#include "planner/search/layers_on_stages.h"
#include "planner/search/layer_costs.h"
#include "planner/search/probe.h"
#include "planner/search/devices.h"
#include "planner/search/evaluate.h"
#include "planner/search/search_model.h"

#include <math.h>

enum { HALVINGS = 18 }; // steps of a bisection, far finer than the closed forms' accuracy

/* ---- seconds and bytes of a stage ---- */

/* Sets [*from, *to) to the slots of a stage with layers [first, end). The first and last stage also
 * run the operators before and after all layers. */
static void slots_of(const Profile *profile, int first, int end, int *from, int *to) {
    int layers = profile->context->model->layer_count;
    *from = first ? first + 1 : 0;
    *to = end == layers ? layers + 2 : end + 1;
}

/* Returns the seconds of a micro-batch on a stage with the layers and recomputation of `stage`. */
static double stage_seconds(const Profile *profile, const StagePlan *plan,
                            const SearchStage *stage) {
    const SlotCost *slots = plan->costs->slots[stage->recompute];
    int from, to;
    double seconds = 0;
    slots_of(profile, stage->first, stage->end, &from, &to);
    for (int slot = from; slot < to; slot++) seconds += slots[slot].seconds;
    return seconds;
}

/* The bytes of several slots, by member of SlotCost: sums; of `work` and `widest` the largest. */
typedef struct Bytes {
    double parameters, states, gradients, cut_parameters, cut_states, cut_gradients, kept, work,
        widest;
} Bytes;

static void add_slot(Bytes *bytes, const SlotCost *slot) {
    bytes->parameters += slot->parameters;
    bytes->states += slot->states;
    bytes->gradients += slot->gradients;
    bytes->cut_parameters += slot->cut_parameters;
    bytes->cut_states += slot->cut_states;
    bytes->cut_gradients += slot->cut_gradients;
    bytes->kept += slot->kept;
    bytes->work = fmax(bytes->work, slot->work);
    bytes->widest = fmax(bytes->widest, slot->widest);
}

static double bytes_needed(const PipelinePlan *plan, int number, const Bytes *bytes) {
    const StagePlan *stage = &plan->stages[number];
    double d = stage->stage.data,
           collectives = fmin((double)plan->microbatches, plan->stage_count - number);
    double needed =
        (plan->zero >= 1 ? bytes->cut_states / d : bytes->states) +
        (plan->zero >= 2 ? bytes->cut_gradients / d : bytes->gradients) +
        (plan->zero >= 3 ? bytes->cut_parameters / d + bytes->widest : bytes->parameters);
    return needed + stage->costs->inputs / d + collectives * bytes->kept + bytes->work;
}

/* Returns the bytes that a device of stage `number` needs. */
static double stage_bytes(const Profile *profile, const PipelinePlan *plan, int number) {
    const SearchStage *stage = &plan->stages[number].stage;
    Bytes bytes = {0};
    int from, to;
    slots_of(profile, stage->first, stage->end, &from, &to);
    for (int slot = from; slot < to; slot++)
        add_slot(&bytes, &plan->stages[number].costs->slots[stage->recompute][slot]);
    return bytes_needed(plan, number, &bytes);
}

/* ---- filling stages with layers ---- */

typedef struct Filling {
    const Profile *profile;
    const Correction *correction;
    PipelinePlan *plan;
} Filling;

/* The limits of a stage: `seconds` for a micro-batch; `room` times the memory of its devices. */
typedef struct StageLimits {
    double seconds, room;
} StageLimits;

/* Returns how many of the layers [all->first, all->end) stage `number` can take under limits. */
static int take_layers(const Filling *filling, int number, const SearchStage *all,
                       const StageLimits *limits) {
    const StagePlan *stage = &filling->plan->stages[number];
    const SlotCost *slots = stage->costs->slots[all->recompute];
    int first = all->first, layers = filling->profile->context->model->layer_count, taken = 0;
    Bytes bytes = {0};
    double time = 0, memory = stage->memory * limits->room / filling->correction->memory;
    if (!first) {
        add_slot(&bytes, &slots[0]);
        time += slots[0].seconds;
    }
    for (int l = first; l < all->end; l++) {
        add_slot(&bytes, &slots[l + 1]);
        time += slots[l + 1].seconds;
        if (l == layers - 1) {
            add_slot(&bytes, &slots[layers + 1]);
            time += slots[layers + 1].seconds;
        }
        if (time > limits->seconds || bytes_needed(filling->plan, number, &bytes) > memory) break;
        taken++;
    }
    return taken;
}

/* Gives stage after stage all layers that fit in some way to recompute; false: layers are left. */
static bool fill(const Filling *filling, double seconds, double room) {
    PipelinePlan *plan = filling->plan;
    const StageLimits limits = {seconds, room};
    int layers = filling->profile->context->model->layer_count, first = 0;
    for (int s = 0; s < plan->stage_count; s++) {
        SearchStage *stage = &plan->stages[s].stage;
        int most = layers - first - (plan->stage_count - 1 - s), best = 0;
        for (int mode = 0; mode < RECOMPUTES; mode++) {
            const SearchStage left = {
                .first = first, .end = first + most, .recompute = (Recompute)mode};
            int taken = profile_allows(filling->profile, (Recompute)mode) && best < most
                            ? take_layers(filling, s, &left, &limits)
                            : 0;
            if (taken <= best) continue;
            best = taken;
            stage->recompute = (Recompute)mode;
        }
        if (!best) return false;
        stage->first = first;
        stage->end = first += best;
    }
    return first == layers;
}

/* Fills the only stage of a model without layers. Returns whether it fits. */
static bool fill_whole(const Filling *filling, double room) {
    PipelinePlan *plan = filling->plan;
    SearchStage *stage = &plan->stages[0].stage;
    stage->first = stage->end = 0;
    for (int mode = 0; mode < RECOMPUTES; mode++)
        if (profile_allows(filling->profile, (Recompute)mode)) {
            stage->recompute = (Recompute)mode;
            if (stage_bytes(filling->profile, plan, 0) * filling->correction->memory <=
                plan->stages[0].memory * room)
                return true;
        }
    return false;
}

static bool fill_any(const Filling *filling, double seconds, double room) {
    return filling->profile->context->model->layer_count ? fill(filling, seconds, room)
                                                         : fill_whole(filling, room);
}

/* Fills the stages under the shortest limit of a stage's time, which is found by bisection. */
static void shorten(const Filling *filling, double room) {
    double high = 0, low = 0;
    const SearchStage all = {.end = filling->profile->context->model->layer_count,
                             .recompute = RECOMPUTE_FULL};
    for (int s = 0; s < filling->plan->stage_count; s++)
        high = fmax(high, stage_seconds(filling->profile, &filling->plan->stages[s], &all) * 1.001);
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        *(fill_any(filling, middle, room) ? &high : &low) = middle;
    }
    fill_any(filling, high, room);
}

/* Returns the least factor of the memory with which all layers fit. */
static double least_room(const Filling *filling) {
    double low = 0, high = 1;
    while (!fill_any(filling, INFINITY, high) && high < 1e9) high *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        *(fill_any(filling, INFINITY, middle) ? &high : &low) = middle;
    }
    return high;
}

/* ---- seconds of a step ---- */

/* The trained parameters of a stage, summed over its slots. */
typedef struct Trained {
    // number of tensors; bytes of gradients and of parameters; seconds of the update
    double count, gradients, parameters, update;
    int slots;
} Trained;

static Trained trained_of(const Profile *profile, const StagePlan *stage) {
    Trained trained = {0};
    int from, to;
    slots_of(profile, stage->stage.first, stage->stage.end, &from, &to);
    for (int slot = from; slot < to; slot++) {
        const SlotCost *cost = &stage->costs->slots[stage->stage.recompute][slot];
        trained.count += cost->trained;
        trained.gradients += cost->gradients;
        trained.parameters += cost->parameters;
        trained.update += cost->once;
        trained.slots++;
    }
    return trained;
}

/* Returns the seconds that a stage needs once a step: gradient reductions, parameter gathers, the
 * update. All reductions but those of the last layer overlap the backward part of the last
 * micro-batch (2/3 of `seconds`). Without ZeRO one message reduces all parameters. */
static double once_seconds(const Profile *profile, const PipelinePlan *plan, int number,
                           double seconds) {
    const double backward = 2.0 / 3;
    const StagePlan *stage = &plan->stages[number];
    const Trained trained = trained_of(profile, stage);
    const Link *link = &stage->link;
    int d = stage->stage.data;
    double m = (double)plan->microbatches, messages = plan->zero ? trained.count : 1,
           times = plan->zero >= 2 ? m : 1, gathers = plan->zero >= 3 ? 2 * m : 1;
    if (d < 2 || trained.count == 0) return trained.update;
    double sums =
        times * messages * verb_seconds(HT_REDUCE_SCATTER, d, trained.gradients / messages, link);
    double gathered =
        gathers * messages * verb_seconds(HT_ALL_GATHER, d, trained.parameters / messages, link);
    sums += plan->zero ? 0 : gathered;
    double exposed = fmax(sums - backward * seconds * times, sums / (times * trained.slots));
    return trained.update / (plan->zero ? d : 1) + exposed + (plan->zero ? gathered : 0);
}

void pipeline_estimate(const Profile *profile, const Correction *correction,
                       const PipelinePlan *plan, double *seconds, double *need) {
    double sum = 0, most = 0, once = 0;
    *need = 0;
    for (int s = 0; s < plan->stage_count; s++) {
        const StagePlan *stage = &plan->stages[s];
        const SearchStage *own = &stage->stage;
        double time = stage_seconds(profile, stage, own);
        double bytes = stage_bytes(profile, plan, s) * correction->memory;
        double crossing =
            s + 1 < plan->stage_count ? stage->costs->slots[RECOMPUTE_NONE][own->end].crossing : 0;
        sum += time + (crossing > 0 ? 2 * link_seconds(&stage->ahead, crossing) : 0);
        most = fmax(most, time);
        once = fmax(once, once_seconds(profile, plan, s, time));
        *need = fmax(*need, bytes / stage->memory);
    }
    *seconds = (sum + (double)(plan->microbatches - 1) * most + once) * correction->seconds;
}

bool pipeline_fill(const Profile *profile, const Correction *correction, PipelinePlan *plan,
                   double *seconds, double *need) {
    Filling filling = {profile, correction, plan};
    int layers = profile->context->model->layer_count;
    if (plan->stage_count > (layers ? layers : 1)) return false;
    if (fill_any(&filling, INFINITY, 1)) shorten(&filling, 1);
    else fill_any(&filling, INFINITY, least_room(&filling));
    pipeline_estimate(profile, correction, plan, seconds, need);
    return true;
}
