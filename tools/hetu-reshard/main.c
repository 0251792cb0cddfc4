/* hetu-reshard 'f32[8,12]: [0-3]{0:4} -> [0-3]{1:4}'
 *
 * Prints the plan of a conversion, as a table or as JSON; under mpirun with --fill and --dump, runs
 * it. Several cases on the command line are converted by one plan. Options:
 *
 *     --time            under mpirun: prints measured and predicted times
 *     --measure         writes a cluster file of the ranks
 *     --batch           each line of a file is a case; lines that are empty or begin with # or !
 *                       are skipped; cases run one after another
 *     --together        with --batch: one plan for all cases
 *
 * With several cases, case n (from 0) uses the subfolder n of --fill and of --dump. */
#include "timing.h"

#include "cost/cost.h"
#include "support/reading.h"
#include "support/tool.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef Array(Case *) Cases;

typedef struct Options {
    Arena *arena;
    Array(const char *) texts;
    const char *fill, *dump, *cluster, *batch, *measure;
    bool json, together, time;
} Options;

static const struct argp_option option_list[] = {
    {"json", 'j', 0, 0, "Print the plan as JSON", 0},
    {"cluster", 'c', "FILE", 0, "Price the plan for the cluster that FILE describes", 0},
    {"fill", 'f', "DIR", 0, "Run the case: DIR/DEVICE.bin has what each device of the source holds",
     0},
    {"dump", 'd', "DIR", 0, "Write what the devices of the target hold, and the traffic, to DIR",
     0},
    {"batch", 'b', "FILE", 0, "Run every case of FILE, in subfolders 0, 1, ... of both folders", 0},
    {"time", 'T', 0, 0,
     "Run each case many times, and print the seconds predicted, those measured, and the case", 0},
    {"measure", 'm', "FILE", 0,
     "Measure the links of the ranks under mpirun, and write a cluster file", 0},
    {"together", 't', 0, 0, "Convert all cases of the batch together, by one plan", 0},
    {0},
};

static void check_options(const Options *options) {
    if (options->measure && !options->texts.count && !options->batch && !options->fill &&
        !options->dump && !options->together && !options->json && !options->time &&
        !options->cluster)
        return;
    if (!options->texts.count == !options->batch || options->measure)
        tool_misused("give a case, such as 'f32[8,12]: [0-3]{0:4} -> [0-3]{1:4}', or --batch, "
                     "or --measure alone");
    if (options->together && !options->batch)
        tool_misused(
            "--together needs --batch; several cases on the command line are converted together");
    if (!options->fill != !options->dump) tool_misused("--fill and --dump belong together");
    if (options->batch && !options->fill && !options->together && !options->time)
        tool_misused("--batch needs --fill and --dump, or --together, or --time");
}

