/* Reads the cluster file, and finds the link, class and measurements that hold between devices.
 * communication_seconds.c and cost/flops_and_bytes.c turn them into seconds. */
#include "cluster/cluster.h"
#include "cluster/measured.h"

#include "support/array.h"
#include "support/reading.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The assumed link of processes that exchange through shared memory, when no cluster is known. */
static const Link machine = {2e-6, 5e9, 0, NULL};

double curve_at(const Curve *curve, double size) {
    int above = 0;
    while (above < curve->count && curve->at[above].size < size) above++;
    if (!curve->count) return 0;
    if (!above || above == curve->count) return curve->at[above ? above - 1 : 0].value;
    const Point *lo = &curve->at[above - 1], *hi = &curve->at[above];
    return lo->value * pow(hi->value / lo->value, log(size / lo->size) / log(hi->size / lo->size));
}

static const char *const verb_words[] = {
    [HT_ALL_REDUCE] = "all-reduce", [HT_REDUCE_SCATTER] = "reduce-scatter",
    [HT_ALL_GATHER] = "all-gather", [HT_ALL_TO_ALL] = "all-to-all",
    [HT_BROADCAST] = "broadcast",   [HT_REDUCE] = "reduce",
    [HT_EXCHANGE] = "send-receive"};

const char *verb_word(ht_verb verb) { return verb_words[verb]; }

/* Returns whether a measurement fits `ranks` devices better than the best so far. Prefers the side
 * of `ranks` that `above` selects, then the least distance, then more processors. */
static bool tells_more(const Measured *own, const Measured *best, int ranks, bool above) {
    bool own_side = above ? own->ranks >= ranks : own->ranks <= ranks,
         best_side = above ? best->ranks >= ranks : best->ranks <= ranks;
    if (own->ranks == best->ranks) return own->processors > best->processors;
    return own_side == best_side ? abs(own->ranks - ranks) < abs(best->ranks - ranks) : own_side;
}

const Measured *link_measured(const Link *link, ht_verb verb, bool one_way, int ranks, bool above) {
    const Measured *best = NULL;
    for (int i = 0; i < link->measured_count; i++) {
        const Measured *own = &link->measured[i];
        if (own->verb == verb && own->one_way == one_way && own->groups == 1 && !own->alone &&
            (!best || tells_more(own, best, ranks, above)))
            best = own;
    }
    return best;
}

const Measured *link_crowded(const Link *link, ht_verb verb, int ranks) {
    const Measured *best = NULL;
    for (int i = 0; i < link->measured_count; i++) {
        const Measured *own = &link->measured[i];
        if (own->verb == verb && own->groups > 1 &&
            (!best || abs(own->ranks - ranks) < abs(best->ranks - ranks)))
            best = own;
    }
    return best;
}

const Measured *link_alone(const Link *link, ht_verb verb) {
    for (int i = 0; i < link->measured_count; i++)
        if (link->measured[i].verb == verb && link->measured[i].alone) return &link->measured[i];
    return NULL;
}

const Measured *link_in_turn(const Link *link, ht_verb verb, bool one_way) {
    for (int i = 0; i < link->measured_count; i++) {
        const Measured *own = &link->measured[i];
        if (own->verb == verb && own->one_way == one_way && own->ranks == 2 && own->groups == 1 &&
            own->processors == 1)
            return own;
    }
    return NULL;
}

double measured_share(const Measured *measured) {
    return ceil((double)measured->ranks * measured->groups / (double)measured->processors);
}

const DeviceClass *cluster_class(const Cluster *cluster, int device) {
    return cluster && device < cluster->device_count ? cluster->devices[device].class : NULL;
}

int cluster_sharing(const Cluster *cluster, int device) {
    int count = 0;
    for (int i = 0; i < cluster->device_count; i++)
        count += cluster->devices[i].processor == cluster->devices[device].processor;
    return count;
}

int cluster_host(const Cluster *cluster, int device) {
    return cluster && device < cluster->device_count ? cluster->devices[device].host : 0;
}

static bool end_has(const Cluster *cluster, const LinkEnd *end, int device) {
    bool found = end->host >= 0 && cluster_host(cluster, device) == end->host;
    for (int i = 0; i < end->device_count && !found; i++) found = end->devices[i] == device;
    return found;
}

