/* Schedules: slots and times against closed forms, tables against a walk of their own in which
 * sends end when they are received, text. */
#include "schedule/schedule.h"
#include "schedule/timeline.h"
#include "syntax/tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { MOST_VISITS = 64, MOST_EDGES = 256 };

/* ---- graphs ---- */

typedef struct Graph {
    StageGraph graph;
    int stage_of[MOST_VISITS], edge[MOST_EDGES][2];
} Graph;

static void begin_graph(Graph *graph, int stages, int visits, bool trains) {
    graph->graph =
        (StageGraph){stages, visits, graph->stage_of, 0, (const int(*)[2])graph->edge, trains};
}

static void add_edge(Graph *graph, int from, int to) {
    graph->edge[graph->graph.edge_count][0] = from;
    graph->edge[graph->graph.edge_count++][1] = to;
}

/* A chain that goes V times round S stages; with `fold`, every other time backward. */
static void make_chain(Graph *graph, int stages, int times, bool fold, bool trains) {
    begin_graph(graph, stages, stages * times, trains);
    for (int v = 0; v < stages * times; v++) {
        int s = v % stages;
        graph->stage_of[v] = fold && v / stages % 2 ? stages - 1 - s : s;
        if (v) add_edge(graph, v - 1, v);
    }
}

static uint32_t draw(uint32_t *seed, uint32_t below) {
    *seed = *seed * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)(*seed >> 8) * below) >> 24);
}

/* A random graph: visits in any order of stages, edges from lower to higher, some left out: towers,
 * skips, several at once. Visits have random numbers. */
static void make_random(Graph *graph, uint32_t *seed) {
    int stages = 1 + (int)draw(seed, 6), visits = stages + (int)draw(seed, 7), number[MOST_VISITS];
    begin_graph(graph, stages, visits, draw(seed, 4));
    for (int v = 0; v < visits; v++) {
        int other = (int)draw(seed, (uint32_t)v + 1);
        number[v] = number[other];
        number[other] = v;
    }
    for (int v = 0; v < visits; v++)
        graph->stage_of[number[v]] = v < stages ? v : (int)draw(seed, (uint32_t)stages);
    for (int v = 1; v < visits; v++) {
        if (draw(seed, 8)) add_edge(graph, number[v - 1], number[v]);
        while (!draw(seed, 3)) add_edge(graph, number[draw(seed, (uint32_t)v)], number[v]);
    }
}

/* ---- a walk through a table, in seconds by part ---- */

enum { DONE = 1 << 30 };

/* Whether and when each part of each visit and micro-batch has ended, and each message along an
 * edge: seconds, or -1. */
typedef struct Walk {
    const StageGraph *graph;
    const Schedule *schedule;
    const double *seconds; // by part and stage
    int microbatches, *next;
    double *at, *ended, *received[2];
} Walk;

static double *ended(const Walk *walk, int part, int visit, int m) {
    return &walk->ended[(part * walk->graph->visit_count + visit) * walk->microbatches + m];
}

static double *received(const Walk *walk, bool backward, int edge, int m) {
    return &walk->received[backward][edge * walk->microbatches + m];
}

static double later(double a, double b) { return a < 0 || b < 0 ? -1 : a > b ? a : b; }

/* When all rows of a stage that stand in front of one and have its slot have run, and all that is
 * sent out of the slot by others is received. */
static double slot_free(const Walk *walk, int stage, int index) {
    const ScheduleRow *rows = walk->schedule->rows[stage];
    double free = 0;
    for (int i = index - 1; i >= 0; i--) {
        if (rows[i].slot != rows[index].slot) continue;
        free = later(free, *ended(walk, (int)rows[i].phase, rows[i].visit, rows[i].microbatch));
        if (rows[i].visit == rows[index].visit && rows[i].microbatch == rows[index].microbatch)
            break;
        for (int e = 0; e < walk->graph->edge_count; e++) {
            if (rows[i].phase == SCHEDULE_FORWARD && walk->graph->edge[e][0] == rows[i].visit)
                free = later(free, *received(walk, false, e, rows[i].microbatch));
            if (rows[i].phase == SCHEDULE_BACKWARD && walk->graph->edge[e][1] == rows[i].visit)
                free = later(free, *received(walk, true, e, rows[i].microbatch));
        }
        if (rows[i].phase == SCHEDULE_FORWARD) break;
    }
    return free;
}

