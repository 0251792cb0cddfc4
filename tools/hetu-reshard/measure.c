/* Measures the cluster file of the ranks that were launched (hetu-reshard --measure).
 *
 * Measurements use the planner's conversions and the program's channel. A link's latency and
 * bandwidth come from two ranks that send to each other at once. Each verb (collective) is also
 * timed by bytes, on two ranks of a host, on more ranks, on all ranks, and on two ranks that share
 * a processor. The time of copies within a device's memory is subtracted, since the planner
 * predicts these copies separately. Links between hosts are measured in measure_hosts.c. */
#include "measure.h"

#include "cost/cost.h"
#include "support/secure.h"
#include "transport/world.h"
#include "support/tool.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Seconds of the longest messages that are measured: longer ones take in proportion. */
static const double LONG_RUN = 0.06;

/* Seconds for each point in each pass. Disturbances of the machine last a while, so each point has
 * the best value of several passes. */
static const double BUDGET = 0.015;
enum { PASSES = 3 };

/* Seconds for the passes over memory and local links where there are several hosts. */
static const double HOSTS_LIMIT = 10;

void show_progress(const char *format, ...) {
    va_list values;
    if (world_rank()) return;
    va_start(values, format);
    fprintf(stderr, "%s: ", tool_name());
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
}

static Hosts find_hosts(Arena *arena) {
    int ranks = world_size(), bound = pin_rank(), *processors = arena_array(arena, int, ranks);
    char mine[NAME_BYTES] = {0},
         (*all)[NAME_BYTES] = arena_alloc(arena, (size_t)ranks * NAME_BYTES);
    Hosts hosts = {.of = arena_array(arena, int, ranks), .name = all, .processor = processors};
    gethostname(mine, NAME_BYTES - 1);
    world_gather(mine, NAME_BYTES, all);
    world_gather(&bound, sizeof bound, processors);
    for (int rank = 0; rank < ranks; rank++) {
        int like = 0;
        while (strcmp(all[like], all[rank])) like++;
        hosts.of[rank] = like < rank ? hosts.of[like] : hosts.count++;
    }
    return hosts;
}

int host_ranks(const Hosts *hosts, int host, int *ranks) {
    int count = 0;
    for (int rank = 0; rank < world_size(); rank++)
        if (hosts->of[rank] == host) ranks[count++] = rank;
    return count;
}

/* ---- conversions ---- */

/* Measured verbs: the word in the cluster file, and layouts whose conversion is one step of that
 * verb. In the layouts, D is the list of n devices, R the same list from the second device on. A is
 * the first device, F and S the first and second half; h is n / 2. */
static const struct {
    const char *word;
    ht_verb verb;
    const char *text;
} verbs[] = {
    {"send-receive", HT_EXCHANGE, SEND_RECEIVE_TEXT},
    {"send", HT_EXCHANGE, SEND_TEXT},
    {"all-reduce", HT_ALL_REDUCE, "D{sum:n} -> D{dup:n}"},
    {"reduce-scatter", HT_REDUCE_SCATTER, "D{sum:n} -> D{0:n}"},
    {"all-gather", HT_ALL_GATHER, "D{0:n} -> D{dup:n}"},
    {"all-to-all", HT_ALL_TO_ALL, "D{0:n} -> D{1:n}"},
    {"broadcast", HT_BROADCAST, "A{} -> D{dup:n}"},
    {"reduce", HT_REDUCE, "D{sum:n} -> A{}"},
};

enum { SEND = 1, ROOTED = 6 };

enum { VERBS = sizeof verbs / sizeof *verbs, LEAST_ROWS = 16 };

static void print_devices(Text *text, const int *devices, int count, int first) {
    for (int i = 0; i < count; i++)
        text_print(text, "%s%d", i ? "," : "[", devices[(first + i) % count]);
    text_string(text, "]");
}

/* Returns the case of a verb for a tensor of `bytes`. A small tensor is enlarged until every device
 * can have rows or columns. The number of rows is a power of two. */