int cluster_link_kind(const Cluster *cluster, int a, int b) {
    for (int i = 0; i < cluster->pair_count; i++) {
        const LinkEnd *end = cluster->pairs[i].end;
        if ((end_has(cluster, &end[0], a) && end_has(cluster, &end[1], b)) ||
            (end_has(cluster, &end[0], b) && end_has(cluster, &end[1], a)))
            return LINK_PAIRS + i;
    }
    return cluster_host(cluster, a) == cluster_host(cluster, b) ? LINK_LOCAL : LINK_REMOTE;
}

int cluster_link_kinds(const Cluster *cluster) { return LINK_PAIRS + cluster->pair_count; }

Link cluster_link(const Cluster *cluster, int a, int b) {
    if (!cluster) return machine;
    int kind = cluster_link_kind(cluster, a, b);
    return kind == LINK_LOCAL    ? cluster->local
           : kind == LINK_REMOTE ? cluster->remote
                                 : cluster->pairs[kind - LINK_PAIRS].link;
}

int cluster_host_number(const Cluster *cluster, const char *name) {
    return text_find(cluster->hosts, cluster->host_count, name);
}

int cluster_link_between(const Cluster *cluster, const char *a, const char *b) {
    int x = cluster_host_number(cluster, a), y = cluster_host_number(cluster, b);
    for (int i = 0; x >= 0 && y >= 0 && i < cluster->pair_count; i++) {
        const LinkEnd *end = cluster->pairs[i].end;
        if ((end[0].host == x && end[1].host == y) || (end[0].host == y && end[1].host == x))
            return LINK_PAIRS + i;
    }
    return -1;
}

const DeviceClass *cluster_class_named(const Cluster *cluster, const char *name) {
    for (int i = 0; i < cluster->device_count; i++)
        if (!strcmp(cluster->devices[i].class->name, name)) return cluster->devices[i].class;
    return NULL;
}

int cluster_missing(const Cluster *cluster, const Layout *layout) {
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

/* A processor: its host, its number in the file, and its number in the cluster. */
typedef struct Processor {
    int host;
    json_int_t number;
    int in_cluster;
} Processor;

/* The state of reading a cluster file. */
typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *file, *text;
    Array(const DeviceClass *) classes;
    Names hosts;
    Array(Processor) processors;
    bool failed, strict; // an error was reported; unknown keys are errors
} Reader;

#define FAIL(reader, place, ...)                                                                   \
    do {                                                                                           \
        diag_error((reader)->diag, position_of(reader, place), __VA_ARGS__);                       \
        (reader)->failed = true;                                                                   \
    } while (0)

/* ---- places in the text ---- */

/* Returns the line and column of a place in the text; of the start of the text for NULL. */
static Position position_of(const Reader *reader, const char *place) {
    Position at = {reader->file, 1, 1};
    for (const char *c = reader->text; place && c < place; c++) {
        at.column = *c == '\n' ? 1 : at.column + 1;
        at.line += *c == '\n';
    }
    return at;
}

/* Returns the first place from `from` on that has the word in quotes; NULL: there is none. */
static const char *find_quoted(const Reader *reader, const char *from, const char *word) {
    return from ? strstr(from, arena_format(reader->arena, "\"%s\"", word)) : NULL;
}

/* Returns where entry `index` of the list after `from` begins, or `from` when there is no such
 * entry. Entries are objects; braces in strings do not count. */
static const char *find_entry(const char *from, size_t index) {
    int depth = 0;
    bool quoted = false;
    for (const char *c = from; c && *c; c++)
        if (*c == '"' && c[-1] != '\\') quoted = !quoted;
        else if (!quoted && *c == '{' && !depth++ && !index--) return c;
        else if (!quoted && *c == '}') depth--;
    return from;
}

/* ---- parts of the file ---- */

