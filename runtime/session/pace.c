#include "session/pace.h"

#include "base/memory.h"
#include "device/device.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TENSORS = 16 }; // results, and operands, of a call that is remembered, at most

/* A call of a kernel, without what its tensors hold. */
typedef struct Remembered {
    ht_kernel *kernel; // NULL: none
    double seconds;
    ht_call call;
    ht_view views[2 * TENSORS]; // results, operands
} Remembered;

static double began, counted;
static bool wanted;
static Remembered longest;

double pace_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void pace_begin(void) { began = pace_now(); }

void pace_end(void) { counted += pace_now() - began; }

void pace_step(bool reported)
{
    counted = 0;
    wanted = reported;
    longest.seconds = 0;
}

/* ---- kernels ---- */

/* Optimizers are left out: their numbers are those of a step. */
static void remember(ht_kernel *kernel, const ht_call *call, double seconds)
{
    if (call->result_count > TENSORS || call->operand_count > TENSORS || call->hyper)
        return;
    longest.kernel = kernel;
    longest.seconds = seconds;
    longest.call = *call;
    memcpy(longest.views, call->result, sizeof *call->result * (size_t)call->result_count);
    memcpy(longest.views + TENSORS, call->operand, sizeof *call->operand * (size_t)call->operand_count);
}

void pace_call(ht_kernel *kernel, const ht_call *call)
{
    double begin = wanted ? pace_now() : 0;
    kernel(call);
    double seconds = wanted ? pace_now() - begin : 0;
    if (seconds > longest.seconds)
        remember(kernel, call, seconds);
}

/* A tensor of zeros; one that had the storage of an earlier one has it again. */
static void *storage_of(const ht_view *views, int index, void *const *made)
{
    for (int i = 0; i < index; i++)
        if (views[i].data && views[i].data == views[index].data && made[i])
            return made[i];
    int64_t bytes = ht_view_count(&views[index], 0, views[index].rank) * 8;
    void *data = device_alloc(bytes);
    device_zero(data, bytes);
    return data;
}

static bool is_first(void *const *made, int index)
{
    for (int i = 0; i < index; i++)
        if (made[i] == made[index])
            return false;
    return made[index];
}

/* Calls the remembered kernel on zeros; its seconds. */
static double call_again(int64_t step)
{
    ht_view views[2 * TENSORS];
    void *made[2 * TENSORS] = {0};
    memcpy(views, longest.views, sizeof views);
    for (int i = 0; i < 2 * TENSORS; i++) {
        bool used = i < TENSORS ? i < longest.call.result_count : i - TENSORS < longest.call.operand_count;
        made[i] = used && views[i].data ? storage_of(longest.views, i, made) : NULL;
        views[i].data = made[i];
    }
    ht_call call = longest.call;
    call.result = views;
    call.operand = views + TENSORS;
    call.step = step;
    double begin = pace_now();
    longest.kernel(&call);
    double seconds = pace_now() - begin;
    for (int i = 0; i < 2 * TENSORS; i++)
        if (is_first(made, i))
            device_free(made[i]);
    return seconds;
}

PaceReport pace_report(bool idle, int64_t step)
{
    if (!idle)
        return (PaceReport){counted, longest.seconds};
    return (PaceReport){-1, longest.kernel ? call_again(step) : device_trial()};
}
