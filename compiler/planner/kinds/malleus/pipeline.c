/* The layers and micro-batches of a pipeline: Malleus's lower-level problem. The problem is solved
 * exactly, but for the order of stages where memory is short.
 *
 * The bottleneck o is the time of the slowest stage. Under o a stage of rate y takes at most
 * floor(o / y) layers, and no more than its memory holds. All stages together must take L layers;
 * the sum of their times is least when the fast stages are filled first. So each o gives the least
 * sum. Only multiples of rates are tried for o, from the least under which L layers fit. */
#include "planner/kinds/malleus/problem.h"

#include <math.h>

/* By stage: `wanted`, its layers at the position with the most memory; `most`, its layers at its
 * own position; `place`, its own position. */
typedef struct Room {
    int wanted[MOST_STAGES], most[MOST_STAGES], place[MOST_STAGES];
} Room;

static void sort_stages(MalleusStage *stages, int count) {
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && stages[j].rate < stages[j - 1].rate; j--) {
            MalleusStage swap = stages[j];
            stages[j] = stages[j - 1];
            stages[j - 1] = swap;
        }
}

/* ---- positions of stages, and the layers that stages hold ---- */

static int room_at(const Malleus *malleus, const MalleusStage *stage, int count, int place,
                   int wanted) {
    int holds = malleus_holds(malleus, count, place, stage->size);
    return holds < wanted ? holds : wanted;
}

/* Returns the first free position at which a stage holds the most layers. */
static int roomiest(const Malleus *malleus, const MalleusStage *stage, int count,
                    const bool *taken) {
    int best = -1;
    for (int place = 0; place < count; place++)
        if (!taken[place] && (best < 0 || malleus_holds(malleus, count, place, stage->size) >
                                              malleus_holds(malleus, count, best, stage->size)))
            best = place;
    return best;
}

/* Places the stages that need most memory first, each at the free position with most layers. */
static void place_greedily(const Malleus *malleus, const MalleusStage *stages, int count,
                           Room *room) {
    const int *wanted = room->wanted;
    bool taken[MOST_STAGES] = {false}, placed[MOST_STAGES] = {false};
    for (int turn = 0; turn < count; turn++) {
        int next = -1;
        for (int i = 0; i < count; i++)
            if (!placed[i] && (next < 0 || (long)wanted[i] << stages[i].size >
                                               (long)wanted[next] << stages[next].size))
                next = i;
        placed[next] = true;
        room->place[next] = roomiest(malleus, &stages[next], count, taken);
        taken[room->place[next]] = true;
    }
}

/* Swaps pairs of stages as long as a swap lets the pipeline hold more layers. */
static void place_better(const Malleus *malleus, const MalleusStage *stages, int count,
                         Room *room) {
    int *place = room->place;
    const int *wanted = room->wanted;
    for (bool again = true; again;) {
        again = false;
        for (int a = 0; a < count; a++)
            for (int b = a + 1; b < count; b++) {
                int before = room_at(malleus, &stages[a], count, place[a], wanted[a]) +
                             room_at(malleus, &stages[b], count, place[b], wanted[b]),
                    after = room_at(malleus, &stages[a], count, place[b], wanted[a]) +
                            room_at(malleus, &stages[b], count, place[a], wanted[b]),
                    swap = place[a];
                if (after <= before) continue;
                place[a] = place[b];
                place[b] = swap;
                again = true;
            }
    }
}

/* Puts stage i at position i. Returns whether each stage's wanted layers fit at every position. */
static bool fits_anywhere(const Malleus *malleus, const MalleusStage *stages, int count,
                          Room *room) {
    for (int i = 0; i < count; i++) {
        room->place[i] = i;
        if (malleus_holds_anywhere(malleus, count, stages[i].size) < room->wanted[i]) return false;
    }
    return true;
}

/* Returns the layers that a stage takes under a bottleneck at the position with the most memory. */
static int wanted_layers(const Malleus *malleus, const MalleusStage *stage, int count,
                         double bottleneck) {
    int most = malleus_holds_somewhere(malleus, count, stage->size);
    double layers = bottleneck / stage->rate * (1 + 1e-12);
    return layers >= most ? most : (int)layers;
}

/* Sets the layers that each stage takes at its position. Returns their sum; 0: a stage has none. */
static int count_room(const Malleus *malleus, const MalleusStage *stages, int count, Room *room) {
    int total = 0;
    for (int i = 0; i < count; i++) {
        room->most[i] = room_at(malleus, &stages[i], count, room->place[i], room->wanted[i]);
        if (room->most[i] < 1) return 0;
        total += room->most[i];
    }
    return total;
}

/* Places the stages and sets the most layers of each under a bottleneck. Returns the layers'
 * sum; less than L when the stages do not hold all layers. */
