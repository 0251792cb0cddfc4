/* Times messages between hosts, and decides which links are lowered. */
#include "session/control/links.h"

#include "base/c_locale.h"
#include "base/memory.h"
#include "session/control/pace.h"
#include "transport/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PERIOD = 10,           // steps from one look to the next, at least
    AGAIN = 2,             // steps from a suspicious look to the next
    IN_ROW = 3,            // looks in a row that lower or heal a link
    BEST_OF = 3,           // messages of a look at a link under suspicion
    SMALL_BYTES = 1 << 16, // sizes of a message
    LEAST_BYTES = 1 << 17,
    MOST_BYTES = 1 << 20
};

static const double LOW = 0.4, WHOLE = 0.7; // fractions of the bandwidth

/* What the cluster file says. */
static const char *const *host_names;
static const int *device_runs;
static const double *told_links;

void ht_register_links(const char *const *hosts, const int *devices, const double *links) {
    host_names = hosts;
    device_runs = devices;
    told_links = links;
}

/* A link of two hosts, a < b. */
typedef struct HostLink {
    double latency, bandwidth[2]; // of the cluster file: seconds; bytes a second from a, from b
    double seen;                  // fraction of the bandwidth in the last look, of the slower way
    double carried;               // bytes a second of that way
    double told;                  // bytes a second that were told when the link was lowered
    bool lowered;
    bool suspicious; // the last look disagrees with `lowered`
    int in_row;      // looks of BEST_OF messages that disagreed, in a row
} HostLink;

static struct {
    int host_count;  // hosts that have ranks; below 2: nothing is looked at
    int *first_rank; // by host
    HostLink *links; // by host a * host_count + b, a < b
    bool opened;
    int next_round; // the next round to look at
    int64_t due;    // step from which on the next look is due
    double rests;   // time until which no look is due, unless a link is suspicious
    int changes;
} state;

static HostLink *link_between(int a, int b) {
    return &state.links[a < b ? a * state.host_count + b : b * state.host_count + a];
}

/* ---- opening ---- */

/* Sets the links of all hosts to the usual one, then those that the cluster file tells apart. */
static void take_links(void) {
    const double *own = told_links + 3;
    for (int i = 0; i < state.host_count * state.host_count; i++)
        state.links[i] = (HostLink){
            .latency = told_links[0], .bandwidth = {told_links[1], told_links[2]}, .seen = 1};
    for (; own[0] >= 0; own += 5)
        if (own[1] < state.host_count)
            *link_between((int)own[0], (int)own[1]) =
                (HostLink){.latency = own[2], .bandwidth = {own[3], own[4]}, .seen = 1};
}

/* Sets the first rank of each host that has ranks. Hosts are numbered by their first devices. */
static void take_hosts(void) {
    int count = 0, device = 0;
    while (host_names[count]) count++;
    state.first_rank = memory_array(count, sizeof *state.first_rank);
    for (int h = 0; h < count; h++) state.first_rank[h] = -1;
    for (const int *run = device_runs; *run >= 0 && device < world_size(); run += 2) {
        if (state.first_rank[run[0]] < 0) state.first_rank[run[0]] = device;
        device += run[1];
    }
    while (state.host_count < count && state.first_rank[state.host_count] >= 0) state.host_count++;
    if (device < world_size()) state.host_count = 0; // the file has fewer devices than there are
}

static void open_links(void) {
    state.opened = true;
    if (!host_names || world_node_size() == world_size()) return;
    take_hosts();
    if (state.host_count < 2) return;
    state.links = memory_array((int64_t)state.host_count * state.host_count, sizeof *state.links);
    take_links();
}

void links_close(void) {
    free(state.first_rank);
    free(state.links);
    memset(&state, 0, sizeof state);
}

/* ---- rounds ---- */

/* Returns the number of rounds in which every host meets every other one. */
static int round_count(void) { return state.host_count - 1 + state.host_count % 2; }

/* Returns the host that a host meets in a round; -1: none. One host stays, the others turn. */
static int met_by(int host, int round) {
    int turning = round_count(), other;
    if (host == turning) other = round;
    else if (host == round) other = turning;
    else other = (2 * round - host + 2 * turning) % turning;
    return other < state.host_count ? other : -1;
}

