#include "cluster/cluster.h"

#include "support/array.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
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

int cluster_missing(const Cluster *cluster, const Layout *layout)
{
    int missing = -1;
    for (int g = 0; cluster && g < layout->group_count; g++)
        for (int i = 0; i < layout->groups[g].device_count; i++) {
            int device = layout->groups[g].devices[i];
            if (device >= cluster->device_count && (missing < 0 || device < missing))
                missing = device;
        }
    return missing;
}

/* ---- reading ---- */

typedef Array(const char *) Names;

/* What reading a file needs. */
typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *file, *text;
    const json_t *classes;
    Names hosts;
    bool failed;
} Reader;

#define FAIL(reader, place, ...)                                                                                                           \
    do {                                                                                                                                   \
        diag_error((reader)->diag, position_of(reader, place), __VA_ARGS__);                                                               \
        (reader)->failed = true;                                                                                                           \
    } while (0)

/* ---- places in the text ---- */

/* Line and column of a place in the text; those of the text's begin where it is NULL. */
static Position position_of(const Reader *reader, const char *place)
{
    Position at = {reader->file, 1, 1};
    for (const char *c = reader->text; place && c < place; c++) {
        at.column = *c == '\n' ? 1 : at.column + 1;
        at.line += *c == '\n';
    }
    return at;
}

/* Where a string stands in the text from a place on, with its quotes; NULL: nowhere. */
static const char *find_quoted(const Reader *reader, const char *from, const char *word)
{
    return from ? strstr(from, arena_format(reader->arena, "\"%s\"", word)) : NULL;
}

/* Where entry `index` of the list behind a place begins: entries are objects, and braces in strings are passed over. */
static const char *find_entry(const char *from, size_t index)
{
    int depth = 0;
    bool quoted = false;
    for (const char *c = from; c && *c; c++) {
        if (*c == '"' && c[-1] != '\\')
            quoted = !quoted;
        else if (!quoted && *c == '{' && !depth++ && !index--)
            return c;
        else if (!quoted && *c == '}')
            depth--;
    }
    return from;
}

/* ---- parts of the file ---- */

static double read_number(Reader *reader, const json_t *object, const char *place, const char *key, const char *owner)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_number(value) && json_number_value(value) > 0)
        return json_number_value(value);
    FAIL(reader, value ? find_quoted(reader, place, key) : place, "%s needs a positive number \"%s\"", owner, key);
    return 1;
}

static Link read_link(Reader *reader, const json_t *links, const char *name)
{
    const json_t *link = json_object_get(links, name);
    const char *owner = arena_format(reader->arena, "the link class \"%s\"", name), *place = find_quoted(reader, reader->text, "links");
    if (!json_is_object(link)) {
        FAIL(reader, place, "\"links\" needs an object \"%s\"", name);
        return machine;
    }
    place = find_quoted(reader, place, name);
    return (Link){read_number(reader, link, place, "latency", owner), read_number(reader, link, place, "bandwidth", owner)};
}

/* The number of a host, by its name. */
static int host_number(Reader *reader, const char *name)
{
    for (int i = 0; i < reader->hosts.count; i++)
        if (!strcmp(reader->hosts.at[i], name))
            return i;
    array_push(reader->arena, &reader->hosts, arena_string(reader->arena, name));
    return reader->hosts.count - 1;
}

static int64_t class_memory(Reader *reader, const char *place, const char *name)
{
    const json_t *class = json_object_get(reader->classes, name), *memory = json_object_get(class, "memory");
    if (!json_is_object(class))
        FAIL(reader, find_quoted(reader, place, name), "\"classes\" has no object \"%s\"", name);
    else if (memory && (!json_is_integer(memory) || json_integer_value(memory) < 1))
        FAIL(reader, find_quoted(reader, find_quoted(reader, reader->text, name), "memory"),
             "the memory of \"%s\" is no positive number of bytes", name);
    return json_integer_value(memory);
}