/* Receives messages that are sent and have a place; whether there was one. */
static bool receive(const Walk *walk, int stage, int index) {
    const ScheduleRow *row = &walk->schedule->rows[stage][index];
    bool backward = row->phase == SCHEDULE_BACKWARD, any = false;
    for (int e = 0; row->phase != SCHEDULE_WGRAD && e < walk->graph->edge_count; e++) {
        const int *edge = walk->graph->edge[e];
        if (edge[!backward] != row->visit || *received(walk, backward, e, row->microbatch) >= 0)
            continue;
        double sent = *ended(walk, (int)row->phase, edge[backward], row->microbatch);
        double before = row->microbatch ? *received(walk, backward, e, row->microbatch - 1) : 0;
        double end = later(later(sent, before), slot_free(walk, stage, index));
        *received(walk, backward, e, row->microbatch) = end;
        any |= end >= 0;
    }
    return any;
}

/* When a row may begin; -1: not yet. */
static double ready(const Walk *walk, int stage, int index) {
    const ScheduleRow *row = &walk->schedule->rows[stage][index];
    bool backward = row->phase == SCHEDULE_BACKWARD;
    double begin = later(walk->at[stage], slot_free(walk, stage, index));
    if (row->phase != SCHEDULE_FORWARD)
        begin = later(begin, *ended(walk, (int)row->phase - 1, row->visit, row->microbatch));
    if (row->microbatch)
        begin = later(begin, *ended(walk, (int)row->phase, row->visit, row->microbatch - 1));
    for (int e = 0; row->phase != SCHEDULE_WGRAD && e < walk->graph->edge_count; e++)
        if (walk->graph->edge[e][!backward] == row->visit)
            begin = later(begin, *received(walk, backward, e, row->microbatch));
    return begin;
}

static double *unknown(Arena *arena, int count) {
    double *list = arena_array(arena, double, count + 1);
    for (int i = 0; i < count; i++) list[i] = -1;
    return list;
}

/* The seconds that a table takes; -1 where it stands still. Times of rows are left in `walk`. */
static double walk_table(Walk *walk, Arena *arena, const StageGraph *graph,
                         const Schedule *schedule, int microbatches, const double *seconds) {
    int pairs = graph->visit_count * microbatches;
    double last = 0;
    *walk = (Walk){graph,
                   schedule,
                   seconds,
                   microbatches,
                   arena_array(arena, int, graph->stage_count),
                   arena_array(arena, double, graph->stage_count),
                   unknown(arena, 3 * pairs),
                   {unknown(arena, graph->edge_count * microbatches),
                    unknown(arena, graph->edge_count * microbatches)}};
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < graph->stage_count; s++) {
            for (int i = walk->next[s]; i < schedule->row_count[s]; i++)
                moved |= receive(walk, s, i);
            for (double begin; walk->next[s] < schedule->row_count[s] &&
                               (begin = ready(walk, s, walk->next[s])) >= 0;
                 moved = true) {
                const ScheduleRow *row = &schedule->rows[s][walk->next[s]++];
                walk->at[s] = begin + seconds[(int)row->phase * graph->stage_count + s];
                *ended(walk, (int)row->phase, row->visit, row->microbatch) = walk->at[s];
                last = walk->at[s] > last ? walk->at[s] : last;
            }
        }
    }
    for (int s = 0; s < graph->stage_count; s++)
        if (walk->next[s] < schedule->row_count[s]) return -1;
    return last;
}

/* The seconds of a table where every stage takes f, b and w. */
static double seconds_of(Arena *arena, const StageGraph *graph, const Schedule *schedule,
                         int microbatches, double f, double b, double w) {
    double *seconds = arena_array(arena, double, 3 * graph->stage_count);
    Walk walk;
    for (int s = 0; s < graph->stage_count; s++) {
        seconds[s] = f;
        seconds[graph->stage_count + s] = b;
        seconds[2 * graph->stage_count + s] = w;
    }
    return walk_table(&walk, arena, graph, schedule, microbatches, seconds);
}

/* ---- checks ---- */

static char *messages_of(Arena *arena, const StageGraph *graph, const Schedule *schedule,
                         int microbatches, bool *good) {
    char *messages;
    size_t size;
    FILE *out = open_memstream(&messages, &size);
    Diag *diag = diag_create(arena, out);
    *good = schedule_check(diag, (Position){"t", 1, 1}, graph, schedule, microbatches);
    fclose(out);
    char *kept = arena_string(arena, messages);
    free(messages);
    return kept;
}