static int make_room(const Malleus *malleus, const MalleusStage *stages, int count,
                     double bottleneck, Room *room) {
    int all = 0;
    for (int i = 0; i < count; i++)
        all += room->wanted[i] = wanted_layers(malleus, &stages[i], count, bottleneck);
    if (all < malleus->layers) return all;
    if (!fits_anywhere(malleus, stages, count, room)) {
        place_greedily(malleus, stages, count, room);
        if (count_room(malleus, stages, count, room) < all)
            place_better(malleus, stages, count, room);
    }
    return count_room(malleus, stages, count, room);
}

/* ---- dividing layers among stages ---- */

/* Gives each stage one layer, and all other layers to the fastest stages with memory for them.
 * Returns the sum of the stages' times. There must be memory for all layers. */
static double fill(const Malleus *malleus, MalleusStage *stages, int count, const Room *room) {
    int left = malleus->layers - count;
    double sum = 0;
    for (int i = 0; i < count; i++) {
        int more = room->most[i] - 1 < left ? room->most[i] - 1 : left;
        stages[i].layers = 1 + more;
        left -= more;
        sum += stages[i].rate * (1 + more);
    }
    return sum;
}

/* Returns the next bottleneck under which a stage takes one more layer; INFINITY: there is none. */
static double next_bottleneck(const Malleus *malleus, const MalleusStage *stages, int count,
                              double bottleneck) {
    double next = INFINITY;
    for (int i = 0; i < count; i++) {
        int layers = wanted_layers(malleus, &stages[i], count, bottleneck);
        if (layers < malleus_holds_somewhere(malleus, count, stages[i].size))
            next = fmin(next, stages[i].rate * (layers + 1));
    }
    return next;
}

/* Returns a lower bound of the bottleneck: each stage has a layer, all stages together have L. */
static double least_bottleneck(const Malleus *malleus, const MalleusStage *stages, int count) {
    double rates = 0;
    for (int i = 0; i < count; i++) rates += 1 / stages[i].rate;
    return fmax(stages[count - 1].rate, malleus->layers / rates * (1 - 1e-12));
}

/* Returns the least bottleneck from `bottleneck` on at which all layers fit, or INFINITY. Sets
 * *lacking to the number of layers that do not fit at the last bottleneck tried. */
static double find_room(const Malleus *malleus, const MalleusStage *stages, int count,
                        double bottleneck, int *lacking) {
    Room room;
    while (bottleneck < INFINITY &&
           (*lacking = malleus->layers - make_room(malleus, stages, count, bottleneck, &room)) > 0)
        bottleneck = next_bottleneck(malleus, stages, count, bottleneck);
    return bottleneck;
}

/* Appends a trade if its sum is less than the sum of the last one. */
static void add_trade(Pipeline *pipeline, double most, double sum) {
    if (!pipeline->trade_count ||
        sum < pipeline->trades[pipeline->trade_count - 1].sum * (1 - 1e-12))
        pipeline->trades[pipeline->trade_count++] = (Trade){most, sum};
}

/* Returns the time of the slowest stage with its present layers. */
static double slowest(const MalleusStage *stages, int count) {
    double most = 0;
    for (int i = 0; i < count; i++) most = fmax(most, stages[i].rate * stages[i].layers);
    return most;
}

/* Returns the least sum of stage times: one layer in each stage, the rest in the fastest. */
static double least_sum(const Malleus *malleus, const MalleusStage *stages, int count) {
    double sum = stages[0].rate * (malleus->layers - count);
    for (int i = 0; i < count; i++) sum += stages[i].rate;
    return sum;
}

void pipeline_weigh(const Malleus *malleus, MalleusStage *stages, int count, Pipeline *pipeline) {
    *pipeline = (Pipeline){.stage_count = count, .lacking = malleus->layers};
    if (count < 1 || count > malleus->most_stages || count > malleus->layers) return;
    sort_stages(stages, count);
    double first = find_room(malleus, stages, count, least_bottleneck(malleus, stages, count),
                             &pipeline->lacking),
           least = least_sum(malleus, stages, count);
    double passes = fmax(count, 0.25 * malleus->microbatches / malleus->pipelines) - 1;
    for (double most = first; pipeline->trade_count < MOST_TRADES && most < INFINITY;
         most = next_bottleneck(malleus, stages, count, most)) {
        Room room;
        if (pipeline->trade_count && passes * (most - first) >= pipeline->trades[0].sum - least)
            return;
        if (make_room(malleus, stages, count, most, &room) >= malleus->layers) {
            double sum = fill(malleus, stages, count, &room);
            add_trade(pipeline, slowest(stages, count), sum);
        }
    }
}

