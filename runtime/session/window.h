/* Windows: how one looks at a run.
 *
 *     HETU_TRACE=out.json      a timeline of all ranks (session/trace.h); HETU_TRACE_STEPS=10-19: of these steps alone
 *     HETU_PROFILE=1           time by operator and by layer when the session ends (session/profile.h)
 *     HETU_NAN=1               the run ends at the first operator that makes a NaN or an infinity (session/finite.h)
 *     HETU_NVTX=1              calls have names in NVIDIA's profilers
 *
 * The variables of rank 0 hold for all. Without one of them a worker has no window (hetu/rt.h), and nothing here does anything.
 *
 * The main thread's time is cut where it does something else: each call of a part, each wait and whatever the session does ends with a
 * mark, which says what the time since the last one was. So a trace has all of it. On a GPU a call is marked on the device, and its time is
 * known at the next mark of the host, which waits for it.
 */
#ifndef SESSION_WINDOW_H
#define SESSION_WINDOW_H

#include <hetu/rt.h>
#include <hetu/trace.h>

/* Opens the windows that the variables ask for; all ranks together, which have their devices. */
void window_open(void);

/* Writes and prints what they have seen; all ranks together. */
void window_close(void);

/* What workers get; NULL: no window is open. */
struct Window *window_of_worker(void);

/* A step begins. */
void window_step(int64_t step);

/* A part begins: its calls follow (ht_did). */
void window_part(const ht_part *part);

/* The time since the last mark was `name`; both texts are kept by reference. `at` is a place in the source, or NULL. */
void window_mark(ht_stream_kind stream, const char *name, const char *at);

/* The one-device library has run an operator, of which `call` is known as long as the session lasts; it has made tensors. */
typedef struct WindowTensor {
    const void *data;
    int64_t count;
    ht_dtype dtype;
} WindowTensor;
bool window_wanted(void);
typedef struct WindowCall {
    const ht_called *call;
    const ht_whose *whose;
    bool backward;
    int made_count, read_count;
    const WindowTensor *made, *read;
} WindowCall;
void window_operator(const WindowCall *call);

/* Says once that a loss is no number. */
void window_loss(int64_t step, float loss);

#endif
