/* Measures the links between hosts, and which cards and switches share them.
 *
 *     1. latency and bandwidth of every pair of hosts; disjoint pairs side by side
 *     2. seconds by bytes of one pair of each class of similar pairs
 *     3. cards: the ranks of a host send at the same time; one rank has one card
 *     4. switches: hosts send at the same time
 *
 * The largest class of pairs is `remote`; `pairs` lists the others. Ranks that send less together
 * than one by one share a card; hosts that do share a switch. Batches take 30 ms and more: a link
 * lets some bytes pass faster after a pause. */
#include "measure.h"

#include "cost/cost.h"
#include "transport/world.h"

#include <math.h>

/* Seconds of a batch: of messages by size, of one rate, long and short, and of several rates
 * together. */
static const double BATCH = 0.03, RATE_BATCH = 0.1, SHORT_RATE_BATCH = 0.04, FLOWS_BATCH = 0.1;

/* Rates of more hosts are measured in short batches. */
enum { MANY_HOSTS = 16 };

/* Longer messages take in proportion. */
static const double LONG_MESSAGE = 0.04;

/* Similar pairs: the ratio of their bandwidths, and of their latencies unless these are short. */
static const double LIKE_BANDWIDTH = 1.05, LIKE_LATENCY = 2, SHORT_LATENCY = 2e-4;

/* Latency and bandwidth between the first ranks of hosts; `rate[a * count + b]`: from a to b. */
typedef struct Links {
    int count;
    const int *first;       // by host: its first rank
    double *latency, *rate; // seconds; bytes a second
} Links;

static double latency_of(const Links *links, int a, int b) {
    return links->latency[(a < b ? a : b) * links->count + (a < b ? b : a)];
}

/* Returns the bandwidth of a pair in its slower direction. */
static double bandwidth_of(const Links *links, int a, int b) {
    return fmin(links->rate[a * links->count + b], links->rate[b * links->count + a]);
}

static Stream stream_of(Arena *arena, const char *pattern, int from, int to, double bytes) {
    const int devices[] = {from, to};
    const Groups pair = {devices, 2, 1, false};
    return (Stream){.set = set_of(arena, pattern, &pair, (int64_t)bytes),
                    .reply = set_of(arena, "S{0:h} -> F{0:h}", &pair, 1),
                    .devices = {from, to}};
}

/* ---- pairs ---- */

/* Pairs of hosts that have no host in common. */
typedef struct Round {
    int count, (*pair)[2];
} Round;

/* Returns round `number` of a tournament: all hosts meet in count - 1 rounds (odd count: count). */
static Round round_of(Arena *arena, int count, int number) {
    int even = count + count % 2, others = even - 1;
    Round round = {0, arena_alloc(arena, sizeof(int[2]) * (size_t)even)};
    for (int i = 0; i < even / 2; i++) {
        int a = (number + i) % others, b = i ? (number - i + others) % others : others;
        if (a >= count || b >= count) continue;
        round.pair[round.count][0] = a < b ? a : b;
        round.pair[round.count++][1] = a < b ? b : a;
    }
    return round;
}

/* Measures the latency of a round's pairs. */
static void measure_latencies(const Links *links, const Round *round) {
    Arena *arena = arena_create();
    Stream *streams = arena_array(arena, Stream, round->count);
    for (int i = 0; i < round->count; i++)
        streams[i] = stream_of(arena, SEND_RECEIVE_TEXT, links->first[round->pair[i][0]],
                               links->first[round->pair[i][1]], 1);
    time_streams(streams, round->count, BATCH / 3);
    for (int i = 0; i < round->count; i++)
        links->latency[round->pair[i][0] * links->count + round->pair[i][1]] = streams[i].seconds;
    arena_destroy(arena);
}

/* Measures the bandwidth of a round's pairs in one direction: short messages give the size of those
 * that take RATE_BATCH, which count. */
