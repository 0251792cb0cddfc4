/* Reads the events of a simulation: slow devices and links. */
#include "planner/simulate/changes.h"

#include "cluster/cluster.h"
#include "planner/kinds/input.h"
#include "support/array.h"

#include <string.h>

typedef struct Reader {
    Arena *arena;
    const Cluster *cluster;
} Reader;

typedef Array(int) DeviceList;

static DeviceList all_devices(const Reader *reader) {
    DeviceList list = {0};
    for (int d = 0; d < reader->cluster->device_count; d++) array_push(reader->arena, &list, d);
    return list;
}

static DeviceList class_devices(const Reader *reader, Field name) {
    DeviceList list = {0};
    const DeviceClass *class = cluster_class_named(reader->cluster, field_string(name));
    if (!class)
        field_refuse(name, "no device of the cluster is of the class \"%s\"", field_string(name));
    for (int d = 0; class && d < reader->cluster->device_count; d++)
        if (reader->cluster->devices[d].class == class) array_push(reader->arena, &list, d);
    return list;
}

static DeviceList host_devices(const Reader *reader, Field name) {
    DeviceList list = {0};
    int host = cluster_host_number(reader->cluster, field_string(name));
    if (host < 0) field_refuse(name, "the cluster has no host \"%s\"", field_string(name));
    for (int d = 0; d < reader->cluster->device_count; d++)
        if (reader->cluster->devices[d].host == host) array_push(reader->arena, &list, d);
    return list;
}

static DeviceList listed_devices(const Reader *reader, Field field) {
    DeviceList list = {0};
    int count = 0,
        *devices = field_integers(field, 1, 0, reader->cluster->device_count - 1, &count);
    for (int i = 0; i < count; i++) array_push(reader->arena, &list, devices[i]);
    return list;
}

/* Returns the devices of an event; all devices for an event of a link. */
static DeviceList event_devices(const Reader *reader, Field event) {
    static const char *const whose[] = {"devices", "class", "host", "link"};
    int given = 0;
    for (int i = 0; i < 4; i++) given += field_has(event, whose[i]);
    if (given != 1)
        field_refuse(event, "needs one of \"devices\", \"class\", \"host\" and \"link\"");
    return field_has(event, "devices") ? listed_devices(reader, field_get(event, "devices"))
           : field_has(event, "class") ? class_devices(reader, field_get(event, "class"))
           : field_has(event, "host")  ? host_devices(reader, field_get(event, "host"))
                                       : all_devices(reader);
}

/* Returns the kind of link that "local", "remote" or a pair of hosts names; others are errors. */
static int link_kind(const Reader *reader, Field link) {
    if (json_is_array(link.json)) {
        int kind = field_count(link, 2) == 2
                       ? cluster_link_between(reader->cluster, field_string(field_at(link, 0)),
                                              field_string(field_at(link, 1)))
                       : -1;
        if (kind < 0)
            field_refuse(link, "\"pairs\" of the cluster has no link between two such hosts");
        return kind;
    }
    const char *name = field_string(link);
    if (strcmp(name, "local") && strcmp(name, "remote"))
        field_refuse(link, "\"%s\" is not \"local\", \"remote\" or a list of two hosts", name);
    return strcmp(name, "remote") ? LINK_LOCAL : LINK_REMOTE;
}

static Change read_event(const Reader *reader, Field event) {
    static const char *const keys[] = {"at",   "devices",  "class",     "host",
                                       "link", "slowdown", "bandwidth", NULL};
    field_keys(event, keys);
    bool slower = field_has(event, "slowdown"), link = field_has(event, "link");
    if (slower == field_has(event, "bandwidth"))
        field_refuse(event, "needs one of \"slowdown\" and \"bandwidth\"");
    if (slower && link)
        field_refuse(field_get(event, "slowdown"), "of a link it is \"bandwidth\" that changes");
    DeviceList devices = event_devices(reader, event);
    Change change = {.at = field_number(field_get(event, "at"), 0),
                     .computing = slower,
                     .device_count = devices.count,
                     .devices = devices.at};
    change.rate = slower ? 1 / field_positive(field_get(event, "slowdown"))
                         : field_positive(field_get(event, "bandwidth"));
    change.kind = link ? link_kind(reader, field_get(event, "link")) : -1;
    return change;
}

/* Inserts a change after the last change that is not later. */
static void insert(Change *changes, int count, Change change) {
    for (; count && changes[count - 1].at > change.at; count--) changes[count] = changes[count - 1];
    changes[count] = change;
}

Changes changes_read(Arena *arena, const Cluster *cluster, const char *path, const char **error) {
    static const char *const keys[] = {"events", NULL};
    Reader reader = {arena, cluster};
    Field top = input_open(arena, path);
    Changes read = {0};
    if (!input_error(top)) {
        field_keys(top, keys);
        Field events = field_get(top, "events");
        int count = field_count(events, 0);
        Change *changes = arena_array(arena, Change, count + 1);
        for (int i = 0; i < count && !input_error(top); i++)
            insert(changes, i, read_event(&reader, field_at(events, i)));
        read = (Changes){count, changes};
    }
    *error = input_error(top) ? arena_string(arena, input_error(top)) : NULL;
    input_close(top);
    return read;
}

bool change_of_uplink(const Cluster *cluster, const Change *change, int uplink) {
    int found = 0;
    for (int i = 0; i < change->device_count; i++)
        for (int u = cluster->uplinks.first[change->devices[i]];
             u < cluster->uplinks.first[change->devices[i] + 1]; u++)
            found += cluster->uplinks.of_device[u] == uplink;
    return !change->computing && (change->kind < 0 || change->kind == LINK_REMOTE) &&
           found == cluster->uplinks.at[uplink].device_count;
}
