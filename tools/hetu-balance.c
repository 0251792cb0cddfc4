/* hetu-balance: plans a strategy around straggling devices.
 *
 *     hetu-balance MODEL.c --strategy=S --rates=1,1,4,1 [--now=NAME] [--base=NAME]
 *         [--model=FUNCTION] [--name=NAME] [--links=HOST:HOST:BANDWIDTH,...] [-o FILE]
 *
 * Reads the model as hetucc does, and accepts hetucc's options, too. Rate d is the time of device d
 * divided by the time of a healthy device of its class. With --links, links between the cluster
 * file's hosts carry so many bytes a second: steps are simulated, and hetucc --plan searches for a
 * strategy, too. Prints the best strategy as lines of a word and values. Writes a new strategy to
 * FILE, or after these lines:
 *
 *     strategy NAME new       new, or known: the program has this strategy already
 *     now UNITS               time of a step under --now, or else under the first strategy
 *     then UNITS              time of a step under the printed strategy
 *     moves BYTES SECONDS     bytes and seconds of a switch to the printed strategy
 *     work DEVICE A B         computing of a healthy device under --base (default: the first
 *                             strategy) and under the printed strategy
 *
 * An error is a line, or a diagnostic with its place. The exit status is 1, or 2 after a mistake in
 * the command line. */
#include "planner/rebalance/rebalance.h"
#include "cluster/cluster.h"
#include "driver/object_sections.h"
#include "planner/simulate/simulate.h"
#include "support/tool.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Request {
    const char *rates, *now, *base, *model, *name, *links;
    Array(double) list;
    Array(char *) rest; // options for hetucc
} Request;

_Noreturn static void refuse(const char *word, const char *why) {
    tool_misused("%s: %s", word, why);
}

static void print_help(void) {
    printf("Usage: hetu-balance MODEL.c --strategy=S --rates=R,R,... [OPTION...]\n"
           "Plans a strategy for devices some of which have become slow.\n\n"
           "      --rates=R,R,...   How many times as long each device takes as a healthy one of "
           "its class\n"
           "      --now=NAME        The strategy in force; the first if not given\n"
           "      --base=NAME       The one that is for healthy devices; the first if not given\n"
           "      --model=FUNCTION  Of several that are trained; the first if not given\n"
           "      --name=NAME       What a new strategy is called; balanced if not given\n"
           "      --links=A:B:N,... Links of hosts A and B carry N bytes a second\n"
           "  -o  FILE              Where a new strategy goes; behind the answer if not given\n"
           "Other options are hetucc's.\n");
    exit(fflush(stdout) ? 1 : 0);
}

static void read_rates(Arena *arena, Request *request) {
    const char *at = request->rates;
    if (!at)
        refuse("--rates", "missing: how many times as long each device takes, separated by commas");
    for (char *end; *at; at = *end ? end + 1 : end) {
        double rate = strtod(at, &end);
        if (end == at || (*end && *end != ',') || (*end && !end[1]))
            refuse("--rates", arena_format(arena, "\"%s\" is no number", at));
        if (!(rate > 0) || isinf(rate))
            refuse("--rates",
                   arena_format(arena, "rate %d is %g; it is above 0", request->list.count, rate));
        array_push(arena, &request->list, rate);
    }
}

static Request read_words(Arena *arena, int argc, char **argv) {
    Request request = {.name = "balanced"};
    static const char *const names[] = {"--rates", "--now",   "--base", "--model",
                                        "--name",  "--links", NULL};
    const char **values[] = {&request.rates, &request.now,  &request.base,
                             &request.model, &request.name, &request.links};
    tool_own_options(names);
    array_push(arena, &request.rest, argv[0]);
    for (int i = 1; i < argc; i++) {
        const char *value = NULL;
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "--usage")) print_help();
        for (int o = 0; names[o] && !value; o++)
            if ((value = tool_value(names[o], argv, &i))) *values[o] = value;
        if (!value) array_push(arena, &request.rest, argv[i]);
    }
    array_push(arena, &request.rest, NULL);
    return request;
}

/* Collects the selected model's training modules, one for each strategy; returns their number. */
static int find_modules(const Driver *driver, const Request *request, Module **modules) {
    int count = 0;
    for (int m = 0; m < driver->modules.count; m++) {
        Module *module = driver->modules.at[m];
        const char *model = request->model ? request->model
                            : count        ? modules[0]->name
                                           : module->name;
        if (module->kind == MODULE_TRAIN && module->strategy && !strcmp(module->name, model))
            modules[count++] = module;
    }
    return count;
}

