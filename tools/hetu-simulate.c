/* hetu-simulate: simulates the steps of a program on a cluster, event by event.
 *
 *     hetu-simulate MODEL.c --strategy=S --cluster=C.json [--events=E.json] [--steps=N]
 *         [--trace=OUT.json] [--report=OUT.html] [--json] [--each-device]
 *
 * Reads the model as hetucc does, with hetucc's options for it (-D, -I, --no-fuse, ...). Prints for
 * each model the seconds of a step and how its devices spend them. An error is a line, or a
 * diagnostic with its place. The exit status is 1, or 2 after a mistake in the command line. */
#include "driver/object_sections.h"
#include "planner/simulate/simulate.h"
#include "support/secure.h"
#include "support/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Request {
    const char *events, *trace, *page; // files of --events, --trace, --report; NULL: not given
    bool json, alone;                  // alone: --each-device
    int steps;
    Array(char *) rest; // options for hetucc
} Request;

_Noreturn static void refuse(const char *word, const char *why) {
    tool_misused("%s: %s", word, why);
}

static void print_help(void) {
    printf("Usage: hetu-simulate MODEL.c --strategy=S --cluster=C.json [OPTION...]\n"
           "Simulates steps of a program on a cluster: seconds, idle and exposed communication by "
           "device, memory.\n\n"
           "      --cluster=FILE    The cluster; hetu-profile measures one\n"
           "      --strategy=S      As hetucc's\n"
           "      --events=FILE     Devices that become slow, and links, at given times\n"
           "      --steps=N         So many steps, one after the other; 1\n"
           "      --each-device     Simulate every device, not one for all that do the same\n"
           "      --json            Print JSON\n"
           "      --trace=FILE      Write a trace of Chrome's format, as chrome://tracing and "
           "Perfetto read it\n"
           "      --report=FILE     Write the report's page, with the simulated times\n"
           "Other options are hetucc's.\n");
    exit(fflush(stdout) ? 1 : 0);
}

static int read_count(const char *text) {
    char *end;
    long count = strtol(text, &end, 10);
    if (*end || end == text || count < 1 || count > 100000)
        tool_misused("--steps=%s: a number of steps is 1 to 100000", text);
    return (int)count;
}

static Request read_words(Arena *arena, int argc, char **argv) {
    static const char *const names[] = {"--events", "--trace",       "--report", "--steps",
                                        "--json",   "--each-device", NULL};
    Request request = {.steps = 1};
    tool_own_options(names);
    array_push(arena, &request.rest, argv[0]);
    for (int i = 1; i < argc; i++) {
        const char *text;
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "--usage")) print_help();
        else if (!strcmp(argv[i], "--json")) request.json = true;
        else if (!strcmp(argv[i], "--each-device")) request.alone = true;
        else if (!strncmp(argv[i], "--json=", 7) || !strncmp(argv[i], "--each-device=", 14))
            tool_misused("the option %.*s takes no value", (int)strcspn(argv[i], "="), argv[i]);
        else if ((text = tool_value("--events", argv, &i))) request.events = text;
        else if ((text = tool_value("--trace", argv, &i))) request.trace = text;
        else if ((text = tool_value("--report", argv, &i))) request.page = text;
        else if ((text = tool_value("--steps", argv, &i))) request.steps = read_count(text);
        else array_push(arena, &request.rest, argv[i]);
    }
    array_push(arena, &request.rest, NULL);
    return request;
}

static bool write_file(const char *path, Text *text) {
    const char *why;
    bool good = secure_write(path, text_bytes(text), text->length, &why);
    if (!good) complain("cannot write %s: %s", path, why);
    return good;
}

typedef Array(SimulatedSteps *) StepsList;

/* Simulates all models; false after errors. */
static bool simulate_all(Driver *driver, const Request *request, StepsList *list) {
    const char *error = NULL;
    const Cluster *cluster = driver->modules.at[0]->devices->target.cluster;
    Changes changes = request->events
                          ? changes_read(driver->arena, cluster, request->events, &error)
                          : (Changes){0};
    SimulateOptions options = {request->steps, &changes, request->alone};
    for (int m = 0; !error && m < driver->modules.count; m++) {
        SimulatedSteps *steps = steps_simulate(driver->arena, driver->modules.at[m], &options);
        error = steps->error;
        array_push(driver->arena, list, steps);
    }
    if (error) complain("%s", error);
    return !error;
}

static bool write_all(const Driver *driver, const Request *request, const StepsList *list) {
    Text out = {.arena = driver->arena}, trace = {.arena = driver->arena},
         page = {.arena = driver->arena};
    if (request->json) steps_json(&out, list->at, list->count);
    for (int i = 0; !request->json && i < list->count; i++) steps_table(&out, list->at[i]);
    if (request->trace) steps_trace(&trace, list->at, list->count);
    if (request->page) steps_page(&page, list->at, list->count);
    if ((request->trace && !write_file(request->trace, &trace)) ||
        (request->page && !write_file(request->page, &page)))
        return false;
    if (fputs(text_bytes(&out), stdout) >= 0 && !fflush(stdout)) return true;
    complain("cannot write to standard output: %s", strerror(errno));
    return false;
}

/* Returns whether an option includes a file before the source (-include, -imacros); hetucc reads
 * that file and reports its errors. */
static bool reads_text(const Item *item) {
    return !strncmp(item->text, "-include", 8) || !strncmp(item->text, "-imacros", 8);
}

/* Returns whether the C compiler accepts its options; the C compiler reports unknown options.
 * Without this check, such options would be ignored, since hetu-simulate compiles nothing. */
static bool flags_known(const Driver *driver) {
    Command command = command_cc(&driver->tools);
    int flags = 0;
    for (int i = 0; i < driver->options->cc.items.count; i++) {
        const Item *item = &driver->options->cc.items.at[i];
        if (item->kind != ITEM_FLAG || reads_text(item)) continue;
        flags++;
        command_add(&command, item->text, item->value, NULL);
    }
    command_add(&command, "-fsyntax-only", "-x", "c", "/dev/null", NULL);
    return !flags || !command_run(&driver->tools, &command);
}

/* Reads the models of the sources; false after errors, or when there is no model. */
static bool read_sources(Driver *driver) {
    if (!sections_read(driver)) return false;
    if (!driver->modules.count) complain("none of the sources trains or runs a model");
    return driver->modules.count;
}

int main(int argc, char **argv) {
    Arena *arena = arena_create();
    tool_begin("hetu-simulate", argc, argv);
    Request request = read_words(arena, argc, argv);
    Options options;
    options_read(arena, &options, request.rest.count - 1, request.rest.at);
    options.strict = true;
    options_refuse(&options, "hetu-simulate writes no program",
                   "-o -c --init --plan --memory --strategies --emit --known --stop-after");
    if (!options.cluster)
        refuse("--cluster",
               "missing: without a cluster file nothing has a time; hetu-profile measures one");
    if (!options.cc.input_count) refuse("MODEL.c", "there is no source");
    Driver driver = {.arena = arena, .diag = diag_create(arena, stderr), .options = &options};
    toolchain_open(&driver.tools, arena, options.dry_run);
    StepsList list = {0};
    bool good = flags_known(&driver) && read_sources(&driver) &&
                simulate_all(&driver, &request, &list) && write_all(&driver, &request, &list);
    diag_finish(driver.diag);
    outputs_close();
    arena_destroy(arena);
    return good ? 0 : 1;
}
