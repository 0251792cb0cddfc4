#include "session/window.h"

#include "base/fail.h"
#include "base/timeline.h"
#include "device/device.h"
#include "session/finite.h"
#include "session/profile.h"
#include "session/trace.h"
#include "transport/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EVENTS = 1000000 }; // of a thread

/* What rank 0's variables ask for. */
typedef struct Wanted {
    bool trace, profile, finite;
    int64_t first, last; // steps that are traced
} Wanted;

static struct Window {
    Wanted wanted;
    bool open;
    double since; // the last mark
    const ht_part *part;
    int next, whose, buffer; // of its calls, of where they belong, and of their tensors
    int64_t step;
} window;

/* ---- what is asked for ---- */

static bool is_set(const char *variable)
{
    const char *text = getenv(variable);
    return text && *text && strcmp(text, "0");
}

/* "10-19", or "10". */
static void read_steps(Wanted *wanted)
{
    const char *text = getenv("HETU_TRACE_STEPS");
    long long first, last;
    int end = 0;
    wanted->last = INT64_MAX;
    if (!text)
        return;
    int found = sscanf(text, "%lld%n-%lld%n", &first, &end, &last, &end);
    last = found == 1 ? first : last;
    if (found < 1 || text[end] || first < 0 || last < first)
        ht_fail("HETU_TRACE_STEPS=%s: steps are two numbers, 10-19, or one; the first step is 0", text);
    wanted->first = first;
    wanted->last = last;
}

static Wanted read_wanted(void)
{
    Wanted wanted = {.trace = getenv("HETU_TRACE") != NULL, .profile = is_set("HETU_PROFILE"), .finite = is_set("HETU_NAN")};
    read_steps(&wanted);
    if (wanted.trace)
        trace_check(getenv("HETU_TRACE"));
    if ((wanted.trace || wanted.profile || wanted.finite) && !device_is_host())
        ht_fail("HETU_TRACE, HETU_PROFILE and HETU_NAN look at programs for the CPU, and this one is for another device; run it without");
    return wanted;
}

void window_open(void)
{
    Wanted wanted = {0};
    if (!world_rank())
        wanted = read_wanted();
    world_broadcast(&wanted, sizeof wanted);
    window = (struct Window){.wanted = wanted, .open = wanted.trace || wanted.profile || wanted.finite, .step = -1};
    if (wanted.trace) {
        trace_align();
        timeline_open(MOST_EVENTS);
        timeline_keep(wanted.first == 0);
    }
    window.since = timeline_now();
}

void window_close(void)
{
    if (!window.open)
        return;
    window_mark(HT_STREAM_HOST, "end", NULL);
    window.open = false;
    timeline_keep(false);
    if (window.wanted.profile)
        profile_print();
    if (window.wanted.trace)
        trace_write(world_rank() ? NULL : getenv("HETU_TRACE"));
    timeline_close();
}

struct Window *window_of_worker(void) { return window.open ? &window : NULL; }

bool window_wanted(void) { return window.open; }

/* ---- marks ---- */

void window_step(int64_t step)
{
    window.step = step;
    if (window.wanted.trace)
        timeline_keep(step >= window.wanted.first && step <= window.wanted.last);
}

void window_part(const ht_part *part)
{
    window.part = part;
    window.next = window.whose = window.buffer = 0;
}

static void mark(TimelineEvent event)
{
    double now = timeline_now();
    event.begin = window.since;
    event.end = now;
    event.step = (int)window.step;
    timeline_add(&event);
    window.since = now;
}

void window_mark(ht_stream_kind stream, const char *name, const char *at)
{
    if (!window.open)
        return;
    if (window.wanted.profile)
        profile_other(stream, timeline_now() - window.since);
    mark((TimelineEvent){.stream = (unsigned char)stream, .name = name, .at = at, .microbatch = -1});
}

/* The time since the last mark was a call. */
static void mark_call(const ht_called *call, const ht_whose *whose, const char *phase, int64_t microbatch)
{
    if (window.wanted.profile)
        profile_call(call, whose, timeline_now() - window.since);
    mark((TimelineEvent){.stream = call->converts ? HT_STREAM_COLLECTIVES : HT_STREAM_COMPUTING,
                         .whose = whose,
                         .call = call,
                         .phase = phase,
                         .microbatch = (short)(microbatch > INT16_MAX ? INT16_MAX : microbatch)});
}

void ht_window_call(ht_worker *r)
{
    const ht_part *part = window.part;
    if (window.next >= part->call_count)
        ht_fail("a part of the program makes more calls than it says; the program and the library are of different versions");
    while (window.whose + 1 < part->whose_count && part->whose[window.whose + 1].first <= window.next)
        window.whose++;
    const ht_whose *whose = &part->whose[window.whose];
    const ht_called *call = &part->calls[part->call[window.next++]];
    const int64_t *buffer = part->buffer + window.buffer;
    window.buffer += call->count + call->read_count;
    mark_call(call, whose, part->name, r->microbatch);
    if (!window.wanted.finite)
        return;
    WindowTensor tensors[call->count + call->read_count + 1];
    for (int t = 0; t < call->count + call->read_count; t++) {
        const ht_made *made = &part->made[call->first + t];
        tensors[t] = (WindowTensor){ht_turn(r, buffer[t], made->turn), made->count, made->dtype};
    }
    finite_check(&(WindowCall){call, whose, false, call->count, call->read_count, tensors, tensors + call->count}, window.step);
    window_mark(HT_STREAM_HOST, "HETU_NAN", NULL);
}

void window_operator(const WindowCall *call)
{
    if (!window.open)
        return;
    mark_call(call->call, call->whose, call->backward ? "backward" : "forward", 0);
    if (!window.wanted.finite)
        return;
    finite_check(call, window.step);
    window_mark(HT_STREAM_HOST, "HETU_NAN", NULL);
}

void window_loss(int64_t step, float loss)
{
    static bool said;
    if (isfinite(loss) || said)
        return;
    said = true;
    fprintf(stderr, "hetu: the loss of step %lld is %s; HETU_NAN=1 ends the run at the first operator that makes a NaN or an infinity\n",
            (long long)step,
            isnan(loss) ? "NaN"
            : loss < 0  ? "minus infinity"
                        : "infinity");
}