static void measure_rates(const Links *links, const Round *round, bool back) {
    enum { SHORT = 1 << 16 };
    Arena *arena = arena_create();
    Stream *streams = arena_array(arena, Stream, round->count);
    double *bytes = arena_array(arena, double, round->count);
    double batch = links->count > MANY_HOSTS ? SHORT_RATE_BATCH : RATE_BATCH;
    for (int i = 0; i < round->count; i++) bytes[i] = SHORT;
    for (int take = 0; take < 2; take++) {
        for (int i = 0; i < round->count; i++) {
            int from = round->pair[i][back], to = round->pair[i][!back];
            if (take)
                while (bytes[i] < batch / streams[i].seconds * SHORT && bytes[i] < MOST_BYTES)
                    bytes[i] *= 2;
            streams[i] =
                stream_of(arena, SEND_TEXT, links->first[from], links->first[to], bytes[i]);
        }
        time_streams(streams, round->count, take ? batch : batch / 10);
    }
    for (int i = 0; i < round->count; i++) {
        int from = round->pair[i][back], to = round->pair[i][!back];
        double seconds = streams[i].seconds - latency_of(links, from, to);
        links->rate[from * links->count + to] = bytes[i] / fmax(seconds, streams[i].seconds / 2);
    }
    arena_destroy(arena);
}

/* Returns the highest bandwidth of a host to any other, or with `into` from any other. */
static double best_rate(const Links *links, int host, bool into) {
    double best = 0;
    for (int other = 0; other < links->count; other++)
        best = fmax(best,
                    links->rate[into ? other * links->count + host : host * links->count + other]);
    return best;
}

/* Measures again, one by one, pairs that are slower than both of their hosts are with others: the
 * pairs that were measured side by side may share a switch. */
static void measure_alone(Arena *arena, const Links *links) {
    enum { MOST_ALONE = 64 };
    const double slower = 0.9;
    Round pairs = {0, arena_alloc(arena, sizeof(int[2]) * (size_t)(links->count * links->count))};
    for (int a = 0; a < links->count; a++)
        for (int b = a + 1; b < links->count; b++)
            if (bandwidth_of(links, a, b) <
                slower * fmin(fmin(best_rate(links, a, false), best_rate(links, b, true)),
                              fmin(best_rate(links, b, false), best_rate(links, a, true)))) {
                pairs.pair[pairs.count][0] = a;
                pairs.pair[pairs.count++][1] = b;
            }
    for (int i = 0; i < pairs.count && i < MOST_ALONE; i++) {
        Round one = {1, pairs.pair + i};
        if (!i) show_progress("links between hosts that were slow side by side");
        measure_rates(links, &one, false);
        measure_rates(links, &one, true);
    }
}

static Links measure_links(Arena *arena, const Hosts *hosts) {
    int count = hosts->count, *ranks = arena_array(arena, int, world_size()),
        *first = arena_array(arena, int, count), rounds = count - 1 + count % 2;
    Links links = {count, first, arena_array(arena, double, count *count),
                   arena_array(arena, double, count *count)};
    for (int host = 0; host < count; host++) {
        host_ranks(hosts, host, ranks);
        first[host] = ranks[0];
    }
    for (int number = 0; number < rounds; number++) {
        Round round = round_of(arena, count, number);
        show_progress("links between %d hosts, round %d of %d", count, number + 1, rounds);
        measure_latencies(&links, &round);
        measure_rates(&links, &round, false);
        measure_rates(&links, &round, true);
    }
    measure_alone(arena, &links);
    return links;
}

/* ---- classes of pairs ---- */

static bool is_like(double x, double y, double ratio) { return x <= ratio * y && y <= ratio * x; }

static bool are_alike(const Links *links, int a, int b, const int *other) {
    double own = fmax(latency_of(links, a, b), SHORT_LATENCY),
           others = fmax(latency_of(links, other[0], other[1]), SHORT_LATENCY);
    return is_like(own, others, LIKE_LATENCY) &&
           is_like(bandwidth_of(links, a, b), bandwidth_of(links, other[0], other[1]),
                   LIKE_BANDWIDTH);
}