static Case *case_of(Arena *arena, const char *pattern, const int *devices, int count,
                     int64_t bytes) {
    Text text = {.arena = arena};
    int64_t rows = LEAST_ROWS;
    while (rows < LEAST_ROWS * count) rows *= 2;
    int64_t columns = (bytes + 4 * rows - 1) / (4 * rows);
    text_print(&text, "f32[%lld,%lld]: ", (long long)rows,
               (long long)(columns < count ? count : columns));
    for (const char *c = pattern; *c; c++)
        if (*c == 'D' || *c == 'R') print_devices(&text, devices, count, *c == 'R');
        else if (*c == 'A') print_devices(&text, devices, 1, 0);
        else if (*c == 'F' || *c == 'S')
            print_devices(&text, *c == 'F' ? devices : devices + count / 2, count / 2, 0);
        else if (*c == 'n') text_print(&text, "%d", count);
        else if (*c == 'h') text_print(&text, "%d", count / 2);
        else text_append(&text, c, 1);
    Case *read = case_read(arena, diag_create(arena, stderr), (Position){0}, text_bytes(&text));
    if (!read) BUG("the case %s", text_bytes(&text));
    return read;
}

Set set_of(Arena *arena, const char *pattern, const Groups *of, int64_t bytes) {
    Case **cases = arena_array(arena, Case *, of->groups);
    for (int g = 0; g < of->groups; g++)
        cases[g] =
            case_of(arena, pattern, of->devices + (ptrdiff_t)g * of->count, of->count, bytes);
    return set_plan(arena, cases, of->groups, NULL);
}

/* Returns whether a plan is one step of a verb for each of the groups. */
static bool is_verb(const Plan *plan, ht_verb verb, int groups) {
    bool all = plan->steps.count == groups;
    for (int s = 0; s < plan->steps.count; s++) all &= plan->steps.at[s].verb == verb;
    return all;
}

/* ---- memory ---- */

void series_add(Series *series, double bytes, double seconds) {
    if (series->count && series->at[series->count - 1].size == bytes) series->count--;
    series->at[series->count++] = (Point){bytes, seconds};
    for (int i = series->count - 1; i > 0 && series->at[i - 1].value > series->at[i].value; i--)
        series->at[i - 1].value = series->at[i].value;
}

json_t *json_curve(const Curve *curve) {
    json_t *points = json_array();
    for (int i = 0; i < curve->count; i++)
        json_array_append_new(points, json_pack("[f,f]", curve->at[i].size, curve->at[i].value));
    return points;
}

/* Measures the memory bandwidth, in bytes read and written a second, by copy size, while all ranks
 * copy. Rows have `row` bytes and begin `apart` bytes after each other; `row` 0: the copy is one
 * row. The time of the smallest copy is subtracted as start-up time. */
static Curve measure_memory(Arena *arena, int64_t row, int64_t apart) {
    Series series = {0};
    double start = time_copies(2, 1, 1, BUDGET);
    for (int64_t bytes = LEAST_BYTES; bytes <= 2 * MOST_BYTES; bytes *= 2) {
        double seconds = row ? time_copies(bytes, row, apart, BUDGET)
                             : time_copies(bytes, bytes / 2, bytes / 2, BUDGET);
        series_add(&series, (double)bytes, fmax(seconds - start, seconds / 2));
    }
    for (int i = 0; i < series.count; i++)
        series.at[i].value = series.at[i].size / series.at[i].value;
    return (Curve){series.count, arena_copy(arena, series.at, sizeof series.at)};
}

/* Returns the bytes of a host's memory divided by its ranks, the minimum over all hosts. */
static int64_t rank_memory(void) {
    int mebibytes = (int)((double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) /
                          (1 << 20) / world_node_size());
    return (int64_t)world_least(mebibytes) << 20;
}

/* Returns the seconds of a conversion that is one small copy on each rank. */
static double measure_start(Arena *arena) {
    int *ranks = arena_array(arena, int, world_size());
    for (int rank = 0; rank < world_size(); rank++) ranks[rank] = rank;
    Set set = set_of(arena, "D{dup:n} -> D{0:n}", &(Groups){ranks, world_size(), 1, false}, 1);
    return time_set(&set, BUDGET);
}

