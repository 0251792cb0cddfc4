/* hetucc --plan: finds the models, and writes the strategy that planner/search/search.h finds. */
#include "driver/compile.h"

#include "driver/object_sections.h"

#include "cluster/cluster.h"
#include "ir/module.h"
#include "planner/search/search.h"
#include "support/tool.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* ---- checks of options and the cluster file ---- */

static void check_options(const Options *options) {
    if (!options->plan.find)
        tool_misused("--memory says how much --plan may use: without --plan it means nothing");
    if (!options->cluster)
        tool_misused(
            "--plan needs a cluster to plan for: --cluster=FILE; hetu-profile measures one");
    options_refuse(options, "--plan finds a strategy and writes it",
                   "--strategy -c --emit --report --known --resume --print-after --stop-after");
}

/* Checks that the cluster file lists devices and that each has a class; false after a message. */
static bool check_cluster(const Driver *driver, const Cluster *cluster) {
    if (cluster && !cluster->device_count)
        complain("%s: devices: there are none to plan for", driver->options->cluster);
    for (int d = 0; cluster && d < cluster->device_count; d++)
        if (!cluster->devices[d].class) {
            complain("%s: devices: device %d has no class, which would say how fast it is",
                     driver->options->cluster, d);
            return false;
        }
    return cluster && cluster->device_count;
}

/* The source or object whose models get a strategy. */
typedef struct Planned {
    Driver *driver;              // with the options that the source is compiled with
    const char *source, *called; // the source; its name in messages, which may be its object's
    bool failed;
} Planned;

static bool has_models(Driver *driver, const char *source) {
    FrontendOptions options = frontend_options(driver, source, NULL);
    Frontend *frontend = frontend_open(driver->arena, driver->diag, &options);
    bool models = frontend && frontend_has_models(frontend);
    if (frontend) frontend_close(frontend);
    return models;
}

/* Sets *found to a source or object if it has models; reports an error if another one has, too. */
static void take(Planned *found, Driver *driver, const char *source, const char *called) {
    bool models = !found->failed && has_models(driver, source);
    found->failed |= diag_errors(driver->diag) > 0;
    if (models && found->source) {
        complain("%s and %s have models, and --plan plans one at a time", found->called, called);
        found->failed = true;
    } else if (models) {
        *found = (Planned){driver, source, called, found->failed};
    }
}

/* Calls take() for the source that each object or archive member keeps. */
static void take_objects(Planned *found, Driver *driver) {
    const PortionList *parts = found->failed ? NULL : driver_sections(driver);
    found->failed |= !parts;
    for (int i = 0; parts && i < parts->count; i++) {
        const Portion *part = parts->at[i];
        Driver *own = part->object ? section_driver(driver, part) : NULL;
        if (own) take(found, own, part->front.file, part->object);
    }
}

/* Returns the one source or object that has models; after an error message, `source` is NULL. */
static Planned find_models(Driver *driver) {
    const Options *options = driver->options;
    Planned found = {0};
    for (int i = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        if (item->kind == ITEM_SOURCE &&
            (options->cc.source_count == 1 || source_is_ours(driver, item->text)))
            take(&found, driver, item->text, item->text);
    }
    take_objects(&found, driver);
    if (!found.source && !found.failed)
        complain("nothing that --plan is given trains or runs a model");
    return found.failed ? (Planned){0} : found;
}

/* Returns a file's name as a strategy name: _ for all but letters, digits; plan_ before a digit. */
static const char *strategy_name(Driver *driver, const char *path) {
    char *name = arena_string(driver->arena, name_with(driver->arena, path, ""));
    for (char *c = name; *c; c++) *c = isalnum((unsigned char)*c) ? *c : '_';
    return *name && !isdigit((unsigned char)*name) ? name
                                                   : arena_format(driver->arena, "plan_%s", name);
}

static int write_plan(Driver *driver, const char *path, const Text *strategy, const Text *reason) {
    bool standard = !strcmp(path, "-");
    if (!standard && !output_text(&driver->tools, path, text_bytes(strategy))) return 1;
    if (standard) diag_text(driver->diag, text_bytes(reason));
    if (fputs(text_bytes(standard ? strategy : reason), stdout) < 0 || fflush(stdout)) {
        complain("cannot write to standard output: %s", strerror(errno));
        return 1;
    }
    return 0;
}

/* Returns the path of -o, else one named like the source: "train.strategy" for "src/train.c". */
static const char *plan_path(const Driver *driver, const Planned *planned) {
    const char *slash = strrchr(planned->source, '/');
    const char *source = planned->driver != driver && slash ? slash + 1 : planned->source;
    return driver->options->output ? driver->options->output
                                   : name_with(driver->arena, source, ".strategy");
}

/* Searches for the strategy of a source's models on a cluster; false after errors. */
static bool search_for(const Planned *planned, const Cluster *cluster, int64_t memory,
                       const char *name, Text *strategy, Text *reason) {
    const Driver *driver = planned->driver;
    FrontendOptions frontend = frontend_options(planned->driver, planned->source, cluster);
    if (!sections_give(planned->driver, &frontend)) return false;
    SearchOptions search = {.frontend = &frontend,
                            .target = compile_target(driver->options, cluster),
                            .compile = compile_options(driver->options),
                            .no_fuse = driver->options->passes.no_fuse,
                            .memory = memory,
                            .name = name};
    return search_plan(driver->arena, driver->diag, &search, strategy, reason);
}

bool plan_find(Driver *driver, const Cluster *cluster, const char *name, Text *strategy) {
    Text reason = {.arena = driver->arena};
    Planned planned = find_models(driver);
    return planned.source && search_for(&planned, cluster, 0, name, strategy, &reason);
}

int plan_make(Driver *driver) {
    const Options *options = driver->options;
    check_options(options);
    const Cluster *cluster = cluster_read_strict(driver->arena, driver->diag, options->cluster);
    Planned planned = check_cluster(driver, cluster) ? find_models(driver) : (Planned){0};
    if (!planned.source) return 1;
    const char *path = plan_path(driver, &planned);
    if (strcmp(path, "-") != 0) check_output(options, path);
    Text strategy = {.arena = driver->arena}, reason = {.arena = driver->arena};
    if (!search_for(&planned, cluster, options->plan.memory, strategy_name(driver, path), &strategy,
                    &reason))
        return 1;
    return write_plan(driver, path, &strategy, &reason);
}
