/* A lower bound of a step's time, of P pipelines of L layers each with B micro-batches in all.
 *
 * In a time T a pipeline whose slowest stage takes o, its bottleneck, finishes at most
 * 1 + (T - sum y l) / o micro-batches. A group of rate y has at most floor(o / y) layers. A linear
 * program asks how many micro-batches all pipelines finish in T at most: z_k pipelines have a
 * bottleneck in interval k, [low_k, high_k]; their groups of rate y have l_yk layers, at most
 * most_yk <= floor(high_k / y) in each group,
 *
 *     maximise sum_k (z_k + (T z_k - sum_y y l_yk) / low_k)
 *     where sum_y l_yk = L z_k, sum_k z_k = P, sum_k l_yk / most_yk <= groups of rate y.
 *
 * The devices of a node are sorted by rate. A path from the fastest to the slowest cuts them into
 * groups; the paths of all nodes are a flow in the program. Sorting the devices before they are cut
 * leaves no group slower. Where the program finishes fewer than B micro-batches, no plan takes T. A
 * second program demands whole numbers of pipelines and groups. Bottlenecks are multiples of rates;
 * where there are few of these, every interval is a single bottleneck. */
#include "planner/kinds/malleus/malleus.h"

#include "planner/kinds/malleus/problem.h"
#include "planner/kinds/linear_program.h"
#include "support/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 3000, TURNS = 12, WHOLE_TURNS = 7 };

/* Groups of one size and rate. */
typedef struct DeviceKind {
    int size;
    double rate;
    int row; // row of the program: the number of groups of this kind
} DeviceKind;

/* Bottlenecks from low to high. */
typedef struct Interval {
    double low, high;
} Interval;

typedef struct Bound {
    Arena *arena;
    const Malleus *malleus;
    Array(DeviceKind) kinds;
    Array(Interval) intervals;
    double least_rate; // rate y of the fastest group
    double speed;      // sum over all nodes of the largest sum of 1 / y of their groups
    int pipelines;     // row of the program being written: the number of pipelines
} Bound;

/* ---- groups and bottlenecks ---- */

/* Returns the number of the kind that a group is of; adds the kind when it is new. */
static int find_kind(Bound *bound, int size, double rate) {
    for (int i = 0; i < bound->kinds.count; i++)
        if (bound->kinds.at[i].size == size && bound->kinds.at[i].rate == rate) return i;
    array_push(bound->arena, &bound->kinds, (DeviceKind){size, rate, 0});
    return bound->kinds.count - 1;
}

/* Returns the largest sum of 1 / y of a node's groups; adds their kinds, lowers least_rate. */
static double node_speed(Bound *bound, int node) {
    const Malleus *malleus = bound->malleus;
    double *most = arena_array(bound->arena, double, malleus->per_node + 1);
    for (int end = 1; end <= malleus->per_node; end++)
        for (int size = 0; size < malleus->sizes; size++) {
            int first = end - (malleus->tp >> size);
            if (first < 0) continue;
            double rate = malleus_rate(malleus, node, first, size);
            find_kind(bound, size, rate);
            bound->least_rate = fmin(bound->least_rate, rate);
            most[end] = fmax(most[end], most[first] + 1 / rate);
        }
    return most[malleus->per_node];
}

/* Lists the bottlenecks that can occur: multiples of a rate that are at least L layers over the
 * speed of all devices. If there are many, neighbours share an interval. */
static void list_intervals(Bound *bound) {
    const Malleus *malleus = bound->malleus;
    Array(double) values = {0};
    for (int i = 0; i < bound->kinds.count; i++)
        for (int layers = 1; layers <= malleus->layers; layers++)
            if (bound->kinds.at[i].rate * layers >= malleus->layers / bound->speed * (1 - 1e-9))
                array_push(bound->arena, &values, bound->kinds.at[i].rate * layers);
    qsort(values.at, (size_t)values.count, sizeof(double), compare_doubles);
    double ratio = 1;
    for (bool again = true; again; ratio = 1.002 * ratio) {
        bound->intervals.count = 0;
        for (int i = 0; i < values.count; i++) {
            Interval *last =
                bound->intervals.count ? &bound->intervals.at[bound->intervals.count - 1] : NULL;
            if (last && values.at[i] <= last->low * ratio * (1 + 1e-12)) last->high = values.at[i];
            else
                array_push(bound->arena, &bound->intervals, (Interval){values.at[i], values.at[i]});
        }
        again = bound->intervals.count > 1 &&
                bound->intervals.count * bound->kinds.count > MOST_COLUMNS;
    }
}

/* ---- the linear or integer program ---- */

/* Returns how many nodes have the rates of a node; 0 when an earlier node has them, too. */
static int count_like(const Malleus *malleus, int node) {
    size_t size = sizeof(double) * (size_t)malleus->per_node;
    int count = 0;
    for (int other = 0; other < malleus->node_count; other++) {
        bool like = !memcmp(malleus->nodes[node].rates, malleus->nodes[other].rates, size);
        if (like && other < node) return 0;
        count += like;
    }
    return count;
}

/* Adds to the program how `count` nodes with the same rates are cut into groups. A group is an edge
 * of a flow, from its first device to the device after its last one. */