#define KEYS(...)                                                                                  \
    (const char *const[]){__VA_ARGS__},                                                            \
        (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Reports keys of an object that are not among the `count` names: as errors when the reader is
 * strict, else as warnings. Does nothing when `object` is not a JSON object. */
static void check_keys(Reader *reader, const json_t *object, const char *place,
                       const char *const *names, int count) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        int known = 0;
        while (known < count && strcmp(names[known], key)) known++;
        if (known < count) continue;
        const char *quoted = find_quoted(reader, place, key);
        Position at = position_of(reader, quoted ? quoted : place);
        reader->failed |= reader->strict;
        (reader->strict ? diag_error : diag_warning)(reader->diag, at,
                                                     "\"%s\" means nothing here%s", key,
                                                     reader->strict ? "" : ", and is not read");
        diag_suggest(reader->diag, at, key, names, count);
    }
}

/* Limits of the numbers in a cluster file. Every measured quantity is within these limits, which
 * keep products and quotients of the numbers finite. */
static const double LARGEST = 1e30, SMALLEST = 1e-30;

static bool is_measurable(double value) { return value >= SMALLEST && value <= LARGEST; }

static double read_number(Reader *reader, const json_t *object, const char *place, const char *key,
                          const char *owner) {
    const json_t *value = json_object_get(object, key);
    double number = json_is_number(value) ? json_number_value(value) : 0;
    if (is_measurable(number)) return number;
    if (number > 0)
        FAIL(reader, find_quoted(reader, place, key), "\"%s\" of %s is not from %g to %g", key,
             owner, SMALLEST, LARGEST);
    else
        FAIL(reader, value ? find_quoted(reader, place, key) : place,
             "%s needs a positive number \"%s\"", owner, key);
    return 1;
}

/* Returns the number of a key; 0 when the key is missing. */
static double read_optional(Reader *reader, const json_t *object, const char *place,
                            const char *key, const char *owner) {
    return json_object_get(object, key) ? read_number(reader, object, place, key, owner) : 0;
}

static bool is_point(const json_t *pair, double above) {
    const json_t *size = json_array_get(pair, 0), *value = json_array_get(pair, 1);
    return json_array_size(pair) == 2 && json_is_number(size) && json_is_number(value) &&
           json_number_value(size) > above && json_number_value(value) > 0;
}

static Curve read_curve(Reader *reader, const json_t *list, const char *place, const char *owner) {
    int count = (int)json_array_size(list);
    Point *points = arena_array(reader->arena, Point, count);
    for (int i = 0; i < count; i++) {
        const json_t *pair = json_array_get(list, (size_t)i);
        if (!is_point(pair, i ? points[i - 1].size : 0)) {
            count = 0;
            break;
        }
        points[i] = (Point){json_number_value(json_array_get(pair, 0)),
                            json_number_value(json_array_get(pair, 1))};
        if (!is_measurable(points[i].size) || !is_measurable(points[i].value))
            FAIL(reader, place, "%s: a number of pair %d is not from %g to %g", owner, i + 1,
                 SMALLEST, LARGEST);
    }
    if (!count)
        FAIL(reader, place,
             "%s need a list of pairs of positive numbers, [size, value], with ascending sizes",
             owner);
    return (Curve){count, points};
}

/* Returns a curve from points, or from one number for all sizes; empty if the key is missing. */
static Curve read_rate(Reader *reader, const json_t *object, const char *place, const char *key,
                       const char *owner) {
    const json_t *value = json_object_get(object, key);
    Point constant = {1, 0};
    if (json_is_array(value))
        return read_curve(reader, value, find_quoted(reader, place, key),
                          arena_format(reader->arena, "the \"%s\" of %s", key, owner));
    constant.value = read_optional(reader, object, place, key, owner);
    return (Curve){constant.value > 0, arena_copy(reader->arena, &constant, sizeof constant)};
}

/* ---- links ---- */

/* Returns the verb that a word names, HT_EXCHANGE if `one_way` ("send"); HT_COPY: it names none. */
static ht_verb word_verb(const char *word, bool one_way) {
    for (int verb = HT_ALL_REDUCE; word && verb <= HT_EXCHANGE; verb++)
        if (!strcmp(verb_words[verb], word)) return (ht_verb)verb;
    return one_way ? HT_EXCHANGE : HT_COPY;
}