/* Measures the rates of copies and combinations on a rank. */
static DeviceClass measure_class(Arena *arena) {
    DeviceClass class = {.memory = rank_memory(),
                         .copy = measure_start(arena),
                         .memory_bandwidth = measure_memory(arena, 0, 0),
                         .row_bandwidth = measure_memory(arena, ROW_BYTES, 4 * ROW_BYTES),
                         .page_bandwidth = measure_memory(arena, PAGE_ROW_BYTES, 2 * PAGE_BYTES)};
    for (int dtype = 0; dtype < CLUSTER_DTYPES; dtype++)
        for (int max = 0; max < 2; max++) {
            double seconds =
                time_combinations((ht_dtype)dtype, max ? HT_MAX : HT_SUM, LEAST_BYTES, BUDGET);
            class.combined[max][dtype] =
                LEAST_BYTES / (double)ht_dtype_size((ht_dtype)dtype) / seconds;
        }
    return class;
}

/* Returns the cluster of the ranks, still without links. */
static const Cluster *describe(Arena *arena, const Hosts *hosts, const DeviceClass *class) {
    Cluster *machine = arena_new(arena, Cluster);
    ClusterDevice *devices = arena_array(arena, ClusterDevice, world_size());
    for (int rank = 0; rank < world_size(); rank++) {
        int like = 0, own = hosts->processor[rank];
        while (like < rank &&
               (own < 0 || hosts->of[like] != hosts->of[rank] || hosts->processor[like] != own))
            like++;
        devices[rank] =
            (ClusterDevice){class, hosts->of[rank],
                            like < rank ? devices[like].processor : machine->processor_count++};
    }
    machine->devices = devices;
    machine->device_count = world_size();
    return machine;
}

/* ---- links ---- */

/* Returns the seconds of a plan without its local copies, at least half of the measured time. */
static double exchange_seconds(const Set *set, const Cluster *machine) {
    double seconds = time_set(set, BUDGET), moving = moving_seconds(machine, set->plan);
    return moving > seconds / 2 ? seconds / 2 : seconds - moving;
}

/* Returns the number of different processors of `count` devices. */
static int count_processors(const Cluster *machine, const int *devices, int count) {
    int found = 0;
    for (int i = 0; i < count; i++) {
        int first = 0;
        while (machine->devices[devices[first]].processor != machine->devices[devices[i]].processor)
            first++;
        found += first == i;
    }
    return found;
}

/* Adds a verb's seconds by bytes, until one takes LONG_RUN or the planner takes another verb. */
static void add_verb(json_t *list, int number, const Groups *of, const Cluster *machine) {
    Series series = {0};
    quiet_wait();
    for (int64_t bytes = verbs[number].verb == HT_EXCHANGE ? LEAST_MESSAGE : LEAST_BYTES;
         bytes <= MOST_BYTES; bytes *= 2) {
        Arena *arena = arena_create();
        Set set = set_of(arena, verbs[number].text, of, bytes);
        const Plan *plan = set.plan;
        bool right = is_verb(plan, verbs[number].verb, of->groups);
        double seconds = right ? exchange_seconds(&set, machine) : 0;
        if (right)
            series_add(&series, (number == SEND ? 2 : 1) * step_bytes(plan, &plan->steps.at[0]),
                       seconds);
        arena_destroy(arena);
        if (!right || seconds > LONG_RUN) break;
    }
    Curve seconds = {series.count, series.at};
    if (series.count)
        json_array_append_new(
            list, json_pack("{s:s,s:i,s:i,s:i,s:b,s:o}", "what", verbs[number].word, "ranks",
                            of->count, "groups", of->groups, "processors",
                            count_processors(machine, of->devices, of->count * of->groups), "alone",
                            of->alone, "seconds", json_curve(&seconds)));
}

/* Adds the times of every verb in groups of `count` devices. Skips SEND, which needs two halves,
 * for odd counts. Skips SEND and SEND_RECEIVE for several groups, which share one exchange. */
static void add_verbs(json_t *list, const int *devices, int count, int groups,
                      const Cluster *machine) {
    for (int v = groups > 1 ? SEND + 1 : 0; v < VERBS; v++)
        if (v != SEND || count % 2 == 0)
            add_verb(list, v, &(Groups){devices, count, groups, false}, machine);
}

/* Adds the times of broadcasts and reductions between the first rank and two other ranks that share
 * another processor. */
