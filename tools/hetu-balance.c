/* hetu-balance: plans a strategy around straggling devices.
 *
 *     hetu-balance MODEL.c --strategy=S --rates=1,1,4,1 [--now=NAME] [--base=NAME]
 *         [--model=FUNCTION] [--name=NAME] [-o FILE]
 *
 * Reads the model as hetucc does, and accepts hetucc's options, too. Rate d is the time of device d
 * divided by the time of a healthy device of its class. Prints the best strategy as lines of a word
 * and values. Writes a new strategy to FILE, or after these lines:
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
#include "driver/object_sections.h"
#include "support/tool.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Request {
    const char *rates, *now, *base, *model, *name;
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
    static const char *const names[] = {"--rates", "--now", "--base", "--model", "--name", NULL};
    const char **values[] = {&request.rates, &request.now, &request.base, &request.model,
                             &request.name};
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

/* Returns whether the model compiles under a strategy: all passes succeed and, with a cluster, its
 * values fit the devices' memory. Prints no diagnostics. */
static bool accepts(void *state, const Strategy *strategy) {
    const Driver *driver = state;
    Options options = *driver->options;
    options.stop_after = NULL;
    Driver own = {.arena = driver->arena, .options = &options, .tools = driver->tools};
    Text text = {.arena = driver->arena};
    const char *path =
        temporary(&own.tools, arena_format(driver->arena, "%s.strategy", strategy->name));
    FILE *file = fopen(path, "w"), *nowhere = fopen("/dev/null", "w");
    strategy_print(&text, strategy, "");
    bool good = nowhere && file && fputs(text_bytes(&text), file) >= 0;
    good = (!file || !fclose(file)) && good;
    memset(&options.strategies, 0, sizeof options.strategies);
    array_push(driver->arena, &options.strategies,
               arena_format(driver->arena, "%s:%s", path, strategy->name));
    own.diag = diag_create(driver->arena, nowhere ? nowhere : stderr);
    good = good && sections_read(&own) && !diag_errors(own.diag);
    if (nowhere) fclose(nowhere);
    return good;
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
    BalanceRequest asked = {request->list.count,
                            request->list.at,
                            request->now ? request->now : first,
                            request->base ? request->base : first,
                            request->name,
                            accepts,
                            driver};
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