static Measured read_measured(Reader *reader, const json_t *entry, const char *place) {
    const char *word = json_string_value(json_object_get(entry, "what"));
    bool one_way = word && !strcmp(word, "send");
    ht_verb verb = word_verb(word, one_way);
    const json_t *at_once = json_object_get(entry, "groups");
    json_int_t groups = at_once ? json_integer_value(at_once) : 1;
    json_int_t ranks = json_integer_value(json_object_get(entry, "ranks"));
    const json_t *shared = json_object_get(entry, "processors");
    json_int_t processors = shared ? json_integer_value(shared) : ranks * groups;
    const json_t *alone = json_object_get(entry, "alone");
    check_keys(reader, entry, place,
               KEYS("what", "ranks", "groups", "processors", "alone", "seconds"));
    if (verb == HT_COPY)
        FAIL(reader, place,
             "what was measured needs a string \"what\": all-reduce, reduce-scatter, all-gather, "
             "all-to-all, broadcast, reduce, send-receive or send");
    else if (ranks < 2 || ranks > 1 << 20)
        FAIL(reader, place, "what was measured needs a number \"ranks\" of devices, 2 at least");
    else if (groups < 1 || groups > 1 << 20)
        FAIL(reader, place, "the \"groups\" that were measured at once are no number from 1 on");
    else if (processors < 1 || processors > ranks * groups)
        FAIL(reader, place,
             "the \"processors\" of what was measured are no number from 1 to that of its devices");
    else if (alone && !json_is_boolean(alone))
        FAIL(reader, place, "\"alone\" of what was measured is neither true nor false");
    else if (json_is_true(alone) &&
             ((verb != HT_BROADCAST && verb != HT_REDUCE) || ranks < 3 || groups > 1))
        FAIL(reader, place,
             "\"alone\" is the root of one broadcast or reduce on 3 devices at least");
    else
        return (Measured){verb,
                          one_way,
                          json_is_true(alone),
                          (int)ranks,
                          (int)groups,
                          processors,
                          read_curve(reader, json_object_get(entry, "seconds"), place,
                                     arena_format(reader->arena, "the \"seconds\" of %s", word))};
    return (Measured){0};
}

/* Reads a link from its JSON object; `place` is in front of the object's text. */
static Link read_link(Reader *reader, const json_t *link, const char *place, const char *owner) {
    const json_t *list = json_object_get(link, "measured"), *entry;
    const char *begin = list ? find_quoted(reader, place, "measured") : NULL;
    Array(Measured) measured = {0};
    size_t index;
    Link read = {read_number(reader, link, place, "latency", owner),
                 read_number(reader, link, place, "bandwidth", owner), 0, NULL};
    check_keys(reader, link, place, KEYS("latency", "bandwidth", "measured", "between"));
    if (list && !json_is_array(list))
        FAIL(reader, begin, "the \"measured\" of %s is no list", owner);
    json_array_foreach(list, index, entry) array_push(
        reader->arena, &measured, read_measured(reader, entry, find_entry(begin, index)));
    read.measured_count = measured.count;
    read.measured = measured.at;
    return read;
}

static Link read_link_class(Reader *reader, const json_t *links, const char *name) {
    const json_t *link = json_object_get(links, name);
    const char *place = find_quoted(reader, reader->text, "links");
    if (!json_is_object(link)) {
        FAIL(reader, place, "\"links\" needs an object \"%s\"", name);
        return machine;
    }
    return read_link(reader, link, find_quoted(reader, place, name),
                     arena_format(reader->arena, "the link class \"%s\"", name));
}

/* Reads one end of `key`: a host, or a list of devices. */
static LinkEnd read_end(Reader *reader, const json_t *end, const char *place, const char *key,
                        int device_count) {
    const char *name = json_string_value(end);
    LinkEnd read = {.host = -1, .device_count = (int)json_array_size(end)};
    int *devices = arena_array(reader->arena, int, read.device_count);
    bool good = read.device_count > 0;
    for (int i = 0; name && i < reader->hosts.count; i++)
        read.host = strcmp(reader->hosts.at[i], name) ? read.host : i;
    for (int i = 0; i < read.device_count; i++) {
        const json_t *device = json_array_get(end, (size_t)i);
        good &= json_is_integer(device) && json_integer_value(device) >= 0 &&
                json_integer_value(device) < device_count;
        devices[i] = (int)json_integer_value(device);
    }
    read.devices = devices;
    if (!good && read.host < 0)
        FAIL(reader, place, "each end of %s is a host of \"devices\" or a list of their numbers",
             key);
    return read;
}

