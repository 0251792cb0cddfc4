/* Connects the ranks: by MPI where MPI started the program, else by the fabric (sockets and shared
 * memory, transport/fabric). */
#include "transport/world.h"

#include "base/fail.h"
#include "base/memory.h"

#include "transport/meet/rendezvous.h"
#include "transport/watchdog/watchdog.h"
#include "transport/world_kind.h"

#include <hetu/kernel.h>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FIRST_WAITS = 100,  // milliseconds that a machine's first rank awaits the launcher's signals
    OTHERS_WAIT = 1000, // milliseconds that its other ranks await these signals
    NAP = 10,           // milliseconds between two checks for these signals
    TURN = 50,          // milliseconds between the ends of two ranks
    MOST_TURNS = 3      // most turns that a rank waits in addition to its first
};

/* The transports, in the order in which world_open asks them. */
static const WorldKind *const kinds[] = {
#ifdef HETU_MPI
    &world_mpi,
#endif
    &world_fabric,
};

static struct {
    const WorldKind *kind;    // NULL: no other rank is connected
    const WorldKind *opening; // the transport during world_open
    bool joined;              // this process is, or was, one of several ranks
    bool in_turn;             // the launcher ends all ranks when one is gone (await_turn)
    WorldPlace place;
} world = {.place = {0, 1, 0, 1}};

/* Returns the transport that the environment asks for; NULL: this process has no other ranks. */
static const WorldKind *find_kind(void) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->launched()) return kinds[i];
    return NULL;
}

/* ---- ending ---- */

static void abandon(void) {
    if (world.joined) peers_end_stopped();
    if (world.opening && world.opening->abandon) world.opening->abandon();
}

static atomic_bool told_to_end;

static void on_told(int signal_number) {
    (void)signal_number;
    atomic_store(&told_to_end, true);
}

/* Handles the signals by which the launcher begins to end this rank: SIGCONT, then SIGTERM. */
static void heed_launcher(void) {
    struct sigaction action = {.sa_handler = on_told, .sa_flags = SA_RESTART};
    sigset_t heeded;
    sigemptyset(&action.sa_mask);
    sigemptyset(&heeded);
    sigaddset(&heeded, SIGCONT);
    sigaddset(&heeded, SIGTERM);
    sigaction(SIGCONT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, &heeded, NULL);
}

static void nap(int milliseconds) {
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
}

/* Waits until this rank may end, under a launcher that ends all ranks when one is gone. Open MPI
 * fails if many ranks end at once. So one rank of each machine, or a killed one, ends first. mpirun
 * then sleeps a second after SIGCONT and again after SIGTERM, unless a rank ends meanwhile. The
 * other ranks wait for these signals and end one by one. */
static void await_turn(void) {
    int turn = world.place.node_rank > 0 ? world.place.node_rank : 0;
    for (int left = turn ? OTHERS_WAIT : FIRST_WAITS; left > 0 && !atomic_load(&told_to_end);
         left -= NAP)
        nap(NAP);
    nap(TURN * (1 + (turn < MOST_TURNS ? turn : MOST_TURNS)));
}

void world_leave(bool told) {
    if (told) atomic_store(&told_to_end, true);
    if (world.in_turn) heed_launcher();
    abandon();
    if (world.in_turn) await_turn();
}

static void end_all(int status) {
    abandon();
    if (world.kind && world.kind->abort) world.kind->abort(status);
}

static const FailRanks ranks = {world_rank, world_size, world_leave, end_all};

void world_open(int *argc, char ***argv, int use) {
    watchdog_timeout();
    world.opening = find_kind();
    if (!world.opening) return;
    fail_connect(&ranks);
    Launch launch;
    if (launch_find(&launch))
        world.place = (WorldPlace){
            .rank = launch.rank, .size = launch.size, .node_rank = launch.local, .node_size = 1};
    world.joined = true;
    world.in_turn = world.opening->ended_together;
    watchdog_open();
    world.place = world.opening->open(argc, argv, use & WORLD_CHANNELS);
    world.kind = world.opening;
    world.opening = NULL;
    local_ranks_met();
    watchdog_connect(use & WORLD_HEARTBEAT);
}