static void add_nodes(Bound *bound, Program *program, int node, int count, bool integers) {
    const Malleus *malleus = bound->malleus;
    int *rows = arena_array(bound->arena, int, malleus->per_node + 1);
    for (int at = 0; at <= malleus->per_node; at++) {
        int source = at == 0 ? count : at == malleus->per_node ? -count : 0;
        rows[at] = program_row(program, source, source);
    }
    for (int size = 0; size < malleus->sizes; size++)
        for (int first = 0; first + (malleus->tp >> size) <= malleus->per_node; first++) {
            int column = program_column(program, 0, count, 0, integers);
            program_entry(program, rows[first], column, 1);
            program_entry(program, rows[first + (malleus->tp >> size)], column, -1);
            program_entry(
                program,
                bound->kinds.at[find_kind(bound, size, malleus_rate(malleus, node, first, size))]
                    .row,
                column, -1);
        }
}

/* Returns a group's most layers under a bottleneck, at the stage position that holds the most. */
static int most_layers(const Malleus *malleus, const DeviceKind *kind, double bottleneck) {
    int most = 0;
    for (int count = 1; count <= malleus->most_stages; count++)
        most = malleus_holds_somewhere(malleus, count, kind->size) > most
                   ? malleus_holds_somewhere(malleus, count, kind->size)
                   : most;
    return (int)fmin(most, floor(bottleneck / kind->rate * (1 + 1e-12)));
}

/* Adds an interval's columns: the pipelines with a bottleneck in it, and layers of groups. */
static void add_interval(Bound *bound, Program *program, const Interval *interval, double time,
                         bool integers) {
    const Malleus *malleus = bound->malleus;
    int row = program_row(program, 0, 0), stages = program_row(program, -INFINITY, 0);
    int column =
        program_column(program, 0, malleus->pipelines, -(1 + time / interval->low), integers);
    program_entry(program, row, column, -malleus->layers);
    program_entry(program, stages, column, -malleus->most_stages);
    program_entry(program, bound->pipelines, column, 1);
    for (int i = 0; i < bound->kinds.count; i++) {
        const DeviceKind *kind = &bound->kinds.at[i];
        int most = most_layers(malleus, kind, interval->high);
        if (most < 1) continue;
        int layers = program_column(program, 0, INFINITY, kind->rate / interval->low, false);
        program_entry(program, row, layers, 1);
        program_entry(program, stages, layers, 1.0 / most);
        program_entry(program, kind->row, layers, 1.0 / most);
    }
}

/* Returns a linear (or integer) program whose cost is minus the most micro-batches in `time`. */
static Program *write_program(Bound *bound, double time, bool integers) {
    Program *program = program_create();
    bound->pipelines = program_row(program, bound->malleus->pipelines, bound->malleus->pipelines);
    for (int i = 0; i < bound->kinds.count; i++)
        bound->kinds.at[i].row = program_row(program, -INFINITY, 0);
    for (int node = 0; node < bound->malleus->node_count; node++)
        if (count_like(bound->malleus, node))
            add_nodes(bound, program, node, count_like(bound->malleus, node), integers);
    for (int i = 0; i < bound->intervals.count; i++)
        add_interval(bound, program, &bound->intervals.at[i], time, integers);
    return program;
}

/* Returns whether the program proves that a time is too short for all micro-batches. */
static bool is_too_short(Bound *bound, double time, bool integers) {
    const double seconds = 1, slack = 1e-7;
    Program *program = write_program(bound, time, integers);
    double needed = bound->malleus->microbatches * (1 - slack);
    bool solved = program_relax(program);
    bool short_of = solved ? -program_bound(program) < needed : program_is_impossible(program);
    if (solved && !short_of && integers) {
        program_integers(program, seconds, 1e-6);
        short_of = -program_bound(program) < needed;
    }
    program_destroy(program);
    return short_of;
}

/* Returns the longest time from `low` to `high` that is proven to be too short, by bisection. */
static double longest_short(Bound *bound, double low, double high, bool integers) {
    for (int turn = 0; turn < (integers ? WHOLE_TURNS : TURNS); turn++) {
        double middle = 0.5 * (low + high);
        *(is_too_short(bound, middle, integers) ? &low : &high) = middle;
    }
    return low;
}

/* ---- the bound and its proof ---- */

/* Returns the bound by the sum of all speeds. The sum of a pipeline's stages is at least L y of the
 * fastest group, and m micro-batches take (m - 1) o more: (T - L y) sum 1 / y >= L (B - P). */
static double simple_bound(const Bound *bound) {
    const Malleus *malleus = bound->malleus;
    return malleus->layers *
           (bound->least_rate + (malleus->microbatches - malleus->pipelines) / bound->speed);
}

json_t *malleus_certify(Arena *arena, Field input, Budget *budget) {
    const Malleus *malleus = malleus_read(arena, input);
    Bound bound = {.arena = arena, .malleus = malleus, .least_rate = INFINITY};
    (void)budget;
    if (!malleus) return NULL;
    for (int node = 0; node < malleus->node_count; node++) bound.speed += node_speed(&bound, node);
    list_intervals(&bound);
    double simple = simple_bound(&bound),
           relaxed = longest_short(&bound, simple, 1.3 * simple, false);
    double whole = longest_short(&bound, relaxed, 1.05 * relaxed, true);
    json_t *proof =
        json_pack("{s:f,s:f,s:f,s:f,s:f,s:i}", "fastest_rate", bound.least_rate, "sum_of_speeds",
                  bound.speed, "by_speeds", simple, "by_linear_program", relaxed,
                  "by_integer_program", whole, "intervals", bound.intervals.count);
    return json_pack("{s:f,s:o}", "bound", whole, "proof", proof);
}
