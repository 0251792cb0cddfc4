/* HETU_TRACE: aligns the ranks' clocks and writes one file. hooks.c decides which operators and
 * messages of which steps are recorded. */
#include "session/observe/observers.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/call_sites.h"
#include "base/c_locale.h"
#include "base/timeline.h"
#include "transport/world.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 16 }; // rounds of comparing two clocks

/* An offset of this rank's clock: at time `at`, rank 0's time is this rank's time plus `shift`. */
typedef struct Clock {
    double at, shift; // seconds
} Clock;

static Clock opened; // offset when the session opened

/* ---- clocks ---- */

/* Identifies a clock: hosts with one boot ID and one time namespace share a clock. */
typedef struct ClockName {
    char name[160];
} ClockName;

static ClockName own_clock(void) {
    ClockName own = {""};
    char space[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (readlink("/proc/self/ns/time", space, sizeof space - 1) < 0) *space = 0;
    if (!file || !fgets(own.name, 64, file)) gethostname(own.name, 64);
    if (file) fclose(file);
    strcat(own.name, space);
    return own;
}

/* Returns, on rank 0 and on `rank`, the offset of the clock of `rank`. Each round is a message to
 * `rank` and back. The offset comes from the round with the shortest round trip, as in NTP. */
static double compare_clocks(int rank) {
    double best = INFINITY, shift = 0;
    bool asks = world_rank() == 0, answers = world_rank() == rank;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = timeline_now(), theirs = 0, word = shift;
        world_exchange(&(HostTransfer){&word, sizeof word, rank}, asks,
                       &(HostTransfer){&word, sizeof word, 0}, answers);
        theirs = timeline_now();
        world_exchange(&(HostTransfer){&theirs, sizeof theirs, 0}, answers,
                       &(HostTransfer){&theirs, sizeof theirs, rank}, asks);
        double end = timeline_now();
        if (asks && end - begin < best) {
            best = end - begin;
            shift = begin + best / 2 - theirs;
        }
    }
    world_exchange(&(HostTransfer){&shift, sizeof shift, rank}, asks,
                   &(HostTransfer){&shift, sizeof shift, 0}, answers);
    return shift;
}

static Clock compare_all(void) {
    int size = world_size();
    ClockName own = own_clock(), *all = memory_array(size, sizeof own);
    Clock clock = {0, 0};
    world_gather(&own, sizeof own, all);
    for (int rank = 1; rank < size; rank++)
        if (strcmp(all[rank].name, all[0].name)) {
            double shift = compare_clocks(rank);
            clock.shift = world_rank() == rank ? shift : clock.shift;
        }
    clock.at = timeline_now();
    free(all);
    return clock;
}

void trace_align(void) { opened = compare_all(); }

/* ---- text ---- */

/* Conversion of events to text. */
typedef struct Writer {
    FILE *out;
    Clock closed;
    double origin; // time of the first event, on rank 0's clock
} Writer;

/* Converts a time to rank 0's clock, by interpolation between the two offsets. */
static double aligned(const Writer *writer, double time) {
    double span = writer->closed.at - opened.at, part = span > 0 ? (time - opened.at) / span : 0;
    return time + opened.shift + part * (writer->closed.shift - opened.shift);
}

static void print_string(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '"' || *c == '\\') fprintf(out, "\\%c", *c);
        else if (*c < 0x20) fprintf(out, "\\u%04x", *c);
        else fputc(*c, out);
    fputc('"', out);
}

static void print_field(FILE *out, const char *name, const char *text) {
    if (!text || !*text) return;
    fprintf(out, ",\"%s\":", name);
    print_string(out, text);
}

static void print_event(const TimelineEvent *event, void *argument) {
    const Writer *writer = argument;
    const ht_called *call = event->call;
    FILE *out = writer->out;
    double begin = aligned(writer, event->begin), end = aligned(writer, event->end);
    fputs(",\n{\"name\":", out);
    print_string(out, call ? call->name : event->name);
    fprintf(out,
            ",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d,\"args\":{"
            "\"step\":%d",
            ht_stream_name((ht_stream_kind)event->stream), (begin - writer->origin) * 1e6,
            (end - begin) * 1e6, world_rank(), event->stream, event->step);
    if (event->microbatch >= 0) fprintf(out, ",\"microbatch\":%d", event->microbatch);
    print_field(out, "phase", event->phase);
    print_field(out, "line", call ? call->at : event->at);
    print_field(out, "scope", call ? event->whose->scope : NULL);
    print_field(out, "layer", call ? event->whose->layer : NULL);
    print_field(out, "value", call ? call->value : NULL);
    if (call && call->operations > 0) fprintf(out, ",\"operations\":%.0f", call->operations);
    fputs("}}", out);
}

