/* Reads HETU_TRACE, HETU_PROFILE, HETU_NAN and HETU_NVTX, and attributes time to calls, on GPUs by
 * marks (cuda/profiler_marks.cu). */
#include "session/observe/hooks.h"

#include "base/timeline.h"
#include "device/device.h"
#include "session/observe/observers.h"
#include "transport/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EVENTS = 1000000 }; // limit of events of a thread

/* The observers that rank 0's environment variables ask for. */
typedef struct RequestedHooks {
    bool trace, profile, finite, names;
    int64_t first, last; // steps that are traced
} RequestedHooks;

static struct Observer {
    RequestedHooks wanted;
    bool open;
    double since; // time of the last mark
    const ht_part *part;
    int next, whose, buffer; // indices of the part's next call, its ht_whose and its first buffer
    int64_t step;
} observer;

/* A call that was issued to the device and may still run. */
typedef struct Issued {
    const ht_called *call;
    const ht_whose *whose;
    const char *phase;
    int64_t microbatch;
    int mark; // device mark after the call
} Issued;

/* Calls issued since the last mark of the host, on devices that are not the host. Their times are
 * known once the device has reached their marks. */
static struct {
    Issued *at;
    int count, room;
    bool begun; // device mark 0 has been set, before the first call
} issued;

/* ---- environment variables ---- */

static bool is_set(const char *variable) {
    const char *text = getenv(variable);
    return text && *text && strcmp(text, "0");
}

/* Reads HETU_TRACE_STEPS: "10-19", or "10". */
static void read_steps(RequestedHooks *wanted) {
    const char *text = getenv("HETU_TRACE_STEPS");
    long long first, last;
    int end = 0;
    wanted->last = INT64_MAX;
    if (!text) return;
    int found = sscanf(text, "%lld%n-%lld%n", &first, &end, &last, &end);
    last = found == 1 ? first : last;
    if (found < 1 || text[end] || first < 0 || last < first)
        ht_fail("HETU_TRACE_STEPS=%s: steps are two numbers, 10-19, or one; the first step is 0",
                text);
    wanted->first = first;
    wanted->last = last;
}

static RequestedHooks read_wanted(void) {
    RequestedHooks wanted = {.trace = getenv("HETU_TRACE") != NULL,
                             .profile = is_set("HETU_PROFILE"),
                             .finite = is_set("HETU_NAN"),
                             .names = is_set("HETU_NVTX")};
    read_steps(&wanted);
    if (wanted.trace) trace_check(getenv("HETU_TRACE"));
    if (wanted.names && !device_name(NULL))
        ht_fail(device_is_host() ? "HETU_NVTX names work for profilers of GPUs, and this program "
                                   "is for the CPU; HETU_TRACE shows what it does"
                                 : "HETU_NVTX=1, but this program was built without NVTX; build it "
                                   "with make NVTX=1");
    return wanted;
}

void hooks_open(void) {
    RequestedHooks wanted = {0};
    if (!world_rank()) wanted = read_wanted();
    world_broadcast(&wanted, sizeof wanted);
    observer =
        (struct Observer){.wanted = wanted,
                          .open = wanted.trace || wanted.profile || wanted.finite || wanted.names,
                          .step = -1};
    if (observer.open) device_look();
    if (wanted.trace) {
        trace_align();
        timeline_open(MOST_EVENTS);
        timeline_keep(wanted.first == 0);
    }
    observer.since = timeline_now();
}

void hooks_close(void) {
    if (!observer.open) return;
    hooks_mark(HT_STREAM_HOST, "end", NULL);
    observer.open = false;
    timeline_keep(false);
    if (observer.wanted.profile) profile_print();
    if (observer.wanted.trace) trace_write(world_rank() ? NULL : getenv("HETU_TRACE"));
    timeline_close();
    free(issued.at);
    memset(&issued, 0, sizeof issued);
}

struct Observer *hooks_of_worker(void) { return observer.open ? &observer : NULL; }

bool hooks_wanted(void) { return observer.open; }

/* ---- marks ---- */

void hooks_step(int64_t step) {
    observer.step = step;
    if (observer.wanted.trace)
        timeline_keep(step >= observer.wanted.first && step <= observer.wanted.last);
}

/* Records an event that lasts from the last mark to `end`. */
static void mark(TimelineEvent event, double end) {
    event.begin = observer.since;
    event.end = end;
    event.step = (int)observer.step;
    timeline_add(&event);
    observer.since = end;
}

/* Attributes the time since the last mark to an activity other than a call. */
static void mark_other(ht_stream_kind stream, const char *name, const char *at, double end) {
    if (observer.wanted.profile) profile_other(stream, end - observer.since);
    mark((TimelineEvent){.stream = (unsigned char)stream, .name = name, .at = at, .microbatch = -1},
         end);
}