static const Schedule *create(Arena *arena, ScheduleKind kind, const StageGraph *graph,
                              int microbatches) {
    bool good;
    const Schedule *schedule = schedule_create(arena, kind, graph, microbatches);
    const char *messages = messages_of(arena, graph, schedule, microbatches, &good);
    if (!good || *messages) fail_msg("%s", messages);
    return schedule;
}

/* No slot goes from one visit to another for one micro-batch. */
static void expect_moves(const Schedule *schedule) {
    for (int s = 0; s < schedule->stage_count; s++)
        for (int i = 0; i < schedule->row_count[s]; i++) {
            const ScheduleRow *row = &schedule->rows[s][i];
            int before = i - 1;
            while (before >= 0 && schedule->rows[s][before].slot != row->slot) before--;
            if (before >= 0 && schedule->rows[s][before].visit != row->visit)
                assert_int_not_equal(schedule->rows[s][before].microbatch, row->microbatch);
        }
}

static int min(int a, int b) { return a < b ? a : b; }

static void slots_are_closed_forms(void **state) {
    (void)state;
    for (int stages = 1; stages <= 8; stages++)
        for (int count = 1; count <= 20; count++)
            for (int times = 1; times <= 4; times++) {
                Arena *arena = arena_create();
                Graph chain;
                make_chain(&chain, stages, times, false, true);
                const Schedule *gpipe = create(arena, SCHEDULE_GPIPE, &chain.graph, count),
                               *f1b1 = create(arena, SCHEDULE_1F1B, &chain.graph, count);
                const Schedule *interleaved =
                    create(arena, SCHEDULE_INTERLEAVED, &chain.graph, count);
                const Schedule *zero_bubble =
                    create(arena, SCHEDULE_ZERO_BUBBLE, &chain.graph, count);
                for (int s = 0; s < stages; s++) {
                    assert_int_equal(gpipe->slot_count[s], count * times);
                    assert_int_equal(
                        interleaved->slot_count[s],
                        min(count * times, 2 * (stages - s - 1) + (times - 1) * stages + 1));
                    assert_int_equal(f1b1->slot_count[s], min(count * times, times * stages - s));
                    assert_int_equal(zero_bubble->slot_count[s],
                                     min(count * times, times * stages));
                }
                arena_destroy(arena);
            }
}

static void expect_seconds(double seconds, double expected, const char *what, int stages, int count,
                           int times) {
    if (seconds != expected)
        fail_msg("%s of %d stages, %d micro-batches, %d visits: %g s, not %g", what, stages, count,
                 times, seconds, expected);
}

static void times_are_closed_forms(void **state) {
    (void)state;
    static const double parts[][3] = {{1, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 2, 2},
                                      {1, 1, 0}, {2, 5, 3}, {1, 1, 3}};
    for (int stages = 1; stages <= 8; stages++)
        for (int count = 1; count <= 24; count++)
            for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
                double f = parts[p][0], b = parts[p][1], w = parts[p][2], t = f + b + w;
                Arena *arena = arena_create();
                Graph chain;
                make_chain(&chain, stages, 1, false, true);
                const Schedule *f1b1 = create(arena, SCHEDULE_1F1B, &chain.graph, count);
                const Schedule *zero_bubble =
                    create(arena, SCHEDULE_ZERO_BUBBLE, &chain.graph, count);
                const Schedule *gpipe = create(arena, SCHEDULE_GPIPE, &chain.graph, count);
                expect_seconds(seconds_of(arena, &chain.graph, f1b1, count, f, b + w, 0),
                               (count + stages - 1) * t, "1f1b", stages, count, 1);
                expect_seconds(seconds_of(arena, &chain.graph, f1b1, count, f, b, w),
                               count * t + (stages - 1) * (f + b), "1f1b", stages, count, 1);
                expect_seconds(seconds_of(arena, &chain.graph, gpipe, count, f, b + w, 0),
                               (count + stages - 1) * t, "gpipe", stages, count, 1);
                if (count >= stages)
                    expect_seconds(seconds_of(arena, &chain.graph, zero_bubble, count, f, b, w),
                                   count * t + (stages - 1) * (b + (f > w ? f - w : 0)),
                                   "zero_bubble", stages, count, 1);
                else
                    assert_true(seconds_of(arena, &chain.graph, zero_bubble, count, f, b, w) <=
                                (count + stages - 1) * t);
                arena_destroy(arena);
            }
}