/* The state of balance_plan's questions. */
typedef struct Asking {
    const Driver *driver;
    const Module *module;   // a module of the model that is trained
    const char *name;       // name of a new strategy
    const Cluster *cluster; // with the links of --links
} Asking;

/* Compiles the model under a strategy's text, with all passes. Prints no diagnostics. Returns false
 * on errors, also where values do not fit the devices' memory. */
static bool compile(Driver *own, Options *options, const char *name, const char *text) {
    const char *path = temporary(&own->tools, arena_format(own->arena, "%s.strategy", name));
    FILE *file = fopen(path, "w"), *nowhere = fopen("/dev/null", "w");
    bool good = nowhere && file && fputs(text, file) >= 0;
    good = (!file || !fclose(file)) && good;
    memset(&options->strategies, 0, sizeof options->strategies);
    array_push(own->arena, &options->strategies, arena_format(own->arena, "%s:%s", path, name));
    own->diag = diag_create(own->arena, nowhere ? nowhere : stderr);
    good = good && sections_read(own) && !diag_errors(own->diag);
    if (nowhere) fclose(nowhere);
    return good;
}

/* Returns the module of the trained model after all passes under a strategy; NULL: hetucc refuses
 * the strategy. */
static Module *module_under(const Asking *asking, const char *name, const char *text) {
    const Driver *driver = asking->driver;
    Options options = *driver->options;
    options.stop_after = NULL;
    Driver own = {.arena = driver->arena, .options = &options, .tools = driver->tools};
    if (!compile(&own, &options, name, text)) return NULL;
    for (int m = 0; m < own.modules.count; m++)
        if (own.modules.at[m]->kind == MODULE_TRAIN &&
            !strcmp(own.modules.at[m]->name, asking->module->name))
            return own.modules.at[m];
    return NULL;
}

static const char *text_of(Arena *arena, const Strategy *strategy) {
    Text text = {.arena = arena};
    strategy_print(&text, strategy, "");
    return text_bytes(&text);
}

/* Returns whether the model compiles under a strategy. */
static bool accepts(void *state, const Strategy *strategy) {
    const Asking *asking = state;
    return module_under(asking, strategy->name, text_of(asking->driver->arena, strategy));
}

/* ---- links that carry less ---- */

/* Returns the slowness of devices as changes at the beginning of a simulation. */
static Changes slowness(Arena *arena, const double *rates, int count) {
    Array(Change) list = {0};
    for (int d = 0; d < count; d++)
        if (rates[d] != 1)
            array_push(arena, &list,
                       (Change){.computing = true,
                                .rate = 1 / rates[d],
                                .kind = -1,
                                .device_count = 1,
                                .devices = arena_copy(arena, &d, sizeof d)});
    return (Changes){list.count, list.at};
}

/* Returns the simulated seconds of a step under a strategy; NAN: there are none. The program is the
 * one for the cluster file's links; the links of --links carry its messages. */
static double seconds(void *state, const Strategy *strategy, const double *rates) {
    const Asking *asking = state;
    Arena *arena = asking->driver->arena;
    Module *module = module_under(asking, strategy->name, text_of(arena, strategy));
    if (!module) return NAN;
    Changes changes = slowness(arena, rates, strategy_device_count(module->strategy));
    module->devices->target.cluster = asking->cluster;
    SimulatedSteps *steps = steps_simulate(arena, module, &(SimulateOptions){1, &changes, false});
    return steps->error ? NAN : steps->seconds[0];
}

/* Returns whether all models are of one source, which `hetucc --plan` requires. */
static bool of_one_source(const Driver *driver) {
    for (int m = 1; m < driver->modules.count; m++)
        if (strcmp(driver->modules.at[m]->source->file, driver->modules.at[0]->source->file) != 0)
            return false;
    return true;
}

/* Returns the strategy that `hetucc --plan` finds for the links of --links; NULL: none. */
static const Strategy *search(void *state) {
    const Asking *asking = state;
    const Driver *driver = asking->driver;
    Options options = *driver->options;
    Text text = {.arena = driver->arena};
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere || !of_one_source(driver)) return NULL;
    options.stop_after = NULL;
    memset(&options.strategies, 0, sizeof options.strategies);
    Driver own = {.arena = driver->arena,
                  .diag = diag_create(driver->arena, nowhere),
                  .options = &options,
                  .tools = driver->tools};
    bool found = plan_find(&own, asking->cluster, asking->name, &text);
    fclose(nowhere);
    Module *module = found ? module_under(asking, asking->name, text_bytes(&text)) : NULL;
    return module ? module->strategy : NULL;
}