/* Adds the seconds by bytes of messages between two hosts to `list`. */
static void add_curve(json_t *list, const Links *links, int a, int b, bool both,
                      const Cluster *machine) {
    const char *pattern = both ? SEND_RECEIVE_TEXT : SEND_TEXT;
    const int devices[] = {links->first[a], links->first[b]};
    Series series = {0};
    double seconds = 0;
    for (int64_t bytes = LEAST_MESSAGE; bytes <= MOST_BYTES && seconds < LONG_MESSAGE; bytes *= 4) {
        Arena *arena = arena_create();
        Stream stream = stream_of(arena, pattern, devices[0], devices[1], (double)bytes);
        const Plan *plan = stream.set.plan;
        time_streams(&stream, 1, BATCH);
        seconds = fmax(stream.seconds - moving_seconds(machine, plan), stream.seconds / 2);
        series_add(&series, (both ? 1 : 2) * step_bytes(plan, &plan->steps.at[0]), seconds);
        arena_destroy(arena);
    }
    Curve curve = {series.count, series.at};
    bool same = machine->devices[devices[0]].processor == machine->devices[devices[1]].processor;
    json_array_append_new(list, json_pack("{s:s,s:i,s:i,s:i,s:b,s:o}", "what",
                                          both ? "send-receive" : "send", "ranks", 2, "groups", 1,
                                          "processors", same ? 1 : 2, "alone", false, "seconds",
                                          json_curve(&curve)));
}

/* Pairs whose latency and bandwidth are similar to those of one of them. */
typedef struct PairClass {
    int pair[2], count; // one of the pairs, and their number
    json_t *measured;
} PairClass;

static json_t *json_link(const Links *links, int a, int b, json_t *measured) {
    return json_pack("{s:f,s:f,s:O}", "latency", latency_of(links, a, b), "bandwidth",
                     bandwidth_of(links, a, b), "measured", measured);
}

/* Puts every pair into a class; returns the number of classes. */
static int classify(const Links *links, PairClass *classes, int *class_of) {
    int count = 0;
    for (int a = 0; a < links->count; a++)
        for (int b = a + 1; b < links->count; b++) {
            int c = 0;
            while (c < count && !are_alike(links, a, b, classes[c].pair)) c++;
            if (c == count) classes[count++] = (PairClass){{a, b}, 0, NULL};
            classes[c].count++;
            class_of[a * links->count + b] = c;
        }
    return count;
}

static void add_pairs(Arena *arena, json_t *to, const Hosts *hosts, const Links *links,
                      const Cluster *machine) {
    int *class_of = arena_array(arena, int, links->count * links->count), largest = 0;
    PairClass *classes = arena_array(arena, PairClass, links->count * links->count);
    int count = classify(links, classes, class_of);
    json_t *pairs = json_array();
    for (int c = 0; c < count; c++) {
        show_progress("messages by size, between hosts of kind %d of %d", c + 1, count);
        classes[c].measured = json_array();
        add_curve(classes[c].measured, links, classes[c].pair[0], classes[c].pair[1], true,
                  machine);
        add_curve(classes[c].measured, links, classes[c].pair[0], classes[c].pair[1], false,
                  machine);
        if (classes[c].count > classes[largest].count) largest = c;
    }
    for (int a = 0; a < links->count; a++)
        for (int b = a + 1; b < links->count; b++) {
            int c = class_of[a * links->count + b];
            if (c == largest) continue;
            json_t *link = json_link(links, a, b, classes[c].measured);
            json_object_set_new(
                link, "between",
                json_pack("[s,s]", hosts->name[links->first[a]], hosts->name[links->first[b]]));
            json_array_append_new(pairs, link);
        }
    json_object_set_new(to, "remote",
                        json_link(links, classes[largest].pair[0], classes[largest].pair[1],
                                  classes[largest].measured));
    json_object_set_new(to, "pairs", pairs);
    for (int c = 0; c < count; c++) json_decref(classes[c].measured);
}

/* ---- uplinks ---- */

/* Messages from ranks of some hosts to ranks of other hosts. */
typedef struct Flows {
    int count, *from, *to; // devices
} Flows;

/* Flows that share nothing are as fast together as alone; noise makes them a little slower. */
static const double SHARED = 0.8;

typedef struct Together {
    double rate; // bytes a second of all flows
    bool slowed; // some flow is slower than alone
} Together;

/* Measures flows at the same time; backwards with `into`. Each has as many bytes as it sends in
 * FLOWS_BATCH alone. */