static void add_alone(json_t *list, const int *ranks, int count, const Cluster *machine) {
    for (int i = 2; i < count; i++)
        for (int k = 1; k < i; k++) {
            int group[] = {ranks[0], ranks[k], ranks[i]};
            if (count_processors(machine, group, 3) == 2 &&
                count_processors(machine, group + 1, 2) == 1) {
                for (int v = ROOTED; v < VERBS; v++)
                    add_verb(list, v, &(Groups){group, 3, 1, true}, machine);
                return;
            }
        }
}

/* Adds the times of every verb on the first two ranks that share a processor, if any do. */
static void add_in_turn(json_t *list, const int *ranks, int count, const Cluster *machine) {
    for (int i = 1; i < count; i++)
        for (int k = 0; k < i; k++) {
            int pair[] = {ranks[k], ranks[i]};
            if (count_processors(machine, pair, 2) == 1) {
                add_verbs(list, pair, 2, 1, machine);
                return;
            }
        }
}

/* Returns the seconds of a conversion of `bytes` bytes on `count` devices. */
static double bytes_seconds(const char *pattern, const int *devices, int count, int64_t bytes) {
    Arena *arena = arena_create();
    Set set = set_of(arena, pattern, &(Groups){devices, count, 1, false}, bytes);
    double seconds = time_set(&set, BUDGET);
    arena_destroy(arena);
    return seconds;
}

/* Measures the link of two devices of a host: its latency by an exchange, its bandwidth by messages
 * in one direction, by the difference between a small tensor and one of MOST_BYTES at most. Returns
 * the link as a JSON object, which then owns `measured`. */
static json_t *measure_link(const int *devices, json_t *measured) {
    double latency = bytes_seconds(SEND_RECEIVE_TEXT, devices, 2, 1), longest;
    double shortest = bytes_seconds(SEND_TEXT, devices, 2, 1);
    int64_t bytes = MOST_BYTES / 64;
    while ((longest = bytes_seconds(SEND_TEXT, devices, 2, bytes)) < LONG_RUN && bytes < MOST_BYTES)
        bytes *= 2;
    double net = longest > 2 * shortest ? longest - shortest : longest;
    return json_pack("{s:f,s:f,s:o}", "latency", latency, "bandwidth", (double)bytes / net,
                     "measured", measured);
}

/* Measures the link within a host, on 2, 3, 4, 8, ... and all ranks, by one group, and by all
 * groups that fit at once. Returns NULL if the host has one rank. */
static json_t *measure_local(const Hosts *hosts, int host, const Cluster *machine) {
    int ranks[world_size()], count = host_ranks(hosts, host, ranks);
    json_t *measured = json_array();
    if (count < 2) {
        json_decref(measured);
        return NULL;
    }
    for (int acting = 2; acting < count; acting = acting < 4 ? acting + 1 : 2 * acting) {
        add_verbs(measured, ranks, acting, 1, machine);
        if (count / acting > 1) add_verbs(measured, ranks, acting, count / acting, machine);
    }
    add_verbs(measured, ranks, count, 1, machine);
    add_in_turn(measured, ranks, count, machine);
    add_alone(measured, ranks, count, machine);
    return measure_link(ranks, measured);
}

/* Measures the local link on the host with most ranks; NULL: no host has two ranks. */
static json_t *measure_widest(const Hosts *hosts, const Cluster *machine) {
    int ranks[world_size()], widest = 0;
    for (int host = 0; host < hosts->count; host++)
        widest = host_ranks(hosts, host, ranks) > host_ranks(hosts, widest, ranks) ? host : widest;
    return measure_local(hosts, widest, machine);
}

/* ---- the file ---- */

static json_t *json_devices(const Hosts *hosts) {
    json_t *devices = json_array();
    for (int rank = 0; rank < world_size(); rank++)
        json_array_append_new(devices,
                              json_pack(hosts->processor[rank] < 0 ? "{s:s,s:s}" : "{s:s,s:s,s:i}",
                                        "class", "rank", "host", hosts->name[rank], "processor",
                                        hosts->processor[rank]));
    return devices;
}

static void write_file(const json_t *cluster, const char *path) {
    const char *why = "no memory";
    char *text = json_dumps(cluster, JSON_INDENT(1) | JSON_REAL_PRECISION(5)), *lines = NULL;
    int length = text ? asprintf(&lines, "%s\n", text) : -1;
    if (length < 0 || !secure_write(path, lines, (size_t)length, &why))
        ht_fail("cannot write %s: %s", path, why);
    free(lines);
    free(text);
}