/* Prints the names of this rank and of its streams. */
static void print_names(FILE *out) {
    int rank = world_rank();
    fprintf(
        out,
        ",\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}",
        rank, rank);
    fprintf(
        out,
        ",\n{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"sort_index\":%d}}",
        rank, rank);
    for (int stream = 0; stream < HT_STREAMS; stream++)
        fprintf(out,
                ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{"
                "\"name\":\"%s\"}}",
                rank, stream, ht_stream_name((ht_stream_kind)stream));
}

static void find_first(const TimelineEvent *event, void *argument) {
    Writer *writer = argument;
    writer->origin = fmin(writer->origin, aligned(writer, event->begin));
}

/* Finds the time of the first event of all ranks. */
static void find_origin(Writer *writer) {
    int size = world_size();
    double *all = memory_array(size, sizeof *all);
    writer->origin = INFINITY;
    timeline_each(find_first, writer);
    world_gather(&writer->origin, sizeof writer->origin, all);
    for (int rank = 0; rank < size; rank++) writer->origin = fmin(writer->origin, all[rank]);
    free(all);
}

/* ---- the file ---- */

/* The file being written, and its first error. */
typedef struct Sink {
    FILE *file; // NULL: this is not rank 0, or the file could not be created
    char *name; // temporary name; NULL: none
    int error;
    int64_t bytes; // written so far
} Sink;

static void note_error(Sink *sink, bool failed) {
    if (failed && !sink->error) sink->error = errno ? errno : EIO;
}

static void put(int rank, const void *data, int64_t bytes, void *argument) {
    Sink *sink = argument;
    (void)rank;
    sink->bytes += bytes;
    if (sink->file) note_error(sink, fwrite(data, 1, (size_t)bytes, sink->file) != (size_t)bytes);
}

void trace_check(const char *path) {
    struct stat about;
    char *name = NULL;
    const char *kind = !stat(path, &about) ? file_kind(about.st_mode) : NULL;
    FILE *file = *path && !kind ? file_create_beside(path, &name) : NULL;
    if (!file)
        ht_fail("HETU_TRACE=%s: cannot write this file: %s", path,
                !*path ? "it has no name"
                : kind ? kind
                       : folder_error(errno));
    fclose(file);
    unlink(name);
    free(name);
}

/* Prints why the trace was not written. The run's exit status does not change. */
static void say_unwritten(const char *path, int error) {
    fprintf(stderr,
            "hetu: HETU_TRACE: %s was not written: %s; the run itself is as it would be without\n",
            path, folder_error(error));
}

/* Creates the file under a temporary name, and writes the head. `path`: NULL except on rank 0. */
static Sink open_sink(const char *path) {
    static const char head[] = "{\"traceEvents\":[\n{\"name\":\"clock\",\"ph\":\"M\",\"pid\":0,"
                               "\"args\":{\"name\":\"seconds of rank 0\"}}";
    Sink sink = {0};
    file_size_errors();
    sink.file = path ? file_create_beside(path, &sink.name) : NULL;
    note_error(&sink, path && !sink.file);
    put(0, head, sizeof head - 1, &sink);
    return sink;
}

enum { LARGE = 16 << 20 }; // bytes of a trace that viewers open slowly

/* Writes the tail, and gives the file its name. Says how to trace less when the file is large.
 * After an error, removes the file. */
static void close_sink(Sink *sink, const char *path) {
    static const char tail[] = "\n],\"displayTimeUnit\":\"ms\"}\n";
    put(0, tail, sizeof tail - 1, sink);
    if (sink->file) note_error(sink, fclose(sink->file));
    if (sink->name && !sink->error) note_error(sink, rename(sink->name, path));
    if (sink->name && sink->error) unlink(sink->name);
    if (sink->error) say_unwritten(path, sink->error);
    if (sink->name && !sink->error && sink->bytes >= LARGE && !getenv("HETU_TRACE_STEPS"))
        fprintf(
            stderr,
            "hetu: HETU_TRACE: %s has %.0f MB; HETU_TRACE_STEPS=10-19 traces some steps alone\n",
            path, (double)sink->bytes / 1e6);
    free(sink->name);
}

void trace_write(const char *path) {
    char *text = NULL;
    size_t length = 0;
    Writer writer = {.closed = compare_all(), .out = open_memstream(&text, &length)};
    if (!writer.out) ht_fail("no memory for the trace of this rank");
    find_origin(&writer);
    call_sites_find();
    locale_t own = c_locale_enter();
    print_names(writer.out);
    timeline_each(print_event, &writer);
    fclose(writer.out);
    c_locale_leave(own);
    if (timeline_lost())
        fprintf(stderr,
                "hetu: rank %d: HETU_TRACE lacks the last %lld events of this rank; "
                "HETU_TRACE_STEPS=10-19 traces some steps alone\n",
                world_rank(), (long long)timeline_lost());
    Sink sink = open_sink(path);
    world_collect(text, (int64_t)length, &(Collector){1, put, &sink});
    close_sink(&sink, path);
    free(text);
}