/* Returns the link that a part A:B:N of --links describes. */
static LoweredLink read_link(Arena *arena, const Cluster *cluster, const char *part) {
    LoweredLink link;
    const char *at = part;
    for (int end = 0; end < 2; end++) {
        size_t length = strcspn(at, ":");
        const char *name = arena_substring(arena, at, length);
        if (!at[length])
            refuse("--links", arena_format(arena, "\"%s\" is no HOST:HOST:BANDWIDTH", part));
        link.host[end] = cluster_host_number(cluster, name);
        if (link.host[end] < 0)
            refuse("--links", arena_format(arena, "the cluster file has no host \"%s\"", name));
        at += length + 1;
    }
    char *end;
    link.bandwidth = strtod(at, &end);
    if (end == at || *end || !(link.bandwidth > 0) || isinf(link.bandwidth))
        refuse("--links",
               arena_format(arena, "the bandwidth of \"%s\" is no number above 0", part));
    if (link.host[0] == link.host[1])
        refuse("--links", arena_format(arena, "\"%s\" joins a host to itself", part));
    return link;
}

/* Returns the cluster of a module with the links of --links. */
static const Cluster *lowered_of(Arena *arena, const Module *module, const char *word) {
    const Cluster *cluster = module->devices->target.cluster;
    Array(LoweredLink) list = {0};
    if (!cluster) refuse("--links", "links are those of a cluster file: give --cluster=FILE, too");
    for (const char *at = word; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        array_push(arena, &list,
                   read_link(arena, cluster, arena_substring(arena, at, strcspn(at, ","))));
    return cluster_lowered(arena, cluster, list.at, list.count);
}

static bool write_answer(Driver *driver, const BalanceAnswer *answer) {
    Text text = {.arena = driver->arena};
    if (answer->made) strategy_print(&text, answer->strategy, "");
    if (answer->made && driver->options->output &&
        !output_text(&driver->tools, driver->options->output, text_bytes(&text)))
        return false;
    printf("strategy %s %s\nnow %.9g\nthen %.9g\nmoves %.0f %.6g\n", answer->strategy->name,
           answer->made ? "new" : "known", answer->now, answer->then, answer->bytes,
           answer->seconds);
    for (int d = 0; d < answer->device_count; d++)
        printf("work %d %.9g %.9g\n", d, answer->first[d], answer->work[d]);
    if (answer->made && !driver->options->output) fputs(text_bytes(&text), stdout);
    if (!fflush(stdout)) return true;
    complain("cannot write to standard output: %s", strerror(errno));
    return false;
}

static bool plan(Driver *driver, const Request *request) {
    Module **modules = arena_array(driver->arena, Module *, driver->modules.count);
    int count = find_modules(driver, request, modules);
    if (!count) {
        complain("%s under a strategy",
                 request->model ? arena_format(driver->arena, "no source trains %s", request->model)
                                : "none of the sources trains a model");
        return false;
    }
    const char *first = modules[0]->strategy->name;
    Asking asking = {.driver = driver, .module = modules[0], .name = request->name};
    if (request->links) asking.cluster = lowered_of(driver->arena, modules[0], request->links);
    BalanceRequest asked = {.rate_count = request->list.count,
                            .rates = request->list.at,
                            .now = request->now ? request->now : first,
                            .base = request->base ? request->base : first,
                            .name = request->name,
                            .accepts = accepts,
                            .seconds = request->links ? seconds : NULL,
                            .search = search,
                            .state = &asking};
    BalanceAnswer *answer = balance_plan(driver->arena, modules, count, &asked);
    if (answer->error) complain("%s", answer->error);
    return !answer->error && write_answer(driver, answer);
}

int main(int argc, char **argv) {
    Arena *arena = arena_create();
    tool_begin("hetu-balance", argc, argv);
    Request request = read_words(arena, argc, argv);
    Options options;
    options_read(arena, &options, request.rest.count - 1, request.rest.at);
    read_rates(arena, &request);
    options_refuse(&options, "hetu-balance writes a strategy",
                   "-c --init --plan --memory --strategies --emit --report --known --stop-after");
    if (!options.cc.input_count) refuse("MODEL.c", "there is no source");
    options.stop_after = "specialize"; // devices' work is known after this pass
    Driver driver = {.arena = arena, .diag = diag_create(arena, stderr), .options = &options};
    toolchain_open(&driver.tools, arena, options.dry_run);
    bool good = sections_read(&driver) && plan(&driver, &request);
    diag_finish(driver.diag);
    outputs_close();
    arena_destroy(arena);
    return good ? 0 : 1;
}
