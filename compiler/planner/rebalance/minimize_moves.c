/* Minimizes the bytes that a switch of strategies moves: swaps devices of equal rates, and stages
 * of a pipeline, until no swap moves fewer bytes or the tries are used up. */
#include "planner/rebalance/candidates.h"

#include <math.h>

typedef struct Settling {
    Arena *arena;
    const LayoutModel *now;
    LayoutModel *laid;
    const double *rates;
    double time, moves; // of the best layout so far: time of a step; bytes that move
    long left;          // swaps still to be tried: fewer with many devices, since each takes longer
} Settling;

/* Returns whether fewer bytes move after a swap and the step is not longer; then records both. */
static bool better(Settling *settling) {
    settling->left--;
    double moves = layout_model_moves(settling->now, settling->laid),
           time = layout_model_time(settling->laid, settling->rates);
    if (time > settling->time * (1 + 1e-9) || moves >= settling->moves * (1 - 1e-9) - 1e-9)
        return false;
    settling->moves = moves;
    settling->time = time;
    return true;
}

static void swap_devices(int *a, int *b) {
    int device = *a;
    *a = *b;
    *b = device;
}

/* Fills `places` with pointers to stages' devices, then to idle ones (`idle`). Returns how many. */
static int list_places(const LayoutModel *laid, int **places, int *idle) {
    int count = 0, idle_count = 0;
    bool used[laid->work->device_count];
    for (int d = 0; d < laid->work->device_count; d++) used[d] = false;
    for (int p = 0; p < laid->pipeline_count; p++)
        for (int s = 0; s < laid->pipelines[p].stage_count; s++)
            for (int i = 0; i < laid->pipelines[p].stages[s].count; i++) {
                places[count++] = &laid->pipelines[p].stages[s].devices[i];
                used[*places[count - 1]] = true;
            }
    for (int d = 0; d < laid->work->device_count; d++)
        if (!used[d]) {
            idle[idle_count] = d;
            places[count++] = &idle[idle_count++];
        }
    return count;
}

/* Returns the host of a device; a group must stay on its host. */
static int host_of(const Settling *settling, int device) {
    return device / (settling->laid->work->device_count / settling->laid->work->hosts);
}

static bool swap_places(Settling *settling, int **places, int count) {
    bool changed = false;
    for (int a = 0; a < count; a++)
        for (int b = a + 1; b < count; b++) {
            if (settling->left <= 0 ||
                host_of(settling, *places[a]) != host_of(settling, *places[b]) ||
                fabs(settling->rates[*places[a]] - settling->rates[*places[b]]) > 1e-9)
                continue;
            swap_devices(places[a], places[b]);
            if (better(settling)) changed = true;
            else swap_devices(places[a], places[b]);
        }
    return changed;
}

/* Swaps two adjacent stages and redistributes the layers. Returns whether the swap is kept. */
static bool swap_stages(Settling *settling, ModelPipeline *pipeline, int s) {
    LayoutModel *before = layout_model_copy(settling->arena, settling->laid);
    ModelStage stage = pipeline->stages[s];
    pipeline->stages[s] = pipeline->stages[s + 1];
    pipeline->stages[s + 1] = stage;
    pipeline_relayer(settling->arena, settling->laid, pipeline, settling->rates);
    if (better(settling)) return true;
    *settling->laid = *before;
    return false;
}

static bool swap_all_stages(Settling *settling) {
    bool changed = false;
    for (int p = 0; p < settling->laid->pipeline_count; p++)
        for (int s = 0; s + 1 < settling->laid->pipelines[p].stage_count; s++)
            changed |= swap_stages(settling, &settling->laid->pipelines[p], s);
    return changed;
}

void minimize_moves(Arena *arena, const LayoutModel *now, LayoutModel *laid, const double *rates) {
    enum { TURNS = 8 };
    double devices = laid->work->device_count;
    Settling settling = {arena,
                         now,
                         laid,
                         rates,
                         layout_model_time(laid, rates),
                         layout_model_moves(now, laid),
                         (long)(2e8 / (devices * devices))};
    int *idle = arena_array(arena, int, laid->work->device_count),
        **places = arena_array(arena, int *, laid->work->device_count);
    for (int turn = 0; turn < TURNS; turn++) {
        bool changed = swap_places(&settling, places, list_places(laid, places, idle));
        changed |= swap_all_stages(&settling);
        if (!changed) return;
    }
}