static void times_of_visits_are_closed_forms(void **state) {
    (void)state;
    for (int stages = 1; stages <= 6; stages++)
        for (int times = 2; times <= 4; times++)
            for (int groups = 1; groups <= 4; groups++) {
                int count = stages * groups;
                Arena *arena = arena_create();
                Graph chain;
                make_chain(&chain, stages, times, false, true);
                const Schedule *table = create(arena, SCHEDULE_INTERLEAVED, &chain.graph, count);
                double t = 4 * times;
                expect_seconds(seconds_of(arena, &chain.graph, table, count, 1, 3, 0),
                               count * t + (stages - 1) * t / times, "interleaved", stages, count,
                               times);
                assert_true(seconds_of(arena, &chain.graph, table, count, 1, 2, 1) <=
                            count * t + (stages - 1) * t / times);
                arena_destroy(arena);
            }
}

/* A chain that goes to and fro: with enough micro-batches little is lost. */
static void times_of_folded_chains(void **state) {
    (void)state;
    for (int stages = 2; stages <= 6; stages++) {
        Arena *arena = arena_create();
        Graph chain;
        int count = 4 * stages;
        make_chain(&chain, stages, 2, true, true);
        double zero_bubble =
            seconds_of(arena, &chain.graph,
                       create(arena, SCHEDULE_ZERO_BUBBLE, &chain.graph, count), count, 1, 1, 1);
        double interleaved =
            seconds_of(arena, &chain.graph,
                       create(arena, SCHEDULE_INTERLEAVED, &chain.graph, count), count, 1, 1, 1);
        assert_true(zero_bubble <= 6 * count * 1.35);
        assert_true(interleaved <= 6 * count + 6 * (stages - 1));
        arena_destroy(arena);
    }
}

/* Unequal stages under 1f1b take the sum of t and M - 1 times the longest t at most, but for what
 * the least number of slots costs. */
static void unequal_stages(void **state) {
    (void)state;
    uint32_t seed = 7;
    double worst = 0;
    for (int round = 0; round < 2000; round++) {
        Arena *arena = arena_create();
        Graph chain;
        Walk walk;
        int stages = 2 + (int)draw(&seed, 7), count = 1 + (int)draw(&seed, 16);
        double seconds[3 * 8], sum = 0, longest = 0;
        make_chain(&chain, stages, 1, false, true);
        for (int s = 0; s < stages; s++) {
            double unit = 1 + draw(&seed, 4);
            seconds[s] = seconds[stages + s] = seconds[2 * stages + s] = unit;
            sum += 3 * unit;
            longest = 3 * unit > longest ? 3 * unit : longest;
        }
        double ratio =
            walk_table(&walk, arena, &chain.graph,
                       create(arena, SCHEDULE_1F1B, &chain.graph, count), count, seconds) /
            (sum + (count - 1) * longest);
        worst = ratio > worst ? ratio : worst;
        arena_destroy(arena);
    }
    print_message("unequal stages: at most %.3f of the sum of t and M - 1 times the longest t\n",
                  worst);
    assert_true(worst <= 1.0);
}

/* Two rows of a stage change places. */
static const Schedule *swapped(Arena *arena, const Schedule *schedule, int stage, int a, int b) {
    Schedule *copy = arena_copy(arena, schedule, sizeof *schedule);
    copy->rows =
        arena_copy(arena, schedule->rows, sizeof *schedule->rows * (size_t)schedule->stage_count);
    ScheduleRow *rows = copy->rows[stage] =
        arena_copy(arena, schedule->rows[stage], sizeof *rows * (size_t)schedule->row_count[stage]);
    ScheduleRow row = rows[a];
    rows[a] = rows[b];
    rows[b] = row;
    return copy;
}

/* The check and the walk agree on a table with swapped rows; what a walk cannot see is that rows
 * take a slot in use. */