/* ---- messages, on all ranks ---- */

/* Returns the host whose first rank this is; -1: it is none. */
static int own_host(void) {
    for (int h = 0; h < state.host_count; h++)
        if (state.first_rank[h] == world_rank()) return h;
    return -1;
}

/* Returns the bytes of a message: what the link carries in 4 ms. `small`: a lowered link's. */
static size_t message_bytes(const HostLink *link, bool small) {
    double most = 0.004 * fmin(link->bandwidth[0], link->bandwidth[1]);
    return small ? SMALL_BYTES : (size_t)fmax(LEAST_BYTES, fmin(most, MOST_BYTES));
}

static void pass(void *data, size_t bytes, int rank, bool sends) {
    HostTransfer transfer = {data, bytes, rank};
    world_exchange(&transfer, sends, &transfer, !sends);
}

/* Sends or receives a message, and the answer to it. Returns the seconds. */
static double time_message(void *data, size_t bytes, int rank, bool sends) {
    char answer = 0;
    double begin = pace_now();
    pass(data, bytes, rank, sends);
    pass(&answer, 1, rank, !sends);
    return pace_now() - begin;
}

/* Exchanges messages with another host, there and back. Returns the least seconds of those that
 * this rank sent. */
static double time_link(int host, int other, const Command *command, void *data) {
    size_t bytes = message_bytes(link_between(host, other), command->look.small);
    int rank = state.first_rank[other];
    double least = INFINITY;
    for (int i = 0; i < command->look.tries; i++) {
        time_message(data, 1, rank, host < other); // both are there
        for (int way = 0; way < 2; way++) {
            bool sends = (host < other) == !way;
            double seconds = time_message(data, bytes, rank, sends);
            least = sends ? fmin(least, seconds) : least;
        }
    }
    return least;
}

void links_look(ht_session *session, const Command *command, Payload *payload) {
    (void)session;
    if (!state.opened) open_links();
    double seconds[LINK_ROUNDS] = {0},
           *all = payload->seconds ? payload->seconds : memory_array(world_size(), sizeof seconds);
    int host = own_host();
    void *data = host >= 0 ? memory_array(MOST_BYTES, 1) : NULL;
    world_least(0); // what the step has sent is there
    for (int i = 0; i < LINK_ROUNDS; i++) {
        int other =
            host >= 0 && command->look.round[i] >= 0 ? met_by(host, command->look.round[i]) : -1;
        if (other >= 0) seconds[i] = time_link(host, other, command, data);
    }
    world_gather(seconds, sizeof seconds, all);
    free(data);
    if (!payload->seconds) free(all);
}

/* ---- decisions, on rank 0 ---- */

/* Returns the bytes a second of a message, without what latency and TCP's slow start take. */
static double carried(const HostLink *link, size_t bytes, double seconds) {
    const double turns = 10; // times the latency
    return (double)bytes / fmax(seconds - turns * link->latency, seconds / 4);
}

/* Returns whether the environment has HETU_BALANCE=`word`. */
static bool environment_says(const char *word) {
    const char *own = getenv("HETU_BALANCE");
    return own && !strcmp(own, word);
}

static void say(int64_t step, int a, int b, const HostLink *link) {
    char line[256];
    if (environment_says("quiet")) return;
    if (link->lowered)
        plain_format(line, sizeof line,
                     "the link of %s and %s carries %.3g MB/s; by the cluster file it is %.3g MB/s",
                     host_names[a], host_names[b], link->carried / 1e6,
                     link->carried / link->seen / 1e6);
    else
        plain_format(line, sizeof line, "the link of %s and %s carries %.3g MB/s again",
                     host_names[a], host_names[b], link->carried / 1e6);
    fprintf(stderr, "hetu: links: step %lld: %s\n", (long long)step, line);
}

/* Takes what was seen of a link, and names the link when it becomes lowered or healed. */
static void judge(HostLink *link, int64_t step, int a, int b, bool best) {
    link->suspicious = link->lowered ? link->seen >= WHOLE : link->seen < LOW;
    if (best || !link->suspicious) link->in_row = link->suspicious ? link->in_row + 1 : 0;
    if (link->in_row < IN_ROW) return;
    link->lowered = !link->lowered;
    link->suspicious = false;
    link->in_row = 0;
    link->told = link->carried;
    state.changes++;
    say(step, a, b, link);
}

