/* Checks a strategy's devices: numbers named twice, gaps, and classes of the cluster file. */
#include "cluster/cluster.h"
#include "strategy/parser.h"

#include <stdlib.h>
#include <string.h>

static int highest(const int *devices, int count, int so_far) {
    for (int i = 0; i < count; i++) so_far = devices[i] > so_far ? devices[i] : so_far;
    return so_far;
}

int strategy_device_count(const Strategy *strategy) {
    int most = highest(strategy->idle.at, strategy->idle.count, -1);
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++) {
            const Stage *stage = &strategy->pipelines.at[p].stages.at[s];
            most = highest(stage->devices.at, stage->devices.count, most);
        }
    return most + 1;
}

/* ---- devices named twice or not at all ---- */

/* Sets claimed[device] to where a list names the device; reports devices that were named before. */
static void claim(Diag *diag, Position *claimed, const int *devices, const Position *at,
                  int count) {
    for (int i = 0; i < count; i++) {
        Position *first = &claimed[devices[i]];
        if (!first->line) {
            *first = at[i];
            continue;
        }
        diag_error(diag, at[i], "device %d is used twice", devices[i]);
        diag_note(diag, *first, "it is used here already");
    }
}

/* Reports device numbers below the highest that are neither in a stage nor idle. */
static void check_gaps(Diag *diag, const Strategy *strategy, const Position *claimed, int count) {
    int missing = 0, first = -1, last = -1;
    for (int device = 0; device < count; device++)
        if (!claimed[device].line) {
            missing++;
            last = device;
            first = first < 0 ? device : first;
        }
    Position at = strategy->at;
    if (missing == 1) {
        diag_error(diag, at, "device %d is in no stage of the strategy \"%s\", and not idle", first,
                   strategy->name);
        diag_note(diag, at, "if that is meant, add: idle devices(%d)", first);
    } else if (missing) {
        diag_error(
            diag, at,
            "%d devices between %d and %d are in no stage of the strategy \"%s\", and not idle",
            missing, first, last, strategy->name);
        diag_note(diag, at, "if that is meant, name them in: idle devices(...)");
    }
}

void strategy_check_devices(Diag *diag, const Strategy *strategy) {
    int count = strategy_device_count(strategy);
    Position *claimed = calloc((size_t)count + 1, sizeof *claimed);
    if (!claimed) BUG("no memory for %d devices", count);
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++) {
            const Stage *stage = &strategy->pipelines.at[p].stages.at[s];
            claim(diag, claimed, stage->devices.at, stage->device_at.at, stage->devices.count);
        }
    claim(diag, claimed, strategy->idle.at, strategy->idle_at.at, strategy->idle.count);
    check_gaps(diag, strategy, claimed, count);
    free(claimed);
}

static bool has_class(const char *const *classes, int count) {
    for (int i = 0; i < count; i++)
        if (classes[i]) return true;
    return false;
}

bool strategy_has_classes(const Strategy *strategy) {
    bool has = has_class(strategy->idle_class.at, strategy->idle_class.count);
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++)
            has |= has_class(strategy->pipelines.at[p].stages.at[s].device_class.at,
                             strategy->pipelines.at[p].stages.at[s].device_class.count);
    return has;
}

typedef struct Resolver {
    Diag *diag;
    const Cluster *cluster;
    const char *file;
} Resolver;

/* Reports that the class has no device `number`, but `count` in all, or none. Returns false. */
static bool not_found(const Resolver *resolver, const char *class, int number, int count,
                      Position at) {
    enum { MOST = 64 };
    const char *names[MOST];
    int known = 0;
    for (int i = 0; i < resolver->cluster->device_count && known < MOST; i++)
        names[known++] =
            resolver->cluster->devices[i].class ? resolver->cluster->devices[i].class->name : NULL;
    if (count) {
        diag_error(resolver->diag, at,
                   "the cluster has no device %d of the class \"%s\": %s lists %d, from 0", number,
                   class, resolver->file, count);
    } else {
        diag_error(resolver->diag, at,
                   "the cluster has no devices of a class \"%s\": %s lists none", class,
                   resolver->file);
        diag_suggest(resolver->diag, at, class, names, known);
    }
    return false;
}

/* Replaces *device, a number within *class, by a device number, *class by NULL; false: error. */
static bool resolve(const Resolver *resolver, int *device, const char **class, Position at) {
    int count = 0;
    for (int i = 0; *class && i < resolver->cluster->device_count; i++) {
        const DeviceClass *own = resolver->cluster->devices[i].class;
        if (!own || strcmp(own->name, *class) || count++ != *device) continue;
        *device = i;
        *class = NULL;
    }
    return !*class || not_found(resolver, *class, *device, count, at);
}

/* Resolves a list of devices. Returns false at the first one that is not found. */
static bool resolve_list(const Resolver *resolver, int *devices, const char **classes,
                         const Position *at, int count) {
    for (int i = 0; i < count; i++) {
        if (classes[i] && !resolver->cluster) {
            diag_error(resolver->diag, at[i],
                       "the class of devices \"%s\" is known only with a cluster file", classes[i]);
            diag_note(resolver->diag, at[i],
                      "name it with --cluster=FILE, or list the devices by number alone");
            return false;
        }
        if (!resolve(resolver, &devices[i], &classes[i], at[i])) return false;
    }
    return true;
}

bool strategy_resolve(Diag *diag, Strategy *strategy, const Cluster *cluster, const char *file) {
    Resolver resolver = {diag, cluster, file};
    int before = diag_errors(diag);
    if (!strategy_has_classes(strategy)) return true;
    bool good = true;
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++) {
            Stage *stage = &strategy->pipelines.at[p].stages.at[s];
            good &= resolve_list(&resolver, stage->devices.at, stage->device_class.at,
                                 stage->device_at.at, stage->devices.count);
        }
    good &= resolve_list(&resolver, strategy->idle.at, strategy->idle_class.at,
                         strategy->idle_at.at, strategy->idle.count);
    if (good) strategy_check_devices(diag, strategy);
    return diag_errors(diag) == before;
}