static void read_pairs(Reader *reader, const json_t *list, Cluster *cluster) {
    const char *begin =
        list ? find_quoted(reader, find_quoted(reader, reader->text, "links"), "pairs") : NULL;
    LinkPair *pairs = arena_array(reader->arena, LinkPair, json_array_size(list));
    const json_t *entry;
    size_t index;
    if (list && !json_is_array(list)) FAIL(reader, begin, "the \"pairs\" of \"links\" are no list");
    json_array_foreach(list, index, entry) {
        const char *place = find_entry(begin, index);
        const json_t *between = json_object_get(entry, "between");
        LinkPair *pair = &pairs[cluster->pair_count++];
        if (json_array_size(between) != 2)
            FAIL(reader, place, "an entry of \"pairs\" needs a list \"between\" of two ends");
        for (size_t i = 0; json_array_size(between) == 2 && i < 2; i++)
            pair->end[i] = read_end(reader, json_array_get(between, i), place, "\"between\"",
                                    cluster->device_count);
        pair->link = read_link(reader, entry, place, "an entry of \"pairs\"");
    }
    cluster->pairs = pairs;
}

/* ---- uplinks ---- */

/* Marks the devices that `of` names: a host, a list of hosts, or a list of devices. */
static void mark_devices(Reader *reader, const json_t *of, const char *place, Cluster *cluster,
                         bool *marked) {
    const bool list = json_is_array(of) && json_is_string(json_array_get(of, 0));
    for (size_t i = 0; i < (list ? json_array_size(of) : 1); i++) {
        LinkEnd end = read_end(reader, list ? json_array_get(of, i) : of, place, "\"of\"",
                               cluster->device_count);
        for (int d = 0; d < cluster->device_count; d++) marked[d] |= end_has(cluster, &end, d);
    }
}

/* Returns whether each host has all of its devices marked, or none. */
static bool whole_hosts(Reader *reader, const Cluster *cluster, const bool *marked) {
    int *first = arena_array(reader->arena, int, reader->hosts.count); // a host's device + 1, or 0
    for (int d = 0; d < cluster->device_count; d++) {
        int *known = &first[cluster_host(cluster, d)];
        if (*known && marked[*known - 1] != marked[d]) return false;
        *known = d + 1;
    }
    return true;
}

/* Returns the host of all marked devices; host_count: they are on several; -1: none is marked. */
static int only_host(const Cluster *cluster, const bool *marked) {
    int host = -1;
    for (int d = 0; d < cluster->device_count; d++)
        if (marked[d])
            host = host < 0 || host == cluster_host(cluster, d) ? cluster_host(cluster, d)
                                                                : cluster->host_count;
    return host;
}

static Uplink read_uplink(Reader *reader, const json_t *entry, const char *place, Cluster *cluster,
                          bool *marked) {
    const json_t *duplex = json_object_get(entry, "duplex");
    const char *owner = "an entry of \"uplinks\"";
    Uplink uplink = {.duplex = !duplex || json_is_true(duplex)};
    check_keys(reader, entry, place, KEYS("of", "bandwidth", "in", "duplex", "burst"));
    uplink.rate[0] = uplink.rate[1] = read_number(reader, entry, place, "bandwidth", owner);
    if (json_object_get(entry, "in"))
        uplink.rate[1] = read_number(reader, entry, place, "in", owner);
    if (json_object_get(entry, "burst"))
        uplink.burst = read_number(reader, entry, place, "burst", owner);
    if (duplex && !json_is_boolean(duplex))
        FAIL(reader, find_quoted(reader, place, "duplex"), "\"duplex\" is neither true nor false");
    if (!uplink.duplex && json_object_get(entry, "in"))
        FAIL(reader, find_quoted(reader, place, "in"),
             "an uplink that is not \"duplex\" has one \"bandwidth\" for both directions");
    mark_devices(reader, json_object_get(entry, "of"), place, cluster, marked);
    uplink.host = whole_hosts(reader, cluster, marked) ? -1 : only_host(cluster, marked);
    for (int d = 0; d < cluster->device_count; d++) uplink.device_count += marked[d];
    if (uplink.host == cluster->host_count)
        FAIL(reader, place, "the devices of an uplink are of several hosts, and not all of these");
    return uplink;
}