/* How many devices an entry stands for; 0 after an error was reported. */
static json_int_t entry_count(Reader *reader, const json_t *entry, const char *place)
{
    enum { MOST = 1 << 20 };
    const json_t *count = json_object_get(entry, "count");
    if (!json_string_value(json_object_get(entry, "class")) || !json_string_value(json_object_get(entry, "host"))) {
        FAIL(reader, place, "an entry of \"devices\" needs strings \"class\" and \"host\"");
        return 0;
    }
    if (count && (!json_is_integer(count) || json_integer_value(count) < 1 || json_integer_value(count) > MOST)) {
        FAIL(reader, find_quoted(reader, place, "count"), "\"count\" is no number from 1 to %d", MOST);
        return 0;
    }
    return count ? json_integer_value(count) : 1;
}

static void read_devices(Reader *reader, const json_t *list, Cluster *cluster)
{
    const char *begin = find_quoted(reader, reader->text, "devices");
    Array(ClusterDevice) devices = {0};
    const json_t *entry;
    size_t index;
    if (!json_is_array(list) || !json_array_size(list))
        FAIL(reader, begin, "the cluster needs a list \"devices\" of one entry at least");
    json_array_foreach(list, index, entry)
    {
        const char *place = find_entry(begin, index);
        json_int_t count = entry_count(reader, entry, place);
        if (!count)
            continue;
        const char *class = arena_string(reader->arena, json_string_value(json_object_get(entry, "class")));
        int host = host_number(reader, json_string_value(json_object_get(entry, "host")));
        ClusterDevice device = {class, host, class_memory(reader, place, class)};
        for (json_int_t i = 0; i < count; i++)
            array_push(reader->arena, &devices, device);
    }
    cluster->devices = devices.at;
    cluster->device_count = devices.count;
}

static const Cluster *read_cluster(Reader *reader, const json_t *top)
{
    Cluster *cluster = arena_new(reader->arena, Cluster);
    const json_t *links = json_object_get(top, "links");
    reader->classes = json_object_get(top, "classes");
    cluster->local = read_link(reader, links, "local");
    cluster->remote = read_link(reader, links, "remote");
    read_devices(reader, json_object_get(top, "devices"), cluster);
    return reader->failed ? NULL : cluster;
}

/* The text of a file; NULL after an error was reported. */
static const char *read_text(Arena *arena, Diag *diag, const char *path)
{
    FILE *file = fopen(path, "r");
    enum { MOST_BYTES = 1 << 26 };
    Text text = {.arena = arena};
    char bytes[4096];
    size_t count;
    if (!file) {
        diag_error(diag, (Position){0}, "cannot open %s: %s", path, strerror(errno));
        return NULL;
    }
    while (text.length <= MOST_BYTES && (count = fread(bytes, 1, sizeof bytes, file)) > 0)
        text_append(&text, bytes, count);
    bool failed = ferror(file), large = text.length > MOST_BYTES;
    fclose(file);
    if (failed)
        diag_error(diag, (Position){0}, "cannot read %s: %s", path, strerror(errno));
    else if (large)
        diag_error(diag, (Position){0}, "cannot read %s: it has more than %d bytes", path, MOST_BYTES);
    return failed || large ? NULL : text_bytes(&text);
}

const Cluster *cluster_read(Arena *arena, Diag *diag, const char *path)
{
    Reader reader = {.arena = arena, .diag = diag, .file = arena_string(arena, path), .text = read_text(arena, diag, path)};
    json_error_t error;
    if (!reader.text)
        return NULL;
    json_t *top = json_loads(reader.text, 0, &error);
    if (!top) {
        diag_error(diag, (Position){reader.file, error.line > 0 ? error.line : 1, error.column > 0 ? error.column : 1}, "%s", error.text);
        return NULL;
    }
    const Cluster *cluster = read_cluster(&reader, top);
    json_decref(top);
    return cluster;
}
