#include "driver/plan.h"

#include "driver/parts.h"

#include "cluster/cluster.h"
#include "search/search.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* ---- what does not go with it ---- */

static bool check_options(const Options *options)
{
    const struct {
        bool given;
        const char *word;
    } others[] = {{options->strategies.count, "--strategy"},
                  {options->compile_only, "-c"},
                  {options->emit != EMIT_EXE, "--emit"},
                  {options->report, "--report"},
                  {options->known, "--known"},
                  {options->resume, "--resume"},
                  {options->print_after, "--print-after"},
                  {options->stop_after, "--stop-after"}};
    if (!options->plan)
        complain("--memory says how much --plan may use: without --plan it means nothing");
    else if (!options->cluster)
        complain("--plan needs a cluster to plan for: --cluster=FILE; hetu-profile measures one");
    for (size_t i = 0; i < sizeof others / sizeof *others && options->plan && options->cluster; i++)
        if (others[i].given) {
            complain("--plan finds a strategy and writes it: leave out %s", others[i].word);
            return false;
        }
    return options->plan && options->cluster;
}

/* Whether the cluster file lists devices. */
static bool check_cluster(const Driver *driver, const Cluster *cluster)
{
    if (cluster && !cluster->device_count)
        complain("%s: devices: there are none to plan for", driver->options->cluster);
    for (int d = 0; cluster && d < cluster->device_count; d++)
        if (!cluster->devices[d].class) {
            complain("%s: devices: device %d has no class, which would say how fast it is", driver->options->cluster, d);
            return false;
        }
    return cluster && cluster->device_count;
}

/* The one source with models; NULL, after a message, where there is none, or several. */
static const char *find_source(Driver *driver)
{
    const char *found = NULL;
    const int sources = driver->options->source_count;
    for (int i = 0; i < driver->options->items.count; i++) {
        const Item *item = &driver->options->items.at[i];
        if (item->kind != ITEM_SOURCE)
            continue;
        if (sources == 1)
            return item->text;
        FrontendOptions options = frontend_options(driver, item->text, NULL);
        Frontend *frontend = source_is_ours(driver, item->text) ? frontend_open(driver->arena, driver->diag, &options) : NULL;
        if (diag_errors(driver->diag))
            return NULL;
        bool trains = frontend && frontend_has_models(frontend);
        if (frontend)
            frontend_close(frontend);
        if (trains && found) {
            complain("%s and %s have models, and --plan plans one source at a time", found, item->text);
            return NULL;
        }
        found = trains ? item->text : found;
    }
    if (!found)
        complain("none of the sources trains or runs a model");
    return found;
}

/* ---- writing ---- */

/* What the strategy is called: as its file, as far as that is a name. */
static const char *strategy_name(Driver *driver, const char *path)
{
    char *name = arena_string(driver->arena, name_with(driver->arena, path, ""));
    for (char *c = name; *c; c++)
        *c = isalnum((unsigned char)*c) ? *c : '_';
    return *name && !isdigit((unsigned char)*name) ? name : arena_format(driver->arena, "plan_%s", name);
}

static int write_plan(Driver *driver, const char *path, const Text *strategy, const Text *reason)
{
    bool standard = !strcmp(path, "-");
    if (!standard && !output_text(&driver->tools, path, text_bytes(strategy)))
        return 1;
    if (standard)
        diag_text(driver->diag, text_bytes(reason));
    if (fputs(text_bytes(standard ? strategy : reason), stdout) < 0 || fflush(stdout)) {
        complain("cannot write to standard output: %s", strerror(errno));
        return 1;
    }
    return 0;
}

int plan_make(Driver *driver)
{
    const Options *options = driver->options;
    if (!check_options(options))
        return 1;
    const Cluster *cluster = cluster_read_strict(driver->arena, driver->diag, options->cluster);
    const char *source = check_cluster(driver, cluster) ? find_source(driver) : NULL;
    if (!source)
        return 1;
    const char *path = options->output ? options->output : name_with(driver->arena, source, ".strategy");
    if (strcmp(path, "-") && !check_output(options, path))
        return 1;
    FrontendOptions frontend = frontend_options(driver, source, cluster);
    if (!parts_give(driver, &frontend))
        return 1;
    SearchOptions search = {&frontend, compile_options(options, cluster), options->no_fuse, options->memory, strategy_name(driver, path)};
    Text strategy = {.arena = driver->arena}, reason = {.arena = driver->arena};
    if (!search_plan(driver->arena, driver->diag, &search, &strategy, &reason))
        return 1;
    return write_plan(driver, path, &strategy, &reason);
}