static error_t take_option(int key, char *value, struct argp_state *state) {
    Options *options = state->input;
    switch (key) {
    case 'j': options->json = true; return 0;
    case 'c': options->cluster = value; return 0;
    case 'f': options->fill = value; return 0;
    case 'd': options->dump = value; return 0;
    case 'b': options->batch = value; return 0;
    case 't': options->together = true; return 0;
    case 'T': options->time = true; return 0;
    case 'm': options->measure = value; return 0;
    case ARGP_KEY_ARG: array_push(options->arena, &options->texts, value); return 0;
    case ARGP_KEY_END: check_options(options); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- reading ---- */

static void add_case(Arena *arena, Diag *diag, Position at, const char *text, Cases *cases) {
    Case *conversion = case_read(arena, diag, at, text);
    if (conversion) array_push(arena, cases, conversion);
}

/* Reads the case of one line of a batch, if it has one; cuts the line at '#'. */
static void read_line(Arena *arena, Diag *diag, Position at, char *line, Cases *cases) {
    line[strcspn(line, "#\n")] = 0;
    size_t blank = strspn(line, " \t");
    at.column += (int)blank;
    if (line[blank] && line[blank] != '!')
        add_case(arena, diag, at, arena_string(arena, line + blank), cases);
}

static void read_batch(Arena *arena, Diag *diag, const char *path, Cases *cases) {
    enum { MOST = 1 << 28 };
    InputText text = reading_text(arena, READ_PIPES, path, MOST);
    if (!text.bytes) {
        diag_error(diag, (Position){0}, "cannot open %s: %s", path, text.why);
        return;
    }
    Position at = {path, 1, 1};
    char *rest = arena_string(arena, text.bytes);
    for (char *line; (line = strsep(&rest, "\n")); at.line++)
        read_line(arena, diag, at, line, cases);
    if (!cases->count && !diag_errors(diag))
        diag_error(diag, (Position){path, 1, 1}, "the file has no case");
}

/* Replaces line ends by blanks, so that a caret can point at every position. */
static char *one_line(Arena *arena, const char *text) {
    char *line = arena_string(arena, text);
    for (char *c = line; (c = strpbrk(c, "\r\n"));) *c = ' ';
    return line;
}

/* Reads the cases of the command line; messages call them "case", or "case 0" and so on. */
static void read_texts(const Options *options, Diag *diag, Cases *cases) {
    for (int i = 0; i < options->texts.count; i++) {
        const char *name =
            options->texts.count == 1 ? "case" : arena_format(options->arena, "case %d", i);
        const char *text = one_line(options->arena, options->texts.at[i]);
        diag_source(diag, name, text);
        add_case(options->arena, diag, (Position){name, 1, 1}, text, cases);
    }
}

/* ---- running ---- */

static void check_ranks(const Set *set, int ranks) {
    int needed = set->plan->devices[set->plan->device_count - 1] + 1;
    if (needed > ranks)
        ht_fail("%s needs %d ranks: mpirun -np %d hetu-reshard ...", set->label, needed, needed);
}

/* Returns the folders of case `number`: the folders --fill and --dump when there is only one case,
 * else their subfolders `number`. */
static Folders folders_of(const Options *options, Arena *arena, int number) {
    if (!options->batch && options->texts.count == 1)
        return (Folders){options->fill, options->dump};
    return (Folders){arena_format(arena, "%s/%d", options->fill, number),
                     arena_format(arena, "%s/%d", options->dump, number)};
}

/* Runs the cases one after another, each by its own plan. */
static void run_each(const Options *options, const Cases *cases, const Cluster *cluster, int rank,
                     int ranks) {
    for (int i = 0; i < cases->count; i++) {
        Arena *arena = arena_create();
        Set set = set_plan(arena, &cases->at[i], 1, cluster);
        Folders folders = folders_of(options, arena, i);
        check_ranks(&set, ranks);
        run_set(&set, rank, &folders, folders.dump);
        arena_destroy(arena);
    }
}

static void run_together(const Options *options, const Set *set, int rank, int ranks) {
    Folders *folders = arena_array(options->arena, Folders, set->count);
    for (int i = 0; i < set->count; i++) folders[i] = folders_of(options, options->arena, i);
    check_ranks(set, ranks);
    run_set(set, rank, folders, options->dump);
}

/* Prints the plan; fails when standard output cannot be written. */
static void show(const Options *options, const Set *set) {
    (options->json ? report_json : report_table)(stdout, set);
    if (fflush(stdout) || ferror(stdout))
        ht_fail("cannot write to standard output: %s", strerror(errno));
}

/* Predicts and measures the seconds of a case. */
static void time_case(Case *conversion, const Cluster *cluster, int ranks, double *predicted,
                      double *measured) {
    const double budget = 0.04;
    Arena *arena = arena_create();
    Set set = set_plan(arena, &conversion, 1, cluster);
    check_ranks(&set, ranks);
    *predicted = conversion_seconds(cluster, set.plan);
    *measured = time_set(&set, budget);
    arena_destroy(arena);
}

/* Times the cases one after another, in several rounds, and prints their minima over the rounds,
 * since disturbances of the machine last a while. */
static void time_each(const Options *options, const Cases *cases, const Cluster *cluster, int rank,
                      int ranks) {
    enum { PASSES = 3 };
    double predicted, measured, *shortest = arena_array(options->arena, double, cases->count);
    pin_rank();
    quiet_begin(options->arena, cluster);
    for (int pass = 0; pass < PASSES; pass++)
        for (int i = 0; i < cases->count; i++) {
            quiet_wait();
            time_case(cases->at[i], cluster, ranks, &predicted, &measured);
            shortest[i] = !pass || measured < shortest[i] ? measured : shortest[i];
            if (!rank && pass == PASSES - 1)
                printf("%.3e\t%.3e\t%s\n", predicted, shortest[i], cases->at[i]->text);
        }
}

static void run_or_show(const Options *options, const Cases *cases, const Cluster *cluster,
                        int rank, int ranks) {
    if (options->measure) {
        measure_cluster(options->measure, INFINITY);
        return;
    }
    if (options->time) {
        time_each(options, cases, cluster, rank, ranks);
        return;
    }
    if (options->batch && !options->together) {
        run_each(options, cases, cluster, rank, ranks);
        return;
    }
    Set set = set_plan(options->arena, cases->at, cases->count, cluster);
    if (options->fill) run_together(options, &set, rank, ranks);
    else show(options, &set);
}

int main(int argc, char **argv) {
    Options options = {.arena = arena_create()};
    const struct argp parser = {option_list,
                                take_option,
                                "CASE...",
                                "Plans, shows and runs conversions between layouts of tensors.",
                                0,
                                0,
                                0};
    tool_begin("hetu-reshard", argc, argv);
    tool_parse(&parser, argc, argv, 0, &options);
    Diag *diag = diag_create(options.arena, stderr);
    Cases cases = {0};
    const Cluster *cluster = NULL;
    read_texts(&options, diag, &cases);
    if (options.batch) read_batch(options.arena, diag, options.batch, &cases);
    if (options.cluster) cluster = cluster_read(options.arena, diag, options.cluster);
    for (int i = 0; i < cases.count && cluster; i++) case_on_cluster(diag, cases.at[i], cluster);
    for (int i = 0; i < cases.count; i++) case_plannable(diag, cases.at[i]);
    diag_finish(diag);
    if (diag_errors(diag)) return 1;
    bool running = options.fill || options.time || options.measure;
    int rank = 0, ranks = 1;
    if (running) run_open(&argc, &argv, &rank, &ranks);
    run_or_show(&options, &cases, cluster, rank, ranks);
    if (running) run_close();
    arena_destroy(options.arena);
    return 0;
}