/* Attributes the time since the last mark to a call. */
static void mark_call(const ht_called *call, const ht_whose *whose, const char *phase,
                      int64_t microbatch, double end) {
    if (observer.wanted.profile) profile_call(call, whose, end - observer.since);
    mark((TimelineEvent){.stream = call->converts ? HT_STREAM_COLLECTIVES : HT_STREAM_COMPUTING,
                         .whose = whose,
                         .call = call,
                         .phase = phase,
                         .microbatch = (short)(microbatch > INT16_MAX ? INT16_MAX : microbatch)},
         end);
}

/* ---- calls that are not done when they are issued ---- */

/* Sets device mark 0 before the first issued call. */
static void begin_issued(void) {
    if (observer.open && !device_is_host() && !issued.begun) device_mark();
    issued.begun = true;
}

static void add_issued(Issued call) {
    if (issued.count == issued.room) {
        issued.room = 2 * issued.room + 1024;
        issued.at = realloc(issued.at, sizeof *issued.at * (size_t)issued.room);
        if (!issued.at) ht_fail("no memory for the times of %d calls", issued.room);
    }
    call.mark = device_mark();
    issued.at[issued.count++] = call;
}

/* Waits for the device, and records when it ran each issued call. The last call ends now; the
 * device marks give the other times relative to that end. The time before the first call is the
 * host's time for issuing. */
static void take_issued(void) {
    if (!issued.count) return;
    device_wait();
    double now = timeline_now(), zero = now - device_marked(issued.at[issued.count - 1].mark);
    mark_other(HT_STREAM_HOST, "issue", NULL, fmin(fmax(zero, observer.since), now));
    for (int i = 0; i < issued.count; i++) {
        const Issued *call = &issued.at[i];
        mark_call(call->call, call->whose, call->phase, call->microbatch,
                  fmin(fmax(zero + device_marked(call->mark), observer.since), now));
    }
    device_marks_clear();
    issued.count = 0;
    issued.begun = false;
}

/* Names the next call of the part in NVIDIA's profilers. */
static void name_next(void) {
    const ht_part *part = observer.part;
    if (!observer.wanted.names) return;
    const ht_called *call =
        observer.next < part->call_count ? &part->calls[part->call[observer.next]] : NULL;
    char name[256];
    int whose = observer.whose;
    while (whose + 1 < part->whose_count && part->whose[whose + 1].first <= observer.next) whose++;
    if (call)
        snprintf(name, sizeof name, "%s %s %s", call->name, call->at, part->whose[whose].scope);
    device_name(call ? name : NULL);
}

/* ---- calls from other modules ---- */

void hooks_phase(const ht_part *part) {
    observer.part = part;
    observer.next = observer.whose = observer.buffer = 0;
    if (!observer.open) return;
    begin_issued();
    name_next();
}

void hooks_mark(ht_stream_kind stream, const char *name, const char *at) {
    if (!observer.open) return;
    take_issued();
    mark_other(stream, name, at, timeline_now());
}

void ht_observe_call(ht_worker *r) {
    const ht_part *part = observer.part;
    if (observer.next >= part->call_count)
        ht_fail("a part of the program makes more calls than it says; the program and the library "
                "are of different versions");
    while (observer.whose + 1 < part->whose_count &&
           part->whose[observer.whose + 1].first <= observer.next)
        observer.whose++;
    const ht_whose *whose = &part->whose[observer.whose];
    const ht_called *call = &part->calls[part->call[observer.next++]];
    const int64_t *buffer = part->buffer + observer.buffer;
    observer.buffer += call->count + call->read_count;
    if (device_is_host()) mark_call(call, whose, part->name, r->microbatch, timeline_now());
    else
        add_issued((Issued){
            .call = call, .whose = whose, .phase = part->name, .microbatch = r->microbatch});
    name_next();
    if (!observer.wanted.finite) return;
    HookTensor tensors[call->count + call->read_count + 1];
    for (int t = 0; t < call->count + call->read_count; t++) {
        const ht_made *made = &part->made[call->first + t];
        tensors[t] = (HookTensor){ht_turn(r, buffer[t], made->turn), made->count, made->dtype};
    }
    finite_check(&(HookCall){call, whose, false, call->count, call->read_count, tensors,
                             tensors + call->count},
                 observer.step);
    hooks_mark(HT_STREAM_HOST, "HETU_NAN", NULL);
    begin_issued();
}

void hooks_operator(const HookCall *call) {
    if (!observer.open) return;
    mark_call(call->call, call->whose, call->backward ? "backward" : "forward", 0, timeline_now());
    if (!observer.wanted.finite) return;
    finite_check(call, observer.step);
    hooks_mark(HT_STREAM_HOST, "HETU_NAN", NULL);
}

void hooks_loss(int64_t step, float loss) {
    static bool said;
    if (isfinite(loss) || said) return;
    said = true;
    fprintf(stderr,
            "hetu: the loss of step %lld is %s; HETU_NAN=1 ends the run at the first operator that "
            "makes a NaN or an infinity\n",
            (long long)step,
            isnan(loss) ? "NaN"
            : loss < 0  ? "minus infinity"
                        : "infinity");
}
