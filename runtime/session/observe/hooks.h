/* Hooks: the observers of a run.
 *
 *     HETU_TRACE=out.json      a timeline of all ranks (session/observe/trace.c);
 *                              HETU_TRACE_STEPS=10-19: of these steps only
 *     HETU_PROFILE=1           time by operator and by layer when the session ends
 *                              (session/observe/profile.c)
 *     HETU_NAN=1               the run ends at the first operator that makes a NaN or an infinity
 *                              (session/observe/nan_check.c)
 *     HETU_NVTX=1              names of calls in NVIDIA's profilers
 *
 * The environment variables of rank 0 hold for all ranks. If none is set, ht_worker.observer
 * (hetu/rt.h) is NULL and the hooks do nothing.
 *
 * The main thread's time is a sequence of intervals. Each call of a part, each wait and each other
 * activity ends with a mark, which names the time since the last mark. So a trace covers the whole
 * time. On a GPU, calls have marks on the device. The next mark of the host waits for the device
 * and reads the times of these marks. */
#pragma once

#include <hetu/rt.h>
#include <hetu/trace.h>

/* Opens the observers that the variables ask for. All ranks call it together, after device_open. */
void hooks_open(void);

/* Writes the trace and prints the profile. All ranks call it together. */
void hooks_close(void);

/* Returns the observer for ht_worker.observer; NULL: there is none. */
struct Observer *hooks_of_worker(void);

/* Begins a step: its events get its number, and are traced if HETU_TRACE_STEPS has the step. */
void hooks_step(int64_t step);

/* Begins a part, whose calls follow (ht_did). */
void hooks_phase(const ht_part *part);

/* Attributes the time since the last mark to `name`, at line `at` or NULL; keeps both pointers. */
void hooks_mark(ht_stream_kind stream, const char *name, const char *at);

/* A tensor that a call has written or read, of `count` elements. */
typedef struct HookTensor {
    const void *data;
    int64_t count;
    ht_dtype dtype;
} HookTensor;

/* Returns whether there is an observer. */
bool hooks_wanted(void);

/* A call that has run; made: results, read: operands. `call` must live as long as the session. */
typedef struct HookCall {
    const ht_called *call;
    const ht_whose *whose;
    bool backward;
    int made_count, read_count;
    const HookTensor *made, *read;
} HookCall;

/* Reports that the one-device library has run an operator. */
void hooks_operator(const HookCall *call);

/* Prints a message at the first loss that is not finite. */
void hooks_loss(int64_t step, float loss);
