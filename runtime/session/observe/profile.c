/* HETU_PROFILE: prints seconds, operations/s, bytes/s by operator and layer; shares by stream. */
#include "session/observe/observers.h"

#include "base/memory.h"
#include "base/c_locale.h"
#include "base/timeline.h"
#include "device/device.h"
#include "transport/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Total time of all runs of one call. */
typedef struct Taken {
    const ht_called *call; // NULL: empty entry of the hash table
    const ht_whose *whose;
    int64_t runs;
    double seconds;
} Taken;

static struct {
    Taken *at; // open-addressing hash table by call and ht_whose entry
    int64_t count, room;
    double other[HT_STREAMS];
} profile;

/* ---- while the program runs ---- */

static Taken *find(Taken *table, int64_t room, const ht_called *call, const ht_whose *whose) {
    uint64_t place = ((uint64_t)(uintptr_t)call / sizeof(ht_called) + (uint64_t)(uintptr_t)whose) *
                     0x9e3779b97f4a7c15u;
    for (int64_t i = (int64_t)(place >> 20) & (room - 1);; i = (i + 1) & (room - 1))
        if (!table[i].call || (table[i].call == call && table[i].whose == whose)) return &table[i];
}

static void grow(void) {
    int64_t room = profile.room ? 2 * profile.room : 1024;
    Taken *table = memory_array(room, sizeof *table);
    for (int64_t i = 0; i < profile.room; i++)
        if (profile.at[i].call)
            *find(table, room, profile.at[i].call, profile.at[i].whose) = profile.at[i];
    free(profile.at);
    profile.at = table;
    profile.room = room;
}

void profile_call(const ht_called *call, const ht_whose *whose, double seconds) {
    if (2 * profile.count >= profile.room) grow();
    Taken *taken = find(profile.at, profile.room, call, whose);
    profile.count += !taken->call;
    taken->call = call;
    taken->whose = whose;
    taken->runs++;
    taken->seconds += seconds;
}

void profile_other(ht_stream_kind stream, double seconds) { profile.other[stream] += seconds; }

/* ---- the machine ---- */

enum {
    LEAST_BITS = 12, // the first size class: calls that touch at most 2^12 bytes
    CLASSES = 16     // each size class has twice the bytes of the one before; the last has no limit
};

/* The highest rates of this rank: operations a second; bytes a second by size class of a call,
 * since caches are faster than memory. 0: not known. */
typedef struct Limits {
    double operations, bytes[CLASSES];
} Limits;

static int class_of(double bytes) {
    int bits = LEAST_BITS;
    while (bits < LEAST_BITS + CLASSES - 1 && bytes > (double)(INT64_C(1) << bits)) bits++;
    return bits - LEAST_BITS;
}

/* Returns the best of 5 measured rates (bytes/s) of copies that read and write `bytes` bytes. */
static double copy_rate(char *memory, int64_t bytes) {
    enum { TIMES = 5, LEAST_COPIED = 1 << 20, PIECE = 1 << 14 };
    const int64_t half = bytes / 2, copies = 1 + LEAST_COPIED / bytes;
    double least = INFINITY;
    for (int i = 0; i < TIMES; i++) {
        double begin = timeline_now();
        for (int64_t c = 0; c < copies && half <= PIECE; c++)
            memcpy(memory + half, memory, (size_t)half);
        for (int64_t c = 0; c < copies && half > PIECE; c++) {
#pragma omp parallel for schedule(static)
            for (int64_t at = 0; at < half; at += PIECE)
                memcpy(memory + half + at, memory + at, PIECE);
        }
        least = fmin(least, timeline_now() - begin);
    }
    return least > 0 ? (double)(copies * bytes) / least : 0;
}

/* Measures the rates of products and copies. On a GPU, copies of all sizes count as large ones. */
static Limits measure_limits(void) {
    enum { MEASURED = CLASSES - 3 }; // larger size classes get the rate of copies in memory
    DeviceRates rates = device_rates();
    Limits limits = {.operations = rates.operations};
    const int64_t room = INT64_C(1) << (LEAST_BITS + MEASURED - 1);
    char *memory = device_is_host() ? device_alloc(room) : NULL;
    if (memory) memset(memory, 1, (size_t)room);
    for (int c = 0; c < CLASSES; c++) {
        limits.bytes[c] = rates.bytes;
        if (memory && c < MEASURED)
            limits.bytes[c] = fmax(rates.bytes, copy_rate(memory, INT64_C(1) << (LEAST_BITS + c)));
    }
    if (memory) device_free(memory);
    return limits;
}

