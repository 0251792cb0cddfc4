/* Measures a rank's computing time, without waits, and times its longest kernel. */
#include "base/timeline.h"
#include "session/control/pace.h"

#include "device/device.h"

#include <string.h>
#include <time.h>

enum {
    TENSORS = 16, // limit of results, and of operands, of a recorded call
    CALLS = 16,   // limit of recorded calls of a step
    TIMES = 3     // repetitions of the call that an idle rank measures
};

/* The calls of one kernel with one total number of elements; the tensors' contents are not kept. */
typedef struct Remembered {
    ht_kernel *kernel;
    int64_t elements;
    int count;
    double least; // seconds of the shortest call; longer calls may have been delayed
    ht_call call;
    ht_view views[2 * TENSORS]; // results from 0, operands from TENSORS
} Remembered;

static double began, counted;
static bool wanted;
static Remembered calls[CALLS]; // the calls of this step
static int call_count;
static Remembered longest; // the call that took most time in the last step in which the rank was
                           // not idle; kernel NULL: none

double pace_now(void) { return timeline_now(); }

void pace_begin(void) { began = pace_now(); }

void pace_end(void) { counted += pace_now() - began; }

void pace_step(bool reported) {
    counted = 0;
    call_count = 0;
    wanted = reported;
}

/* Returns the number of elements of all results and operands. */
static int64_t count_elements(const ht_call *call) {
    int64_t count = 0;
    for (int i = 0; i < call->result_count; i++)
        count += ht_view_count(&call->result[i], 0, call->result[i].rank);
    for (int i = 0; i < call->operand_count; i++)
        count +=
            call->operand[i].data ? ht_view_count(&call->operand[i], 0, call->operand[i].rank) : 0;
    return count;
}

/* Records a call with copies of its views. */
static void take_call(Remembered *own, ht_kernel *kernel, const ht_call *call, int64_t elements) {
    *own = (Remembered){.kernel = kernel, .elements = elements, .call = *call};
    memcpy(own->views, call->result, sizeof *call->result * (size_t)call->result_count);
    memcpy(own->views + TENSORS, call->operand,
           sizeof *call->operand * (size_t)call->operand_count);
}

/* Records a call's time. Skips calls above a limit and optimizers (hyperparameters change). */
static void remember(ht_kernel *kernel, const ht_call *call, double seconds) {
    int64_t elements = count_elements(call);
    int c = 0;
    if (call->result_count > TENSORS || call->operand_count > TENSORS || call->hyper) return;
    while (c < call_count && (calls[c].kernel != kernel || calls[c].elements != elements)) c++;
    if (c == CALLS) return;
    if (c == call_count) take_call(&calls[call_count++], kernel, call, elements);
    Remembered *own = &calls[c];
    own->least = own->count++ && own->least < seconds ? own->least : seconds;
}

void pace_call(ht_kernel *kernel, const ht_call *call) {
    if (!wanted) {
        kernel(call);
        return;
    }
    double begin = pace_now();
    kernel(call);
    remember(kernel, call, pace_now() - begin);
}

/* Sets `longest` to the call with the largest product of its shortest time and number of calls. */
static void keep_longest(void) {
    const Remembered *most = call_count ? &calls[0] : NULL;
    for (int c = 1; c < call_count; c++)
        if (calls[c].least * calls[c].count > most->least * most->count) most = &calls[c];
    if (most) longest = *most;
}

/* Returns zeroed memory for views[index]: that of an earlier view with the same recorded address,
 * made[i], or new memory; device_free() that once. */
static void *storage_of(const ht_view *views, int index, void *const *made) {
    for (int i = 0; i < index; i++)
        if (views[i].data && views[i].data == views[index].data && made[i]) return made[i];
    int64_t bytes = ht_view_count(&views[index], 0, views[index].rank) * 8;
    void *data = device_alloc(bytes);
    device_zero(data, bytes);
    return data;
}

/* Returns whether a view has memory that no earlier view shares. */
static bool is_first(void *const *made, int index) {
    for (int i = 0; i < index; i++)
        if (made[i] == made[index]) return false;
    return made[index];
}

/* Runs the recorded kernel on zeros TIMES times. Returns the seconds of the shortest run. */
static double call_again(int64_t step) {
    ht_view views[2 * TENSORS];
    void *made[2 * TENSORS] = {0};
    memcpy(views, longest.views, sizeof views);
    for (int i = 0; i < 2 * TENSORS; i++) {
        bool used =
            i < TENSORS ? i < longest.call.result_count : i - TENSORS < longest.call.operand_count;
        made[i] = used && views[i].data ? storage_of(longest.views, i, made) : NULL;
        views[i].data = made[i];
    }
    ht_call call = longest.call;
    call.result = views;
    call.operand = views + TENSORS;
    call.step = step;
    double least = 0;
    for (int i = 0; i < TIMES; i++) {
        double begin = pace_now();
        longest.kernel(&call);
        double seconds = pace_now() - begin;
        least = i && least < seconds ? least : seconds;
    }
    for (int i = 0; i < 2 * TENSORS; i++)
        if (is_first(made, i)) device_free(made[i]);
    return least;
}

PaceReport pace_report(bool idle, int64_t step) {
    if (idle) return (PaceReport){-1, longest.kernel ? call_again(step) : device_trial()};
    keep_longest();
    return (PaceReport){counted, longest.kernel ? longest.least : 0};
}