static int check_swapped(const StageGraph *graph, const Schedule *schedule, int count,
                         uint32_t *seed) {
    Arena *arena = arena_create();
    double seconds[3 * 8] = {0};
    Walk walk;
    bool good;
    int stage = (int)draw(seed, (uint32_t)graph->stage_count), rows = schedule->row_count[stage];
    int a = (int)draw(seed, (uint32_t)rows), b = (int)draw(seed, (uint32_t)rows);
    const Schedule *other = swapped(arena, schedule, stage, a, b);
    const char *messages = messages_of(arena, graph, other, count, &good);
    if (good) assert_true(walk_table(&walk, arena, graph, other, count, seconds) >= 0);
    else
        assert_true(strstr(messages, "this schedule stands still") ||
                    strstr(messages, "from another visit of its micro-batch"));
    arena_destroy(arena);
    return !good;
}

static void random_tables_end(void **state) {
    (void)state;
    uint32_t seed = 1;
    int refused = 0;
    for (int round = 0; round < 3000; round++) {
        Arena *arena = arena_create();
        Graph graph;
        make_random(&graph, &seed);
        int count = 1 + (int)draw(&seed, 12);
        ScheduleKind kind = (ScheduleKind)draw(&seed, 4);
        const Schedule *schedule = create(arena, kind, &graph.graph, count);
        if (seconds_of(arena, &graph.graph, schedule, count, 1, 2, 1) < 0)
            fail_msg("%s of the random graph %d stands still", schedule_words[kind], round);
        expect_moves(schedule);
        refused += check_swapped(&graph.graph, schedule, count, &seed);
        arena_destroy(arena);
    }
    assert_true(refused > 1000);
}

/* ---- messages ---- */

static const Schedule *parse(Arena *arena, FILE *out, const char *text) {
    Diag *diag = diag_create(arena, out);
    diag_source(diag, "s.txt", text);
    Tokens tokens = tokens_of(arena, diag, (Position){"s.txt", 1, 1}, text);
    const Schedule *schedule = schedule_parse(&tokens);
    if (schedule && !tokens_end(&tokens)) tokens_unexpected(&tokens, "the end");
    return diag_errors(diag) ? NULL : schedule;
}

/* What reading a table, or checking it for two stages of two micro-batches, reports must begin with
 * `expected`. */
static void expect_message(const char *text, const char *expected) {
    Arena *arena = arena_create();
    Graph chain;
    char *messages;
    size_t size;
    FILE *out = open_memstream(&messages, &size);
    make_chain(&chain, 2, 1, false, true);
    const Schedule *schedule = parse(arena, out, text);
    if (schedule)
        assert_true(schedule_check(diag_create(arena, out), (Position){"s.txt", 1, 1}, &chain.graph,
                                   schedule, 2) == !*expected);
    fclose(out);
    if (*expected ? strncmp(messages, expected, strlen(expected)) : *messages != 0)
        fail_msg("%s\ngives\n%s\nand not\n%s", text, messages, expected);
    free(messages);
    arena_destroy(arena);
}

#define LAST "stage 1 slots 1: F1:0/0 B1:0 W1:0 F1:1/0 B1:1 W1:1"

static void tables_that_stand_still_are_refused(void **state) {
    (void)state;
    expect_message("stage 0 slots 2: F0:0/0 F0:1/1 B0:0 W0:0 B0:1 W0:1\n" LAST, "");
    expect_message("stage 0 slots 2: F0:0/0 B0:0 W0:0 F0:1/1 B0:1 W0:1\n" LAST, "");
    expect_message("stage 0 slots 2: F0:0/0 F0:1/1 B0:1 W0:0 B0:0 W0:1\n" LAST,
                   "s.txt:1:32: error: this schedule stands still: 3 rows wait for each other\n");
    expect_message("stage 0 slots 2: B0:0 F0:1/1 F0:0/0 W0:0 B0:1 W0:1\n" LAST,
                   "s.txt:1:18: error: this schedule stands still: ");
    expect_message("stage 0 slots 1: F0:0/0 B0:0 F0:1/0 W0:0 B0:1 W0:1\n" LAST,
                   "s.txt:1:30: error: this schedule stands still: 2 rows wait for each "
                   "other\ns.txt:1:30: note: stage 0: forward of visit 0, "
                   "micro-batch 1 "
                   "needs a slot that is free only behind weights of visit 0, micro-batch 0 (stage "
                   "0)\ns.txt:1:37: note: stage 0: weights of visit 0, "
                   "micro-batch 0 stands behind forward of visit 0, micro-batch 1 (stage 0)\n");
    expect_message("stage 0 slots 2: F0:0/0 F0:1/1 B0:0 W0:0 B0:1 W0:1\nstage 1 slots 2: F1:0/0 "
                   "F1:1/1 B1:1 W1:1 B1:0 W1:0",
                   "s.txt:2:");
    expect_message("stage 0 slots 2: F0:0/0 F0:1/1 B0:0 W0:0 B0:1 W0:1\nstage 1 slots 2: F1:1/1 "
                   "F1:0/0 B1:0 W1:0 B1:1 W1:1",
                   "s.txt:2:25: error: this schedule stands still: 2 rows wait for each "
                   "other\ns.txt:2:25: note: stage 1: forward of visit 1, "
                   "micro-batch 0 "
                   "stands behind forward of visit 1, micro-batch 1 (stage 1)\ns.txt:2:18: note: "
                   "stage 1: forward of visit 1, micro-batch 1 has to "
                   "follow forward of visit 1, micro-batch 0 (stage 1)\n");
}