/* Raises the limits to the rates of calls that were faster than what was measured: a rank computes
 * faster while others wait, and an operator that writes little moves bytes faster than a copy. */
static void raise_limits(Limits *limits) {
    for (int64_t i = 0; i < profile.room; i++) {
        const Taken *taken = &profile.at[i];
        if (!taken->call || taken->seconds <= 0) continue;
        double *bytes = &limits->bytes[class_of(taken->call->bytes)],
               a_second = (double)taken->runs / taken->seconds;
        *bytes = fmax(*bytes, a_second * taken->call->bytes);
        if (limits->operations > 0)
            limits->operations = fmax(limits->operations, a_second * taken->call->operations);
    }
}

/* ---- rows ---- */

typedef enum RowKind { ROW_OPERATOR, ROW_LAYER, ROW_STREAM } RowKind;

/* A row of a table: calls of an operator or layer, or a stream. Rank 0 adds up the ranks' rows. */
typedef struct ProfileRow {
    char name[88];
    RowKind kind;
    int64_t runs;
    double seconds, operations, bytes;
    double computing, moving; // seconds that operations and bytes take at the limits
} ProfileRow;

typedef struct Rows {
    int count, room;
    ProfileRow *at;
} Rows;

static ProfileRow *row_of(Rows *rows, RowKind kind, const char *name) {
    for (int i = 0; i < rows->count; i++)
        if (rows->at[i].kind == kind &&
            !strncmp(rows->at[i].name, name, sizeof rows->at[i].name - 1))
            return &rows->at[i];
    if (rows->count == rows->room) {
        rows->room = 2 * rows->room + 64;
        rows->at = realloc(rows->at, (size_t)rows->room * sizeof *rows->at);
        if (!rows->at) ht_fail("no memory for %d rows of a profile", rows->room);
    }
    ProfileRow *row = &rows->at[rows->count++];
    *row = (ProfileRow){.kind = kind};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

static void add(Rows *rows, const ProfileRow *more) {
    ProfileRow *row = row_of(rows, more->kind, more->name);
    row->runs += more->runs;
    row->seconds += more->seconds;
    row->operations += more->operations;
    row->bytes += more->bytes;
    row->computing += more->computing;
    row->moving += more->moving;
}

/* Writes the name of a call's layer: from the layer pragma, else the outermost scope: "h3". */
static void layer_name(char *name, size_t size, const ht_whose *call) {
    if (*call->layer) snprintf(name, size, "layer %s", call->layer);
    else if (*call->scope)
        snprintf(name, size, "%.*s", (int)strcspn(call->scope, "."), call->scope);
    else snprintf(name, size, "-");
}

/* Returns the rows of this rank. */
static Rows own_rows(const Limits *limits) {
    Rows rows = {0};
    for (int64_t i = 0; i < profile.room; i++) {
        const Taken *taken = &profile.at[i];
        if (!taken->call || taken->seconds <= 0) continue;
        double runs = (double)taken->runs;
        ProfileRow row = {.runs = taken->runs,
                          .seconds = taken->seconds,
                          .operations = runs * taken->call->operations,
                          .bytes = runs * taken->call->bytes};
        double rate = limits->bytes[class_of(taken->call->bytes)];
        row.computing = limits->operations > 0 ? row.operations / limits->operations : 0;
        row.moving = rate > 0 ? row.bytes / rate : 0;
        snprintf(row.name, sizeof row.name, "%s", taken->call->name);
        add(&rows, &row);
        row.kind = ROW_LAYER;
        layer_name(row.name, sizeof row.name, taken->whose);
        add(&rows, &row);
        row.kind = ROW_STREAM;
        snprintf(
            row.name, sizeof row.name, "%s",
            ht_stream_name(taken->call->converts ? HT_STREAM_COLLECTIVES : HT_STREAM_COMPUTING));
        add(&rows, &row);
    }
    for (int s = 0; s < HT_STREAMS; s++) {
        ProfileRow row = {.kind = ROW_STREAM, .seconds = profile.other[s]};
        snprintf(row.name, sizeof row.name, "%s", ht_stream_name((ht_stream_kind)s));
        if (row.seconds > 0) add(&rows, &row);
    }
    return rows;
}

static void take(int rank, const void *data, int64_t bytes, void *argument) {
    (void)rank;
    for (int64_t i = 0; i < bytes / (int64_t)sizeof(ProfileRow); i++)
        add(argument, (const ProfileRow *)data + i);
}

/* Orders rows by kind, then by falling time. */
static int compare_rows(const void *a, const void *b) {
    const ProfileRow *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

/* ---- tables ---- */

/* Prints amount / seconds, and `least`, the seconds at the machine's limit, in % of `seconds`. */
static void print_rate(double amount, double seconds, double least) {
    if (amount <= 0 || seconds <= 0) fprintf(stderr, "  %12s  %6s", "-", "-");
    else if (least > 0)
        fprintf(stderr, "  %12.3g  %5.1f%%", amount / seconds, 100 * least / seconds);
    else fprintf(stderr, "  %12.3g  %6s", amount / seconds, "-");
}

/* Prints the rows of one kind. Rates are those of all ranks together. */
static void print_table(const Rows *rows, RowKind kind, const char *title, double whole) {
    double ranks = world_size();
    fprintf(stderr, "%-32s  %10s  %10s  %6s  %10s  %12s  %6s  %10s  %6s\n", title, "calls",
            "seconds", "share", "operations", "operations/s", "", "bytes/s", "");
    for (int i = 0; i < rows->count; i++) {
        const ProfileRow *row = &rows->at[i];
        if (row->kind != kind) continue;
        double seconds = row->seconds / ranks;
        fprintf(stderr, "%-32s  %10lld  %10.4f  %5.1f%%", row->name, (long long)row->runs, seconds,
                whole > 0 ? 100 * seconds / whole : 0);
        if (row->operations > 0) fprintf(stderr, "  %10.4g", row->operations);
        else fprintf(stderr, "  %10s", "-");
        print_rate(row->operations, seconds, row->computing / ranks);
        print_rate(row->bytes, seconds, row->moving / ranks);
        fputs("\n", stderr);
    }
}

/* Returns the seconds of a rank: the sum over all streams, averaged over the ranks. */
static double whole_seconds(const Rows *rows) {
    double whole = 0;
    for (int i = 0; i < rows->count; i++)
        whole += rows->at[i].kind == ROW_STREAM ? rows->at[i].seconds / world_size() : 0;
    return whole;
}

static void print_all(Rows *rows, const Limits *machine) {
    double whole = whole_seconds(rows);
    locale_t own = c_locale_enter();
    if (rows->count) qsort(rows->at, (size_t)rows->count, sizeof *rows->at, compare_rows);
    fprintf(stderr, "hetu: profile of %d rank%s, %.4f s of each:", world_size(),
            world_size() > 1 ? "s" : "", whole);
    for (int i = 0, first = 1; i < rows->count; i++)
        if (rows->at[i].kind == ROW_STREAM) {
            fprintf(stderr, "%s %s %.1f%%", first ? "" : ",", rows->at[i].name,
                    whole > 0 ? 100 * rows->at[i].seconds / world_size() / whole : 0);
            first = 0;
        }
    fprintf(stderr,
            "\nhetu: the machine, all ranks at once: %.3g operations/s of products, %.3g bytes/s "
            "of copies, %.3g of 1 MiB at a time, %.3g of 64 KiB\n"
            "hetu: percentages behind rates are shares of these, for bytes at a call's size, or of "
            "the fastest call of the run\n",
            machine->operations, machine->bytes[CLASSES - 1], machine->bytes[class_of(1 << 20)],
            machine->bytes[class_of(1 << 16)]);
    print_table(rows, ROW_OPERATOR, "operator", whole);
    print_table(rows, ROW_LAYER, "layer", whole);
    c_locale_leave(own);
}

/* Returns this rank's limits, measured while all ranks measure. Sets *sum to the ranks' sum. */
static Limits machine_limits(Limits *sum) {
    int size = world_size();
    Limits *all = memory_array(size, sizeof *all);
    world_least(0);
    Limits own = measure_limits();
    world_gather(&own, sizeof own, all);
    *sum = (Limits){0};
    for (int rank = 0; rank < size; rank++) {
        sum->operations += all[rank].operations;
        for (int c = 0; c < CLASSES; c++) sum->bytes[c] += all[rank].bytes[c];
    }
    free(all);
    return own;
}

void profile_print(void) {
    Limits machine, limits = machine_limits(&machine);
    raise_limits(&limits);
    Rows own = own_rows(&limits), all = {0};
    world_collect(own.at, own.count * (int64_t)sizeof *own.at,
                  &(Collector){sizeof *own.at, take, &all});
    if (!world_rank()) print_all(&all, &machine);
    free(own.at);
    free(all.at);
    free(profile.at);
    memset(&profile, 0, sizeof profile);
}