/* Lists the uplinks of each device; `marked` has a row of all devices for each uplink. */
static void list_uplinks(Reader *reader, const char *place, Cluster *cluster, const bool *marked) {
    int devices = cluster->device_count, count = 0;
    int *first = arena_array(reader->arena, int, devices + 1),
        *list = arena_array(reader->arena, int, devices *UPLINKS_OF_DEVICE);
    for (int d = 0; d < devices; d++) {
        first[d] = count;
        for (int u = 0; u < cluster->uplinks.count && !reader->failed; u++) {
            if (!marked[(size_t)u * (size_t)devices + (size_t)d]) continue;
            if (count - first[d] == UPLINKS_OF_DEVICE)
                FAIL(reader, place, "device %d has more than %d uplinks", d, UPLINKS_OF_DEVICE);
            else list[count++] = u;
        }
    }
    first[devices] = count;
    cluster->uplinks.first = first;
    cluster->uplinks.of_device = list;
}

static void read_uplinks(Reader *reader, const json_t *list, Cluster *cluster) {
    const char *begin =
        list ? find_quoted(reader, find_quoted(reader, reader->text, "links"), "uplinks") : NULL;
    Arena *scratch = arena_create();
    size_t devices = (size_t)cluster->device_count, index;
    Uplink *uplinks = arena_array(reader->arena, Uplink, json_array_size(list));
    bool *marked = arena_array(scratch, bool, json_array_size(list) * devices);
    const json_t *entry;
    if (list && !json_is_array(list))
        FAIL(reader, begin, "the \"uplinks\" of \"links\" are no list");
    json_array_foreach(list, index, entry) uplinks[index] =
        read_uplink(reader, entry, find_entry(begin, index), cluster, &marked[index * devices]);
    cluster->uplinks = (Uplinks){.count = (int)json_array_size(list), .at = uplinks};
    list_uplinks(reader, begin, cluster, marked);
    arena_destroy(scratch);
}

/* ---- devices ---- */

/* Returns the number of the host with a name; gives a new name the next number. */
static int host_number(Reader *reader, const char *name) {
    int known = text_find(reader->hosts.at, reader->hosts.count, name);
    if (known >= 0) return known;
    array_push(reader->arena, &reader->hosts, arena_string(reader->arena, name));
    return reader->hosts.count - 1;
}

static int64_t read_memory(Reader *reader, const json_t *class, const char *place,
                           const char *name) {
    const double most = 0x1p60;
    const json_t *memory = json_object_get(class, "memory");
    double bytes = json_number_value(memory); // JSON reads 80e9 as a real number
    if (memory &&
        (!json_is_number(memory) || !(bytes >= 1 && bytes <= most) || bytes != floor(bytes)))
        FAIL(reader, find_quoted(reader, place, "memory"),
             "the memory of \"%s\" is no positive number of bytes", name);
    return json_is_integer(memory) ? json_integer_value(memory) : (int64_t)bytes;
}

/* Returns the element type that a key names; CLUSTER_DTYPES after an error. */
static int read_dtype(Reader *reader, const char *name, const char *at, const char *owner) {
    int dtype = 0;
    while (dtype < CLUSTER_DTYPES && strcmp(dtype_word((ht_dtype)dtype), name)) dtype++;
    if (dtype == CLUSTER_DTYPES)
        FAIL(reader, at, "\"%s\" is no element type of %s: f32, bf16, f64, i32 or i64", name,
             owner);
    return dtype;
}

static void read_products(Reader *reader, const json_t *products, const char *place,
                          DeviceClass *class) {
    const json_t *curve;
    const char *name;
    if (products && !json_is_object(products))
        FAIL(reader, place, "the \"products\" of \"%s\" are no object", class->name);
    json_object_foreach((json_t *)products, name, curve) {
        const char *at = find_quoted(reader, place, name);
        int dtype = read_dtype(reader, name, at, "products");
        if (dtype < CLUSTER_DTYPES)
            class->products[dtype] =
                read_curve(reader, curve, at,
                           arena_format(reader->arena, "the products of \"%s\"", class->name));
    }
}