static void sort_places(MalleusStage *stages, int count, const Room *room) {
    MalleusStage sorted[MOST_STAGES];
    for (int i = 0; i < count; i++) sorted[room->place[i]] = stages[i];
    for (int i = 0; i < count; i++) stages[i] = sorted[i];
}

double pipeline_arrange(const Malleus *malleus, MalleusStage *stages, int count, int microbatches) {
    Pipeline pipeline;
    Room room;
    pipeline_weigh(malleus, stages, count, &pipeline);
    const Trade *best = &pipeline.trades[0];
    for (int i = 1; i < pipeline.trade_count; i++)
        if ((microbatches - 1) * pipeline.trades[i].most + pipeline.trades[i].sum <
            (microbatches - 1) * best->most + best->sum)
            best = &pipeline.trades[i];
    make_room(malleus, stages, count, best->most, &room);
    fill(malleus, stages, count, &room);
    sort_places(stages, count, &room);
    return (microbatches - 1) * best->most + best->sum;
}

/* ---- dividing micro-batches among pipelines ---- */

/* Returns the least time of `microbatches` micro-batches over the pipeline's trades. */
static double pipeline_time(const Pipeline *pipeline, int microbatches) {
    double least = INFINITY;
    for (int i = 0; i < pipeline->trade_count; i++)
        least =
            fmin(least, (microbatches - 1) * pipeline->trades[i].most + pipeline->trades[i].sum);
    return least;
}

/* Returns how many micro-batches, fractions included, a pipeline finishes within `time`; sets
 * *slope to how many more it finishes in a unit of time. */
static double done_within(const Pipeline *pipeline, double time, double *slope) {
    double most = -INFINITY;
    for (int i = 0; i < pipeline->trade_count; i++) {
        double done = 1 + (time - pipeline->trades[i].sum) / pipeline->trades[i].most;
        if (done > most) {
            most = done;
            *slope = 1 / pipeline->trades[i].most;
        }
    }
    return most;
}

/* Returns the time in which all pipelines finish the micro-batches when these may be divided. The
 * number finished is convex in time: Newton's method comes down to the root from above. */
static double share_smoothly(const Malleus *malleus, const Pipeline *pipelines, int count) {
    double time = 0, step = INFINITY;
    for (int turn = 0; turn < 50 && fabs(step) > 1e-12 * time; turn++) {
        double done = 0, slopes = 0, slope = 0;
        for (int p = 0; p < count; p++) {
            done += done_within(&pipelines[p], time, &slope);
            slopes += slope;
        }
        step = (done - malleus->microbatches) / slopes;
        time -= step;
    }
    return time;
}

/* Gives each pipeline the micro-batches that it finishes within `time`, at least one for each
 * stage. Returns how many are then left; negative: too many were given. */
static int give(const Malleus *malleus, const Pipeline *pipelines, int count, double time,
                int *microbatches) {
    int missing = malleus->microbatches;
    double slope;
    for (int p = 0; p < count; p++) {
        double done = fmin(floor(done_within(&pipelines[p], time * (1 + 1e-12), &slope)),
                           malleus->microbatches);
        microbatches[p] = (int)fmax(done, pipelines[p].stage_count);
        missing -= microbatches[p];
    }
    return missing;
}

/* Takes surplus micro-batches back from pipelines that have more micro-batches than stages. */
static void take_back(const Pipeline *pipelines, int count, int *microbatches, int excess) {
    for (int p = 0; p < count; p++) {
        int spare = microbatches[p] - pipelines[p].stage_count,
            back = spare < excess ? spare : excess;
        microbatches[p] -= back;
        excess -= back;
    }
}

double pipelines_share(const Malleus *malleus, const Pipeline *pipelines, int count,
                       int *microbatches, double *smooth) {
    int own[count], *given = microbatches ? microbatches : own, least = 0;
    *smooth = INFINITY;
    for (int p = 0; p < count; p++) {
        if (!pipelines[p].trade_count) return INFINITY;
        least += pipelines[p].stage_count;
    }
    if (least > malleus->microbatches) return INFINITY;
    double time = *smooth = share_smoothly(malleus, pipelines, count);
    for (int p = 0; p < count; p++)
        time = fmax(time, pipeline_time(&pipelines[p], pipelines[p].stage_count));
    int missing;
    while ((missing = give(malleus, pipelines, count, time, given)) > 0) {
        double next = INFINITY;
        for (int p = 0; p < count; p++)
            next = fmin(next, pipeline_time(&pipelines[p], given[p] + 1));
        time = next;
    }
    take_back(pipelines, count, given, -missing);
    double slowest_pipeline = 0;
    for (int p = 0; p < count; p++)
        slowest_pipeline = fmax(slowest_pipeline, pipeline_time(&pipelines[p], given[p]));
    return slowest_pipeline;
}