static void slots_stay_with_a_visit(void **state) {
    (void)state;
    Arena *arena = arena_create();
    Graph graph;
    bool good;
    begin_graph(&graph, 1, 2, false);
    graph.stage_of[0] = graph.stage_of[1] = 0;
    const Schedule *schedule = parse(arena, stderr, "stage 0 slots 1: F0:0/0 F1:0/0");
    assert_non_null(strstr(messages_of(arena, &graph.graph, schedule, 1, &good),
                           "takes slot 0 from another visit of its micro-batch"));
    assert_false(good);
    assert_int_equal(create(arena, SCHEDULE_1F1B, &graph.graph, 1)->slot_count[0], 2);
    arena_destroy(arena);
}

static void tables_that_are_not_whole_are_refused(void **state) {
    (void)state;
    expect_message(LAST, "s.txt:1:7: error: stages stand in order: this is stage 0, not 1");
    expect_message("stage 0 slots 2: F0:0/0 F0:1/1 B0:0 W0:0 B0:1 W0:1",
                   "s.txt:1:1: error: this schedule has 1 stages, but the pipeline has 2");
    expect_message(
        "stage 0 slots 2: F0:0/0 F0:1/1 B0:0 W0:0 B0:1\n" LAST,
        "s.txt:1:18: error: stage 0 has 5 rows, but its parts for 2 micro-batches are 6");
    expect_message(
        "stage 0 slots 2: F0:0/0 F0:1/1 B0:0 B0:0 B0:1 W0:1\n" LAST,
        "s.txt:1:37: error: stage 0: backward of visit 0, micro-batch 0 stands here a second time");
    expect_message("stage 0 slots 2: F0:0/2 F0:1/1 B0:0 W0:0 B0:1 W0:1\n" LAST,
                   "s.txt:1:18: error: stage 0: forward of visit 0, micro-batch 0 has none of the "
                   "stage's 2 slots");
    expect_message("stage 0 slots 2: F0:0/0 F0:2/1 B0:0 W0:0 B0:2 W0:2\n" LAST,
                   "s.txt:1:25: error: stage 0: forward of visit 0, micro-batch 2 is none of the 2 "
                   "micro-batches");
    expect_message(
        "stage 0 slots 2: F1:0/0 F0:1/1 B0:1 W0:1\n" LAST,
        "s.txt:1:18: error: stage 0: forward of visit 1, micro-batch 0 is no visit of this stage");
    expect_message("stage 0 slots 2: F0:0 F0:1/1",
                   "s.txt:1:23: error: expected '/' and a slot behind the micro-batch, not 'F0'");
    expect_message("stage 0 slots 2: F0:0/0 B0:1",
                   "s.txt:1:25: error: the stage has no F0:1, so this has no slot");
    expect_message("stage 0 slots two: F0:0/0",
                   "s.txt:1:15: error: expected a number of slots, not 'two'");
    expect_message("stage 0 slots 2: F0:x/0", "s.txt:1:21: error: expected a micro-batch, not 'x'");
    expect_message("stage 0 slots 2: F0:0/0 G0:0", "s.txt:1:25: error: expected the end, not 'G0'");
}

static void print_and_parse_are_inverse(void **state) {
    (void)state;
    uint32_t seed = 3;
    for (int round = 0; round < 200; round++) {
        Arena *arena = arena_create();
        Graph graph;
        make_random(&graph, &seed);
        Text once = {.arena = arena}, twice = {.arena = arena};
        schedule_print(
            &once,
            create(arena, (ScheduleKind)draw(&seed, 4), &graph.graph, 1 + (int)draw(&seed, 9)),
            "  ");
        const Schedule *read = parse(arena, stderr, text_bytes(&once));
        assert_non_null(read);
        schedule_print(&twice, read, "  ");
        assert_string_equal(text_bytes(&once), text_bytes(&twice));
        arena_destroy(arena);
    }
}