/* Reads the rates of sums or maxima, in elements a second, into `rates` by element type. */
static void read_combined(Reader *reader, const json_t *class, const char *place, const char *key,
                          double *rates) {
    const json_t *object = json_object_get(class, key), *rate;
    const char *name, *begin = object ? find_quoted(reader, place, key) : NULL;
    if (object && !json_is_object(object)) FAIL(reader, begin, "\"%s\" is no object", key);
    json_object_foreach((json_t *)object, name, rate) {
        int dtype = read_dtype(reader, name, find_quoted(reader, begin, name), key);
        if (dtype < CLUSTER_DTYPES)
            rates[dtype] = read_number(reader, object, begin, name,
                                       arena_format(reader->arena, "\"%s\"", key));
    }
}

static const DeviceClass *read_class(Reader *reader, const json_t *object, const char *name) {
    DeviceClass *class = arena_new(reader->arena, DeviceClass);
    const char *place = find_quoted(reader, find_quoted(reader, reader->text, "classes"), name);
    const char *owner = arena_format(reader->arena, "the class \"%s\"", name);
    const json_t *products = json_object_get(object, "products");
    check_keys(reader, object, place,
               KEYS("memory", "memory_bandwidth", "row_bandwidth", "page_bandwidth", "copy", "sums",
                    "maxima", "start", "overlap", "arithmetic", "products"));
    class->name = arena_string(reader->arena, name);
    class->memory = read_memory(reader, object, place, name);
    class->memory_bandwidth = read_rate(reader, object, place, "memory_bandwidth", owner);
    class->row_bandwidth = read_rate(reader, object, place, "row_bandwidth", owner);
    class->page_bandwidth = read_rate(reader, object, place, "page_bandwidth", owner);
    class->copy = read_optional(reader, object, place, "copy", owner);
    read_combined(reader, object, place, "sums", class->combined[0]);
    read_combined(reader, object, place, "maxima", class->combined[1]);
    class->start = read_optional(reader, object, place, "start", owner);
    class->arithmetic = read_optional(reader, object, place, "arithmetic", owner);
    class->overlap = json_object_get(object, "overlap")
                         ? read_number(reader, object, place, "overlap", owner)
                         : 1;
    if (!reader->failed && class->overlap < 1)
        FAIL(reader, find_quoted(reader, place, "overlap"), "the overlap of %s is below 1", owner);
    read_products(reader, products, products ? find_quoted(reader, place, "products") : place,
                  class);
    return class;
}

static void read_classes(Reader *reader, const json_t *classes) {
    const json_t *class;
    const char *name;
    json_object_foreach((json_t *)classes, name, class) if (json_is_object(class))
        array_push(reader->arena, &reader->classes, read_class(reader, class, name));
}

/* Returns the class that an entry of the list of devices names; NULL after an error. */
static const DeviceClass *find_class(Reader *reader, const char *place, const char *name) {
    for (int i = 0; i < reader->classes.count; i++)
        if (!strcmp(reader->classes.at[i]->name, name)) return reader->classes.at[i];
    FAIL(reader, find_quoted(reader, place, name), "\"classes\" has no object \"%s\"", name);
    return NULL;
}

/* Returns how many devices an entry of the list describes; 0 after an error was reported. */
static json_int_t entry_count(Reader *reader, const json_t *entry, const char *place) {
    enum { MOST = 1 << 20 };
    const json_t *count = json_object_get(entry, "count");
    if (!json_string_value(json_object_get(entry, "class")) ||
        !json_string_value(json_object_get(entry, "host"))) {
        FAIL(reader, place, "an entry of \"devices\" needs strings \"class\" and \"host\"");
        return 0;
    }
    if (count && (!json_is_integer(count) || json_integer_value(count) < 1 ||
                  json_integer_value(count) > MOST)) {
        FAIL(reader, find_quoted(reader, place, "count"), "\"count\" is no number from 1 to %d",
             MOST);
        return 0;
    }
    return count ? json_integer_value(count) : 1;
}

