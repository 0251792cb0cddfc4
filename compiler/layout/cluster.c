#include "layout/cluster.h"

#include "support/array.h"

#include <jansson.h>
#include <string.h>

/* Processes of one machine that exchange through its memory. */
static const Link machine = {2e-6, 5e9};

int cluster_host(const Cluster *cluster, int device)
{
    return cluster && device < cluster->device_count ? cluster->devices[device].host : 0;
}

Link cluster_link(const Cluster *cluster, int a, int b)
{
    if (!cluster)
        return machine;
    return cluster_host(cluster, a) == cluster_host(cluster, b) ? cluster->local : cluster->remote;
}

typedef Array(const char *) Names;

/* What reading a file needs. */
typedef struct Reader {
    Arena *arena;
    Diag *diag;
    Position at;
    bool failed;
} Reader;

#define FAIL(reader, ...)                                                                                                                  \
    do {                                                                                                                                   \
        diag_error((reader)->diag, (reader)->at, __VA_ARGS__);                                                                             \
        (reader)->failed = true;                                                                                                           \
    } while (0)

static double read_number(Reader *reader, const json_t *object, const char *key, const char *owner)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_number(value) && json_number_value(value) > 0)
        return json_number_value(value);
    FAIL(reader, "%s needs a positive number \"%s\"", owner, key);
    return 1;
}

static Link read_link(Reader *reader, const json_t *links, const char *name)
{
    const json_t *link = json_object_get(links, name);
    const char *owner = arena_format(reader->arena, "the link class \"%s\"", name);
    if (!json_is_object(link)) {
        FAIL(reader, "\"links\" needs an object \"%s\"", name);
        return machine;
    }
    return (Link){read_number(reader, link, "latency", owner), read_number(reader, link, "bandwidth", owner)};
}

/* The number of a host, by its name. */
static int host_number(Arena *arena, const char *name, Names *names)
{
    for (int i = 0; i < names->count; i++)
        if (!strcmp(names->at[i], name))
            return i;
    array_push(arena, names, name);
    return names->count - 1;
}

static int64_t class_memory(Reader *reader, const json_t *classes, const char *name)
{
    const json_t *class = json_object_get(classes, name);
    if (!json_is_object(class))
        FAIL(reader, "\"classes\" has no object \"%s\"", name);
    return json_integer_value(json_object_get(class, "memory"));
}

static void read_devices(Reader *reader, const json_t *top, Cluster *cluster)
{
    enum { MOST = 1 << 20 };
    const json_t *list = json_object_get(top, "devices"), *entry;
    Names hosts = {0};
    Array(ClusterDevice) devices = {0};
    size_t index;
    if (!json_is_array(list))
        FAIL(reader, "the cluster needs a list \"devices\"");
    json_array_foreach(list, index, entry)
    {
        const char *class = json_string_value(json_object_get(entry, "class")), *host = json_string_value(json_object_get(entry, "host"));
        const json_t *count = json_object_get(entry, "count");
        if (!class || !host || (count && (!json_is_integer(count) || json_integer_value(count) < 1 || json_integer_value(count) > MOST))) {
            FAIL(reader, "entry %zu of \"devices\" needs strings \"class\" and \"host\", and a count from 1 to %d if any", index, MOST);
            continue;
        }
        class = arena_string(reader->arena, class);
        ClusterDevice device = {class, host_number(reader->arena, arena_string(reader->arena, host), &hosts), class_memory(reader, json_object_get(top, "classes"), class)};
        for (json_int_t i = 0; i < (count ? json_integer_value(count) : 1); i++)
            array_push(reader->arena, &devices, device);
    }
    cluster->devices = devices.at;
    cluster->device_count = devices.count;
}

const Cluster *cluster_read(Arena *arena, Diag *diag, const char *path)
{
    Reader reader = {.arena = arena, .diag = diag, .at = {arena_string(arena, path), 1, 1}};
    json_error_t error;
    json_t *top = json_load_file(path, 0, &error);
    if (!top) {
        if (error.line > 0)
            reader.at = (Position){reader.at.file, error.line, error.column > 0 ? error.column : 1};
        else
            reader.at = (Position){0};
        diag_error(diag, reader.at, "%s: %s", path, error.text);
        return NULL;
    }
    Cluster *cluster = arena_new(arena, Cluster);
    const json_t *links = json_object_get(top, "links");
    cluster->local = read_link(&reader, links, "local");
    cluster->remote = read_link(&reader, links, "remote");
    read_devices(&reader, top, cluster);
    json_decref(top);
    return reader.failed ? NULL : cluster;
}