/* ---- timelines ---- */

static void timelines_are_walks(void **state) {
    (void)state;
    uint32_t seed = 5;
    for (int round = 0; round < 500; round++) {
        Arena *arena = arena_create();
        Graph graph;
        Walk walk;
        double seconds[3 * 8], parts[3 * MOST_VISITS];
        make_random(&graph, &seed);
        int stages = graph.graph.stage_count, visits = graph.graph.visit_count,
            count = 1 + (int)draw(&seed, 9);
        const Schedule *schedule = create(arena, (ScheduleKind)draw(&seed, 4), &graph.graph, count);
        for (int i = 0; i < 3 * stages; i++) seconds[i] = 1 + draw(&seed, 5);
        for (int i = 0; i < 3 * visits; i++)
            parts[i] = seconds[i / visits * stages + graph.stage_of[i % visits]];
        double expected = walk_table(&walk, arena, &graph.graph, schedule, count, seconds);
        const Timeline *timeline =
            timeline_create(arena, &graph.graph, schedule, &(TimelineCosts){parts, {NULL, NULL}});
        assert_true(timeline->seconds == expected);
        for (int s = 0; s < stages; s++)
            for (int i = 0; i < schedule->row_count[s]; i++) {
                const ScheduleRow *row = &schedule->rows[s][i];
                assert_true(timeline->rows[s][i].end ==
                            *ended(&walk, (int)row->phase, row->visit, row->microbatch));
            }
        arena_destroy(arena);
    }
}

/* Transfers of x seconds under gpipe: a chain's forward parts and backward parts each begin later
 * by x a stage. */
static void transfers_take_time(void **state) {
    (void)state;
    Arena *arena = arena_create();
    Graph chain;
    int stages = 4, count = 6;
    double parts[12], forward[] = {3, 3, 3}, backward[] = {5, 5, 5};
    make_chain(&chain, stages, 1, false, true);
    for (int i = 0; i < 12; i++) parts[i] = i < 4 ? 7 : i < 8 ? 9 : 0;
    const Timeline *timeline =
        timeline_create(arena, &chain.graph, create(arena, SCHEDULE_GPIPE, &chain.graph, count),
                        &(TimelineCosts){parts, {forward, backward}});
    assert_true(timeline->seconds == (count + stages - 1) * 16 + (stages - 1) * 8);
    assert_true(timeline->busy[2] == count * 16);
    assert_int_equal(timeline->transfer_count, 2 * 3 * count);
    assert_true(timeline->transfers[count].edge == 1 &&
                timeline->transfers[count].span.begin == 17 &&
                timeline->transfers[count].span.end == 20);
    arena_destroy(arena);
}

/* ---- size ---- */

static void large_tables_are_fast(void **state) {
    (void)state;
    Arena *arena = arena_create();
    Graph chain;
    make_chain(&chain, 64, 1, false, true);
    for (ScheduleKind kind = SCHEDULE_GPIPE; kind <= SCHEDULE_ZERO_BUBBLE; kind++) {
        clock_t begin = clock();
        const Schedule *schedule = schedule_create(arena, kind, &chain.graph, 512);
        double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        print_message("%s of 64 stages, 512 micro-batches: %.1f ms\n", schedule_words[kind],
                      1000 * seconds);
        assert_int_equal(schedule->row_count[0], 3 * 512);
        assert_true(seconds < 1);
    }
    arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_closed_forms),
        cmocka_unit_test(times_are_closed_forms),
        cmocka_unit_test(times_of_visits_are_closed_forms),
        cmocka_unit_test(times_of_folded_chains),
        cmocka_unit_test(unequal_stages),
        cmocka_unit_test(random_tables_end),
        cmocka_unit_test(tables_that_stand_still_are_refused),
        cmocka_unit_test(slots_stay_with_a_visit),
        cmocka_unit_test(tables_that_are_not_whole_are_refused),
        cmocka_unit_test(print_and_parse_are_inverse),
        cmocka_unit_test(timelines_are_walks),
        cmocka_unit_test(transfers_take_time),
        cmocka_unit_test(large_tables_are_fast),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