static void take_round(const Command *command, const double *all, int i, int64_t step) {
    for (int a = 0; a < state.host_count; a++) {
        int b = met_by(a, command->look.round[i]);
        if (b <= a) continue;
        HostLink *link = link_between(a, b);
        size_t bytes = message_bytes(link, command->look.small);
        double there = carried(link, bytes, all[LINK_ROUNDS * state.first_rank[a] + i]),
               back = carried(link, bytes, all[LINK_ROUNDS * state.first_rank[b] + i]);
        bool first = there / link->bandwidth[0] < back / link->bandwidth[1];
        link->carried = first ? there : back;
        link->seen = link->carried / link->bandwidth[!first];
        judge(link, step, a, b, command->look.tries == BEST_OF);
    }
}

/* Returns whether a link of a round is suspicious, or lowered. */
static bool round_is(int round, bool suspicious) {
    for (int a = 0; a < state.host_count; a++) {
        int b = met_by(a, round);
        if (b > a && (suspicious ? link_between(a, b)->suspicious : link_between(a, b)->lowered))
            return true;
    }
    return false;
}

/* Chooses the rounds of a look: those with suspicious links, or else the next ones. */
static void choose_rounds(Command *command) {
    int count = 0, rounds = round_count();
    for (int i = 0; i < LINK_ROUNDS; i++) command->look.round[i] = -1;
    for (int r = 0; r < rounds && count < LINK_ROUNDS; r++)
        if (round_is(r, true)) command->look.round[count++] = r;
    command->look.tries = count ? BEST_OF : 1;
    for (; command->look.tries == 1 && count < LINK_ROUNDS && count < rounds; count++) {
        command->look.round[count] = state.next_round;
        command->look.small |= round_is(state.next_round, false); // a lowered link takes its time
        state.next_round = (state.next_round + 1) % rounds;
    }
}

void links_turn(ht_program *program) {
    const double share = 50, share_lowered = 20; // looks take one part of so many of the time
    if (!program->trains || program->eager || world_size() == 1) return;
    if (!state.opened && !environment_says("0")) open_links();
    bool waits = links_settled() && pace_now() < state.rests;
    if (state.host_count < 2 || program->step < state.due || waits) return;
    Command command = {.kind = COMMAND_LOOK};
    choose_rounds(&command);
    Payload payload = {
        .seconds = memory_array((int64_t)world_size() * LINK_ROUNDS, sizeof *payload.seconds)};
    double begin = pace_now();
    session_issue(program->session, &command, &payload);
    if (command.look.tries == 1)
        state.rests =
            pace_now() + (command.look.small ? share_lowered : share) * (pace_now() - begin);
    for (int i = 0; i < LINK_ROUNDS && command.look.round[i] >= 0; i++)
        take_round(&command, payload.seconds, i, program->step);
    state.due = program->step + (links_settled() ? PERIOD : AGAIN);
    free(payload.seconds);
}

int links_changes(void) { return state.changes; }

bool links_lowered(void) {
    for (int i = 0; i < state.host_count * state.host_count; i++)
        if (state.links[i].lowered) return true;
    return false;
}

bool links_settled(void) {
    for (int i = 0; i < state.host_count * state.host_count; i++)
        if (state.links[i].suspicious) return false;
    return true;
}

char *links_word(void) {
    char *word;
    size_t size;
    FILE *out = open_memstream(&word, &size);
    if (!out) ht_fail("no memory for an option");
    for (int a = 0, told = 0; a < state.host_count; a++)
        for (int b = a + 1; b < state.host_count; b++)
            if (link_between(a, b)->lowered) {
                char number[32];
                plain_format(number, sizeof number, "%.4g", link_between(a, b)->told);
                fprintf(out, "%s%s:%s:%s", told++ ? "," : "--links=", host_names[a], host_names[b],
                        number);
            }
    if (fclose(out)) ht_fail("no memory for an option");
    return word;
}