static Together flows_together(const Hosts *hosts, const Links *links, const Flows *flows,
                               bool into) {
    Arena *arena = arena_create();
    Stream *streams = arena_array(arena, Stream, flows->count);
    double sum = 0, longest = 0;
    for (int i = 0; i < flows->count; i++) {
        int from = into ? flows->to[i] : flows->from[i], to = into ? flows->from[i] : flows->to[i];
        double bytes = FLOWS_BATCH * links->rate[hosts->of[from] * links->count + hosts->of[to]];
        int runs = (int)ceil(bytes / MOST_BYTES);
        streams[i] = stream_of(arena, SEND_TEXT, from, to, bytes / runs);
        streams[i].runs = runs;
        sum += bytes;
    }
    time_streams(streams, flows->count, 0);
    for (int i = 0; i < flows->count; i++)
        longest = fmax(longest, streams[i].seconds * streams[i].runs);
    arena_destroy(arena);
    return (Together){sum / longest, longest > FLOWS_BATCH / SHARED};
}

/* Returns the sum of the rates of flows when each is alone. */
static double rates_alone(const Hosts *hosts, const Links *links, const Flows *flows, bool into) {
    double sum = 0;
    for (int i = 0; i < flows->count; i++) {
        int from = hosts->of[flows->from[i]], to = hosts->of[flows->to[i]];
        sum += links->rate[into ? to * links->count + from : from * links->count + to];
    }
    return sum;
}

/* Returns the flows of the senders to ranks of hosts outside: to the first rank of each such host,
 * then to the second ranks, and so on, until no rank is left. */
static Flows flows_out(Arena *arena, const Hosts *hosts, const int *senders, int count,
                       const bool *inside) {
    Flows flows = {0, arena_array(arena, int, count), arena_array(arena, int, count)};
    int *ranks = arena_array(arena, int, world_size());
    bool any = true;
    for (int place = 0; any && flows.count < count; place++) {
        any = false;
        for (int host = 0; host < hosts->count && flows.count < count; host++) {
            if (inside[host] || place >= host_ranks(hosts, host, ranks)) continue;
            flows.from[flows.count] = senders[flows.count];
            flows.to[flows.count++] = ranks[place];
            any = true;
        }
    }
    return flows;
}

/* Adds an uplink of hosts when their senders are slower together than alone, out or in. `of` is
 * the JSON of the hosts. */
static void add_uplink(const Hosts *hosts, const Links *links, const Flows *flows, json_t *of,
                       json_t *uplinks) {
    if (flows->count > 1) {
        double out = flows_together(hosts, links, flows, false).rate,
               in = flows_together(hosts, links, flows, true).rate;
        if (out < SHARED * rates_alone(hosts, links, flows, false) ||
            in < SHARED * rates_alone(hosts, links, flows, true))
            json_array_append_new(uplinks,
                                  json_pack("{s:O,s:f,s:f}", "of", of, "bandwidth", out, "in", in));
    }
    json_decref(of);
}

/* Adds the card of a host of one rank, which sends no faster to several hosts than to the one to
 * which it sends fastest. */
static void add_own_card(const Hosts *hosts, const Links *links, int host, json_t *uplinks) {
    json_array_append_new(uplinks, json_pack("{s:s,s:f,s:f}", "of", hosts->name[links->first[host]],
                                             "bandwidth", best_rate(links, host, false), "in",
                                             best_rate(links, host, true)));
}

/* Adds the cards of hosts. Two hosts of one rank each share nothing. */
static void add_cards(Arena *arena, const Hosts *hosts, const Links *links, json_t *uplinks) {
    int *ranks = arena_array(arena, int, world_size());
    for (int host = 0; host < hosts->count; host++) {
        bool *inside = arena_array(arena, bool, hosts->count);
        inside[host] = true;
        int count = host_ranks(hosts, host, ranks);
        if (count < 2 && hosts->count > 2) add_own_card(hosts, links, host, uplinks);
        if (count < 2) continue;
        show_progress("the card of host %s", hosts->name[ranks[0]]);
        Flows flows = flows_out(arena, hosts, ranks, count, inside);
        add_uplink(hosts, links, &flows, json_string(hosts->name[ranks[0]]), uplinks);
    }
}

