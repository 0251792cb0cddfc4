/* Measures the cluster file of the ranks that were launched (hetu-reshard --measure).
 *
 * Measurements use the planner's conversions and the program's channel. A link's latency and
 * bandwidth come from two ranks that send to each other at once. Each verb (collective) is also
 * timed by bytes, on two ranks of a host, on more ranks, on all ranks, and on two ranks that share
 * a processor. The time of copies within a device's memory is subtracted, since the planner
 * predicts these copies separately. Hosts whose ranks are slower together than alone share a card;
 * hosts that are slower together than each alone share a switch. */
#include "timing.h"

#include "cost/cost.h"
#include "support/secure.h"
#include "transport/world.h"
#include "support/tool.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NAME_BYTES = 64, LEAST_MESSAGE = 1 << 9, LEAST_BYTES = 1 << 13, MOST_BYTES = 1 << 24 };

/* Seconds of the longest messages that are measured: longer ones take in proportion. */
static const double LONG_RUN = 0.06;

/* Seconds for each point in each pass. Disturbances of the machine last a while, so each point has
 * the best value of several passes. */
static const double BUDGET = 0.015;
enum { PASSES = 3 };

/* The hosts of the ranks. */
typedef struct Hosts {
    int count, *of;                 // number of hosts; for each rank, the number of its host
    const char (*name)[NAME_BYTES]; // for each rank
    const int *processor;           // for each rank, its number on the host; -1: unknown
} Hosts;

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

/* Writes the ranks of a host to `ranks`; returns their number. */
static int host_ranks(const Hosts *hosts, int host, int *ranks) {
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
    {"send-receive", HT_EXCHANGE, "D{0:n} -> R{0:n}"},
    {"send", HT_EXCHANGE, "F{0:h} -> S{0:h}"},
    {"all-reduce", HT_ALL_REDUCE, "D{sum:n} -> D{dup:n}"},
    {"reduce-scatter", HT_REDUCE_SCATTER, "D{sum:n} -> D{0:n}"},
    {"all-gather", HT_ALL_GATHER, "D{0:n} -> D{dup:n}"},
    {"all-to-all", HT_ALL_TO_ALL, "D{0:n} -> D{1:n}"},
    {"broadcast", HT_BROADCAST, "A{} -> D{dup:n}"},
    {"reduce", HT_REDUCE, "D{sum:n} -> A{}"},
};

enum { SEND_RECEIVE, SEND, ROOTED = 6 };

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

/* Several groups of `count` devices, which act at once. */
typedef struct Groups {
    const int *devices; // devices of all groups, group by group
    int count, groups;
    bool alone; // only the root has a processor for itself (cluster/cluster.h)
} Groups;