/* Returns rates by element type as JSON. */
static json_t *json_rates(const double *rates) {
    json_t *object = json_object();
    for (int dtype = 0; dtype < CLUSTER_DTYPES; dtype++)
        json_object_set_new(object, dtype_word((ht_dtype)dtype), json_real(rates[dtype]));
    return object;
}

static json_t *json_class(const DeviceClass *class) {
    return json_pack("{s:I,s:f,s:o,s:o,s:o,s:o,s:o}", "memory", (json_int_t) class->memory, "copy",
                     class->copy, "memory_bandwidth", json_curve(&class->memory_bandwidth),
                     "row_bandwidth", json_curve(&class->row_bandwidth), "page_bandwidth",
                     json_curve(&class->page_bandwidth), "sums", json_rates(class->combined[0]),
                     "maxima", json_rates(class->combined[1]));
}

/* Measures the memory of ranks and the local link; describes the ranks in `machine`. */
static json_t *measure_pass(Arena *arena, const Hosts *hosts, const Cluster **machine) {
    DeviceClass *class = arena_new(arena, DeviceClass);
    show_progress("memory of the ranks");
    *class = measure_class(arena);
    *machine = describe(arena, hosts, class);
    show_progress("links within hosts");
    json_t *local = measure_widest(hosts, *machine), *links = json_object();
    if (local) json_object_set_new(links, "local", local);
    return json_pack("{s:{s:o},s:o,s:o}", "classes", "rank", json_class(class), "devices",
                     json_devices(hosts), "links", links);
}

/* Adds the links between hosts. With one host, `remote` is a copy of `local`; if no host has two
 * ranks, `local` is a copy of `remote`. */
static void add_remote(json_t *links, const Hosts *hosts, const Cluster *machine) {
    if (hosts->count > 1) measure_hosts(links, hosts, machine);
    json_t *local = json_object_get(links, "local"), *remote = json_object_get(links, "remote");
    if (!remote) json_object_set_new(links, "remote", json_copy(local));
    if (!local) json_object_set_new(links, "local", json_copy(remote));
}

static bool is_rate(const char *key) {
    return strstr(key, "bandwidth") || !strcmp(key, "sums") || !strcmp(key, "maxima");
}

/* Merges pass `second` into `first`: keeps the minimum of each time, the maximum of each rate. */
static void keep_best(json_t *first, const json_t *second, bool rates) {
    const char *key;
    json_t *value;
    size_t index;
    json_object_foreach(first, key, value)
        keep_best(value, json_object_get(second, key), rates || is_rate(key));
    json_array_foreach(first, index, value) keep_best(value, json_array_get(second, index), rates);
    if (json_is_real(first) && (json_real_value(second) > json_real_value(first)) == rates)
        json_real_set(first, json_real_value(second));
}

/* Returns the clock of rank 0 in seconds. */
static double common_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    world_broadcast(&seconds, sizeof seconds);
    return seconds;
}

void measure_cluster(const char *path, double limit) {
    if (world_size() < 2)
        ht_fail("links are between ranks, of which two at least are needed: mpirun -n 4 %s%s%s",
                tool_name(), strcmp(tool_name(), "hetu-reshard") ? " " : " --measure=", path);
    Arena *arena = arena_create();
    Hosts hosts = find_hosts(arena);
    double begin = common_clock(), before = begin;
    quiet_begin(arena, NULL);
    const Cluster *machine;
    json_t *cluster = measure_pass(arena, &hosts, &machine);
    if (hosts.count > 1) limit = fmin(limit, HOSTS_LIMIT);
    for (int pass = 1; pass < PASSES; pass++) {
        double now = common_clock();
        if (2 * now - before - begin > limit) break;
        before = now;
        json_t *again = measure_pass(arena, &hosts, &machine);
        keep_best(cluster, again, false);
        json_decref(again);
    }
    add_remote(json_object_get(cluster, "links"), &hosts, machine);
    if (!world_rank()) write_file(cluster, path);
    json_decref(cluster);
    arena_destroy(arena);
}
