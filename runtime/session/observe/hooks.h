/* Windows: how one looks at a run.
 *
 *     HETU_TRACE=out.json      a timeline of all ranks (session/observe/trace.c);
 *                              HETU_TRACE_STEPS=10-19: of these steps alone
 *     HETU_PROFILE=1           time by operator and by layer when the session ends
 *                              (session/observe/profile.c)
 *     HETU_NAN=1               the run ends at the first operator that makes a NaN or an infinity
 *                              (session/observe/finite.c)
 *     HETU_NVTX=1              calls have names in NVIDIA's profilers
 *
 * The variables of rank 0 hold for all. Without one of them a worker has no window (hetu/rt.h), and
 * nothing here does anything.
 *
 * The main thread's time is cut where it does something else: each call of a part, each wait and
 * whatever the session does ends with a mark, which says what the time since the last one was. So a
 * trace has all of it. On a GPU a call is marked on the device, and its time is known at the next
 * mark of the host, which waits for it.
 */
#ifndef SESSION_OBSERVE_HOOKS_H
#define SESSION_OBSERVE_HOOKS_H

#include <hetu/rt.h>
#include <hetu/trace.h>

/* Opens the windows that the variables ask for; all ranks together, which have their devices. */
void hooks_open(void);

/* Writes and prints what they have seen; all ranks together. */
void hooks_close(void);

/* What workers get; NULL: no window is open. */
struct Observer *hooks_of_worker(void);

/* A step begins. */
void hooks_step(int64_t step);

/* A part begins: its calls follow (ht_did). */
void hooks_phase(const ht_part *part);

/* The time since the last mark was `name`; both texts are kept by reference. `at` is a place in the
 * source, or NULL. */
void hooks_mark(ht_stream_kind stream, const char *name, const char *at);

/* The one-device library has run an operator, of which `call` is known as long as the session
 * lasts; it has made tensors. */
typedef struct HookTensor {
    const void *data;
    int64_t count;
    ht_dtype dtype;
} HookTensor;
bool hooks_wanted(void);
typedef struct HookCall {
    const ht_called *call;
    const ht_whose *whose;
    bool backward;
    int made_count, read_count;
    const HookTensor *made, *read;
} HookCall;
void hooks_operator(const HookCall *call);

/* Says once that a loss is no number. */
void hooks_loss(int64_t step, float loss);

#endif