/* Returns one plan of the same case for all groups at once. */
static Set set_of(Arena *arena, const char *pattern, const Groups *of, int64_t bytes) {
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

/* Seconds by bytes, made monotonic: a point is at most the time of any larger one, since
 * disturbances only add time. Of several points of one size, only the last is kept. */
typedef struct Series {
    int count;
    Point at[32];
} Series;

static void series_add(Series *series, double bytes, double seconds) {
    if (series->count && series->at[series->count - 1].size == bytes) series->count--;
    series->at[series->count++] = (Point){bytes, seconds};
    for (int i = series->count - 1; i > 0 && series->at[i - 1].value > series->at[i].value; i--)
        series->at[i - 1].value = series->at[i].value;
}

static json_t *json_curve(const Curve *curve) {
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

/* Returns the bytes a second of a conversion: by the difference between a small tensor and one of
 * MOST_BYTES at most, larger ones until they take LONG_RUN. */
static double bytes_rate(const char *pattern, const int *devices, int count, double *shortest) {
    double longest = 0;
    int64_t bytes = MOST_BYTES / 64;
    *shortest = bytes_seconds(pattern, devices, count, 1);
    while ((longest = bytes_seconds(pattern, devices, count, bytes)) < LONG_RUN &&
           bytes < MOST_BYTES)
        bytes *= 2;
    return (double)bytes / (longest > 2 * *shortest ? longest - *shortest : longest);
}

/* Measures the link of two devices: its latency by an exchange, its bandwidth by messages in one
 * direction. Returns the link as a JSON object, which then owns `measured`. */
static json_t *measure_link(const int *devices, json_t *measured) {
    double shortest, latency = bytes_seconds(verbs[SEND_RECEIVE].text, devices, 2, 1);
    return json_pack("{s:f,s:f,s:o}", "latency", latency, "bandwidth",
                     bytes_rate(verbs[SEND].text, devices, 2, &shortest), "measured", measured);
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

/* Measures the link between the first ranks of two hosts. */
static json_t *measure_pair(const Hosts *hosts, int a, int b, const Cluster *machine) {
    int first[world_size()], second[world_size()];
    host_ranks(hosts, a, first);
    host_ranks(hosts, b, second);
    int devices[] = {first[0], second[0]};
    json_t *measured = json_array();
    for (int v = SEND_RECEIVE; v <= SEND; v++)
        add_verb(measured, v, &(Groups){devices, 2, 1, false}, machine);
    json_t *link = measure_link(devices, measured);
    json_object_set_new(link, "between",
                        json_pack("[s,s]", hosts->name[first[0]], hosts->name[second[0]]));
    return link;
}

/* Measures the local link on the host with most ranks, and the link of each pair of hosts. With one
 * host, `remote` is a copy of `local`. If no host has two ranks, `local` is a copy of `remote`. */
static json_t *measure_links(const Hosts *hosts, const Cluster *machine) {
    int ranks[world_size()], widest = 0;
    json_t *pairs = json_array();
    for (int host = 0; host < hosts->count; host++)
        widest = host_ranks(hosts, host, ranks) > host_ranks(hosts, widest, ranks) ? host : widest;
    json_t *local = measure_local(hosts, widest, machine), *remote = NULL;
    for (int a = 0; a < hosts->count; a++)
        for (int b = a + 1; b < hosts->count; b++)
            json_array_append_new(pairs, measure_pair(hosts, a, b, machine));
    remote = json_array_size(pairs) ? json_copy(json_array_get(pairs, 0)) : json_copy(local);
    json_object_del(remote, "between");
    return json_pack("{s:o,s:o,s:o}", "local", local ? local : json_copy(remote), "remote", remote,
                     "pairs", pairs);
}

/* ---- uplinks ---- */

/* Sending of the first ranks of some hosts, or of all ranks of one, to ranks of other hosts. */
typedef struct Flows {
    int count;    // of senders, and of receivers
    int *devices; // the senders, then the receivers
} Flows;

/* Returns the bytes a second of all flows together, sent at once; backwards with `into`. */
static double flows_rate(Arena *arena, const Flows *flows, bool into) {
    int *devices = arena_array(arena, int, 2 * flows->count);
    double shortest;
    for (int i = 0; i < 2 * flows->count; i++)
        devices[i] = flows->devices[into ? (i + flows->count) % (2 * flows->count) : i];
    return bytes_rate(verbs[SEND].text, devices, 2 * flows->count, &shortest);
}

/* Returns the flows of the senders to ranks of hosts outside: to the first rank of each such host,
 * then to the second ranks, and so on, until no rank is left. */
static Flows flows_out(Arena *arena, const Hosts *hosts, const int *senders, int count,
                       const bool *inside) {
    Flows flows = {0, arena_array(arena, int, 2 * count)};
    int *receivers = arena_array(arena, int, count), *ranks = arena_array(arena, int, world_size());
    bool any = true;
    for (int place = 0; any && flows.count < count; place++) {
        any = false;
        for (int host = 0; host < hosts->count && flows.count < count; host++) {
            if (inside[host] || place >= host_ranks(hosts, host, ranks)) continue;
            receivers[flows.count++] = ranks[place];
            any = true;
        }
    }
    for (int i = 0; i < flows.count; i++) {
        flows.devices[i] = senders[i];
        flows.devices[flows.count + i] = receivers[i];
    }
    return flows;
}

/* Returns the sum of the rates of flows when each is alone. */
static double rates_alone(Arena *arena, const Flows *flows, bool into) {
    double sum = 0;
    for (int i = 0; i < flows->count; i++) {
        int pair[] = {flows->devices[i], flows->devices[flows->count + i]};
        sum += flows_rate(arena, &(Flows){1, pair}, into);
    }
    return sum;
}

/* Flows that share nothing are as fast together as alone; noise makes them a little slower. */
static const double SHARED = 0.8;

/* Adds an uplink of hosts when their senders are slower together than alone, out or in. Returns
 * whether it did. `of` is the JSON of the hosts. */
static bool add_uplink(Arena *arena, const Flows *flows, json_t *of, json_t *uplinks) {
    double out = flows_rate(arena, flows, false), in = flows_rate(arena, flows, true);
    bool shared = flows->count > 1 && (out < SHARED * rates_alone(arena, flows, false) ||
                                       in < SHARED * rates_alone(arena, flows, true));
    if (shared)
        json_array_append_new(uplinks,
                              json_pack("{s:O,s:f,s:f}", "of", of, "bandwidth", out, "in", in));
    json_decref(of);
    return shared;
}

/* Adds the cards of hosts of several ranks. */
static void add_cards(Arena *arena, const Hosts *hosts, json_t *uplinks) {
    int *ranks = arena_array(arena, int, world_size());
    for (int host = 0; host < hosts->count; host++) {
        bool *inside = arena_array(arena, bool, hosts->count);
        inside[host] = true;
        int count = host_ranks(hosts, host, ranks);
        Flows flows = flows_out(arena, hosts, ranks, count, inside);
        add_uplink(arena, &flows, json_string(hosts->name[ranks[0]]), uplinks);
    }
}

/* Returns whether two hosts are slower together than alone when they send to two others. */
static bool hosts_share(Arena *arena, const Hosts *hosts, const int *first, int a, int b) {
    bool *inside = arena_array(arena, bool, hosts->count);
    inside[a] = inside[b] = true;
    Flows flows = flows_out(arena, hosts, (const int[]){first[a], first[b]}, 2, inside);
    return hosts->of[flows.devices[2]] != hosts->of[flows.devices[3]] &&
           flows_rate(arena, &flows, false) < SHARED * rates_alone(arena, &flows, false);
}

/* Adds the switches that several hosts share: sets of hosts, found by comparing each host with the
 * first host of each set. */
static void add_switches(Arena *arena, const Hosts *hosts, json_t *uplinks) {
    int *first = arena_array(arena, int, hosts->count),
        *set = arena_array(arena, int, hosts->count),
        *ranks = arena_array(arena, int, world_size());
    for (int host = 0; host < hosts->count; host++) {
        host_ranks(hosts, host, ranks);
        first[host] = ranks[0];
        set[host] = host;
        for (int other = 0; other < host && set[host] == host && hosts->count > 3; other++)
            if (set[other] == other && hosts_share(arena, hosts, first, other, host))
                set[host] = other;
    }
    for (int head = 0; head < hosts->count; head++) {
        bool *inside = arena_array(arena, bool, hosts->count);
        json_t *names = json_array();
        int count = 0, *senders = arena_array(arena, int, hosts->count);
        for (int host = head; host < hosts->count; host++)
            if (set[host] == head) {
                senders[count++] = first[host];
                inside[host] = true;
                json_array_append_new(names, json_string(hosts->name[first[host]]));
            }
        Flows flows = flows_out(arena, hosts, senders, count, inside);
        if (count > 1) add_uplink(arena, &flows, names, uplinks);
        else json_decref(names);
    }
}

/* Measures which cards and switches the ranks share; NULL: none. */
static json_t *measure_uplinks(const Hosts *hosts) {
    Arena *arena = arena_create();
    json_t *uplinks = json_array();
    if (hosts->count > 1) {
        add_cards(arena, hosts, uplinks);
        add_switches(arena, hosts, uplinks);
    }
    arena_destroy(arena);
    if (json_array_size(uplinks)) return uplinks;
    json_decref(uplinks);
    return NULL;
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

static json_t *measure_pass(Arena *arena, const Hosts *hosts) {
    DeviceClass class = measure_class(arena);
    const Cluster *machine = describe(arena, hosts, &class);
    return json_pack("{s:{s:o},s:o,s:o}", "classes", "rank", json_class(&class), "devices",
                     json_devices(hosts), "links", measure_links(hosts, machine));
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
    json_t *cluster = measure_pass(arena, &hosts);
    for (int pass = 1; pass < PASSES; pass++) {
        double now = common_clock();
        if (2 * now - before - begin > limit) break;
        before = now;
        json_t *again = measure_pass(arena, &hosts);
        keep_best(cluster, again, false);
        json_decref(again);
    }
    json_t *uplinks = measure_uplinks(&hosts);
    if (uplinks) json_object_set_new(json_object_get(cluster, "links"), "uplinks", uplinks);
    if (!world_rank()) write_file(cluster, path);
    json_decref(cluster);
    arena_destroy(arena);
}