/* Returns whether any of a round's pairs is slower when all of them send. With `turned`, every
 * second pair sends in the other direction. */
static bool round_slows(Arena *arena, const Hosts *hosts, const Links *links, const Round *round,
                        bool turned) {
    Flows flows = {round->count, arena_array(arena, int, round->count),
                   arena_array(arena, int, round->count)};
    for (int i = 0; i < round->count; i++) {
        bool back = turned && i % 2;
        flows.from[i] = links->first[round->pair[i][back]];
        flows.to[i] = links->first[round->pair[i][!back]];
    }
    return flows_together(hosts, links, &flows, false).slowed;
}

/* Returns whether hosts share anything: whether some rounds of disjoint pairs are slow. */
static bool any_slowed(Arena *arena, const Hosts *hosts, const Links *links) {
    enum { TRIES = 3 };
    for (int number = 0; number < TRIES; number++) {
        Round round = round_of(arena, links->count, number);
        if (round_slows(arena, hosts, links, &round, false) ||
            round_slows(arena, hosts, links, &round, true))
            return true;
    }
    return false;
}

/* Returns whether two hosts are slower together than alone when they send to two others, for
 * several choices of these: two receivers may share a switch, too. */
static bool hosts_share(Arena *arena, const Hosts *hosts, const Links *links, int a, int b) {
    enum { CHOICES = 3 };
    int outside[links->count], count = 0;
    for (int host = 0; host < links->count; host++)
        if (host != a && host != b) outside[count++] = links->first[host];
    for (int choice = 1; choice < count && choice <= CHOICES; choice++) {
        Flows flows = {2, arena_array(arena, int, 2), arena_array(arena, int, 2)};
        flows.from[0] = links->first[a], flows.from[1] = links->first[b];
        flows.to[0] = outside[0], flows.to[1] = outside[choice];
        if (flows_together(hosts, links, &flows, false).rate >=
            SHARED * rates_alone(hosts, links, &flows, false))
            return false;
    }
    return true;
}

/* Adds the uplink of the hosts of one set. */
static void add_switch(Arena *arena, const Hosts *hosts, const Links *links, const int *set,
                       int head, json_t *uplinks) {
    bool *inside = arena_array(arena, bool, hosts->count);
    json_t *names = json_array();
    int count = 0, *senders = arena_array(arena, int, hosts->count);
    for (int host = head; host < hosts->count; host++)
        if (set[host] == head) {
            senders[count++] = links->first[host];
            inside[host] = true;
            json_array_append_new(names, json_string(hosts->name[links->first[host]]));
        }
    Flows flows = flows_out(arena, hosts, senders, count, inside);
    add_uplink(hosts, links, &flows, names, uplinks);
}

/* Adds the switches that several hosts share: sets of hosts, found by comparing each host with the
 * first host of each set. */
static void add_switches(Arena *arena, const Hosts *hosts, const Links *links, json_t *uplinks) {
    int *set = arena_array(arena, int, hosts->count);
    show_progress("switches between hosts");
    if (!any_slowed(arena, hosts, links)) return;
    for (int host = 0; host < hosts->count; host++) {
        set[host] = host;
        for (int other = 0; other < host && set[host] == host; other++)
            if (set[other] == other && hosts_share(arena, hosts, links, other, host))
                set[host] = other;
    }
    for (int head = 0; head < hosts->count; head++)
        if (set[head] == head) add_switch(arena, hosts, links, set, head, uplinks);
}

void measure_hosts(json_t *to, const Hosts *hosts, const Cluster *machine) {
    Arena *arena = arena_create();
    json_t *uplinks = json_array();
    Links links = measure_links(arena, hosts);
    add_pairs(arena, to, hosts, &links, machine);
    add_cards(arena, hosts, &links, uplinks);
    if (hosts->count > 3) add_switches(arena, hosts, &links, uplinks);
    if (json_array_size(uplinks)) json_object_set(to, "uplinks", uplinks);
    json_decref(uplinks);
    arena_destroy(arena);
}
