/* HETU_NAN=1: ends the run at the first operator that makes a NaN or an infinity. Else hooks_loss
 * (hooks.c) warns once. No step is skipped; there is no loss scale (passes/precision.c). */
#include "session/observe/observers.h"

#include "base/fail.h"
#include "base/call_sites.h"
#include "device/device.h"
#include "exchange/copy_boxes.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 4096 };

/* Returns element i as a double; 0 for integers, which are always finite. */
static double element(const void *data, ht_dtype dtype, int64_t i) {
    switch (dtype) {
    case HT_F32: return ((const float *)data)[i];
    case HT_F64: return ((const double *)data)[i];
    case HT_BF16: return ht_bf16_load(((const uint16_t *)data)[i]);
    default: return 0;
    }
}

/* The first element of a tensor that is not finite. */
typedef struct Found {
    int64_t at; // index of the element; -1: there is none
    double value;
} Found;

/* Returns the first element that is not finite, or (`nan`) the first NaN. Searches block by block:
 * the sum of x * 0 over a block is 0 exactly when all elements are finite. */
static Found search(const void *data, ht_dtype dtype, int64_t count, bool nan) {
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t end = first + BLOCK < count ? first + BLOCK : count;
        double sum = 0;
        for (int64_t i = first; i < end; i++) sum += element(data, dtype, i) * 0;
        for (int64_t i = first; sum != 0 && i < end; i++)
            if (nan ? isnan(element(data, dtype, i)) : !isfinite(element(data, dtype, i)))
                return (Found){i, element(data, dtype, i)};
    }
    return (Found){-1, 0};
}

/* Does the same as `search` for a tensor in device memory. Finds nothing in integer tensors. */
static Found find(const HookTensor *tensor, bool nan) {
    bool floating = tensor->dtype == HT_F32 || tensor->dtype == HT_F64 || tensor->dtype == HT_BF16;
    int64_t bytes = tensor->count * (int64_t)ht_dtype_bytes(tensor->dtype);
    if (!floating || !tensor->count) return (Found){-1, 0};
    void *memory = (void *)(uintptr_t)tensor->data, *data = device_map(memory, bytes, DEVICE_READ);
    Found found = search(data, tensor->dtype, tensor->count, nan);
    device_unmap(memory, data, bytes, DEVICE_READ);
    return found;
}

/* Addresses of tensors with infinities that earlier checks accepted. A call may overwrite its own
 * operands, so their infinities can no longer be found in memory. */
static struct {
    const void **at;
    int count, room;
} known;

static int find_known(const void *data) {
    for (int i = 0; i < known.count; i++)
        if (known.at[i] == data) return i;
    return -1;
}

static void know(const void *data) {
    if (find_known(data) >= 0) return;
    if (known.count == known.room) {
        known.room = 2 * known.room + 64;
        known.at = realloc(known.at, sizeof *known.at * (size_t)known.room);
        if (!known.at) ht_fail("no memory for the places of %d infinities", known.room);
    }
    known.at[known.count++] = data;
}

static void forget(const void *data) {
    int i = find_known(data);
    if (i >= 0) known.at[i] = known.at[--known.count];
}

static bool is_made(const HookCall *call, const void *data) {
    bool made = false;
    for (int m = 0; m < call->made_count; m++) made |= call->made[m].data == data;
    return made;
}

/* Returns whether a call may pass infinities on: its operator makes them, or an operand has one. */
static bool passes_on(const HookCall *call) {
    bool infinite = call->call->endless;
    for (int r = 0; r < call->read_count && !infinite; r++)
        infinite = find_known(call->read[r].data) >= 0 ||
                   (!is_made(call, call->read[r].data) && find(&call->read[r], false).at >= 0);
    return infinite;
}

static _Noreturn void report(const ht_called *call, const ht_whose *whose, int64_t step,
                             const HookTensor *made, Found found) {
    call_sites_find();
    fail_doing(call->at);
    ht_fail("%s%s%s makes %s, element %lld of %lld%s%s%s%s in step %lld (HETU_NAN)", call->name,
            *call->value ? " of " : "", call->value,
            isnan(found.value) ? "a NaN"
            : found.value < 0  ? "minus infinity"
                               : "an infinity",
            (long long)found.at, (long long)made->count, *whose->scope ? ", in " : "", whose->scope,
            *whose->layer ? ", layer " : "", whose->layer, (long long)step);
}

void finite_check(const HookCall *call, int64_t step) {
    bool infinite[call->made_count + 1];
    for (int m = 0; m < call->made_count; m++) {
        Found found = find(&call->made[m], false);
        infinite[m] = found.at >= 0;
        if (found.at >= 0 && !isnan(found.value) && passes_on(call))
            found = find(&call->made[m], true);
        if (found.at >= 0) report(call->call, call->whose, step, &call->made[m], found);
    }
    for (int m = 0; m < call->made_count; m++) (infinite[m] ? know : forget)(call->made[m].data);
}