void world_close(void) {
    const WorldKind *kind = world.kind;
    if (!kind) return;
    watchdog_begin_wait();
    world.kind = NULL;
    kind->close();
    watchdog_end_wait();
    watchdog_close();
    local_ranks_close();
    world.place = (WorldPlace){0, 1, 0, 1};
}

void world_forget(void) {
    if (world.kind) watchdog_forget();
    if (world.kind && world.kind->forget) world.kind->forget();
    local_ranks_forget();
    world.kind = NULL;
    world.joined = world.in_turn = false;
    world.place = (WorldPlace){0, 1, 0, 1};
}

int world_rank(void) { return world.place.rank; }

int world_size(void) { return world.place.size; }

int world_node_rank(void) { return world.place.node_rank; }

int world_node_size(void) { return world.place.node_size; }

void world_await(void *data, size_t bytes) {
    if (world.kind) world.kind->broadcast(data, bytes);
}

void world_broadcast(void *data, size_t bytes) {
    watchdog_begin_wait();
    world_await(data, bytes);
    watchdog_end_wait();
}

void world_exchange(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                    int receive_count) {
    if (!world.kind) return;
    watchdog_begin_wait();
    world.kind->exchange(sends, send_count, receives, receive_count);
    watchdog_end_wait();
}

int world_least(int mine) {
    watchdog_begin_wait();
    int least = world.kind ? world.kind->least(mine) : mine;
    watchdog_end_wait();
    return least;
}

void world_gather(const void *mine, size_t bytes, void *all) {
    watchdog_begin_wait();
    if (world.kind) world.kind->gather(mine, bytes, all);
    else memcpy(all, mine, bytes);
    watchdog_end_wait();
}

void world_check(void) {
    if (world.kind && world.kind->check) world.kind->check();
}

void channels_open(void) {
    watchdog_begin_wait();
    if (world.kind) world.kind->open_lanes();
    watchdog_end_wait();
}

void channels_close(void) {
    watchdog_begin_wait();
    // A rank that waits for a slower one would find the closed line of a faster one.
    if (world.kind) world.kind->least(0);
    if (world.kind) world.kind->close_lanes();
    watchdog_end_wait();
}

int channels_tags(void) { return world.kind ? world.kind->tags() : INT_MAX; }

void post_begin(int lane, Post *post) { world.kind->begin(lane, post); }

bool post_done(int lane, Post *post) { return world.kind->done(lane, post); }

/* ---- bytes of all ranks on rank 0 ---- */

enum { PIECE = 1 << 22 }; // bytes of a message

/* Sends the bytes of rank `rank` in pieces to rank 0, which receives each in `piece`. */
static void bring(int rank, const char *mine, int64_t bytes, void *piece,
                  const Collector *collector) {
    int64_t most = PIECE / collector->unit * collector->unit;
    for (int64_t at = 0; at < bytes; at += most) {
        size_t length = (size_t)(bytes - at < most ? bytes - at : most);
        HostTransfer send = {(void *)(mine + at), length, 0}, receive = {piece, length, rank};
        world_exchange(&send, world_rank() == rank, &receive, world_rank() == 0);
        if (!world_rank()) collector->take(rank, piece, (int64_t)length, collector->argument);
    }
}

void world_collect(const void *mine, int64_t bytes, const Collector *collector) {
    int size = world_size();
    int64_t *all = memory_array(size, sizeof *all);
    void *piece = world_rank() ? NULL : memory_array(PIECE, 1);
    world_gather(&bytes, sizeof bytes, all);
    if (!world_rank() && bytes) collector->take(0, mine, bytes, collector->argument);
    for (int rank = 1; rank < size; rank++) bring(rank, mine, all[rank], piece, collector);
    free(piece);
    free(all);
}