/* Returns the number of an entry's shared processor, `next` if new; -1: each device has its own. */
static int read_processor(Reader *reader, const json_t *entry, const char *place, int host,
                          int next) {
    const json_t *value = json_object_get(entry, "processor");
    Processor read = {host, json_integer_value(value), next};
    if (!value) return -1;
    if (!json_is_integer(value) || read.number < 0)
        FAIL(reader, find_quoted(reader, place, "processor"),
             "\"processor\" is no number from 0 on");
    for (int i = 0; i < reader->processors.count; i++)
        if (reader->processors.at[i].host == host && reader->processors.at[i].number == read.number)
            return reader->processors.at[i].in_cluster;
    array_push(reader->arena, &reader->processors, read);
    return next;
}

static void read_devices(Reader *reader, const json_t *list, Cluster *cluster) {
    const char *begin = find_quoted(reader, reader->text, "devices");
    Array(ClusterDevice) devices = {0};
    const json_t *entry;
    size_t index;
    if (!json_is_array(list) || !json_array_size(list))
        FAIL(reader, begin, "the cluster needs a list \"devices\" of one entry at least");
    json_array_foreach(list, index, entry) {
        const char *place = find_entry(begin, index);
        json_int_t count = entry_count(reader, entry, place);
        check_keys(reader, entry, place, KEYS("class", "host", "count", "processor"));
        if (!count) continue;
        int host = host_number(reader, json_string_value(json_object_get(entry, "host")));
        int shared = read_processor(reader, entry, place, host, cluster->processor_count);
        ClusterDevice device = {
            find_class(reader, place, json_string_value(json_object_get(entry, "class"))), host,
            shared};
        for (json_int_t i = 0; i < count; i++) {
            device.processor = shared < 0 ? cluster->processor_count : shared;
            cluster->processor_count += device.processor == cluster->processor_count;
            array_push(reader->arena, &devices, device);
        }
    }
    cluster->devices = devices.at;
    cluster->device_count = devices.count;
}

static const Cluster *read_cluster(Reader *reader, const json_t *top) {
    Cluster *cluster = arena_new(reader->arena, Cluster);
    const json_t *links = json_object_get(top, "links");
    check_keys(reader, top, reader->text, KEYS("classes", "devices", "links"));
    check_keys(reader, links, find_quoted(reader, reader->text, "links"),
               KEYS("local", "remote", "pairs", "uplinks"));
    read_classes(reader, json_object_get(top, "classes"));
    cluster->local = read_link_class(reader, links, "local");
    cluster->remote = read_link_class(reader, links, "remote");
    read_devices(reader, json_object_get(top, "devices"), cluster);
    cluster->host_count = reader->hosts.count;
    cluster->hosts = reader->hosts.at;
    read_pairs(reader, json_object_get(links, "pairs"), cluster);
    read_uplinks(reader, json_object_get(links, "uplinks"), cluster);
    return reader->failed ? NULL : cluster;
}

/* Returns the text of a file; NULL after an error was reported. */
static const char *read_text(Arena *arena, Diag *diag, const char *path) {
    enum { MOST_BYTES = 1 << 26 };
    struct stat about;
    InputText text = reading_text(arena, READ_PIPES, path, MOST_BYTES);
    if (!text.bytes)
        diag_error(diag, (Position){0},
                   stat(path, &about) ? "cannot open %s: %s" : "cannot read %s: %s", path,
                   text.why);
    return text.bytes;
}

static const Cluster *read_file(Arena *arena, Diag *diag, const char *path, bool strict) {
    Reader reader = {.arena = arena,
                     .diag = diag,
                     .file = arena_string(arena, path),
                     .text = read_text(arena, diag, path),
                     .strict = strict};
    json_error_t error;
    if (!reader.text) return NULL;
    json_t *top = json_loads(reader.text, JSON_REJECT_DUPLICATES, &error);
    if (!top) {
        diag_error(diag,
                   (Position){reader.file, error.line > 0 ? error.line : 1,
                              error.column > 0 ? error.column : 1},
                   "%s", error.text);
        return NULL;
    }
    const Cluster *cluster = read_cluster(&reader, top);
    json_decref(top);
    return cluster;
}

const Cluster *cluster_read(Arena *arena, Diag *diag, const char *path) {
    return read_file(arena, diag, path, false);
}

const Cluster *cluster_read_strict(Arena *arena, Diag *diag, const char *path) {
    return read_file(arena, diag, path, true);
}
