/* Decides that a rank is dead or hangs, after HETU_TIMEOUT seconds (DEFAULT_TIMEOUT), and ends the
 * run. */
#include "transport/watchdog/watchdog.h"

#include "transport/meet/rendezvous.h"
#include "transport/watchdog/heartbeat_messages.h"
#include "transport/world.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/c_locale.h"
#include "base/signals.h"

#include <hetu/kernel.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_TIMEOUT = 600,     // seconds without a sign after which a rank is dead
    TICKS = 10,                // ticks per second
    TICK = 1000000000 / TICKS, // nanoseconds
    NAP = 1000000,             // nanoseconds between two looks of watchdog_close
    GRACE = 4                  // ticks between a closed connection and the end of all ranks
};

typedef enum WatchStage {
    STAGE_NONE,     // there is no watch
    STAGE_START,    // the ranks are meeting
    STAGE_TOGETHER, // the ranks are connected
    STAGE_LEAVING,  // this rank needs no other rank any more
    STAGE_OVER      // the thread ends
} WatchStage;

/* The newest failure of a rank at a background task. */
typedef struct Failure {
    int task, error;
} Failure;

/* State of another rank. */
typedef struct Peer {
    int silent; // ticks since the last heartbeat of this peer
    Heartbeat last;
    int gone; // ticks since the connection was closed; 0: open
    bool leaving;
} Peer;

static struct {
    pthread_mutex_t lock; // for all members below; the thread holds it while awake
    WatchStage stage;
    int rank;
    int limit;       // HETU_TIMEOUT in ticks; 0: no limit
    int ticks;       // ticks since the start
    int waited;      // ticks in a wait since the last progress
    unsigned moves;  // value of the counter of progress at the last tick
    Heartbeat own;   // this rank's latest heartbeat
    Failure failed;  // of this rank
    sigset_t ending; // signals that end this process
    Peer *peers;     // by rank; on ranks other than 0, only rank 0
    int peer_count;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_int waits;  // depth of nested waits; the main thread writes it
static atomic_uint moves; // counts progress; the main thread and exchange threads write it

static void add(atomic_int *number, int more) {
    atomic_store_explicit(number, atomic_load_explicit(number, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

void watchdog_report_progress(void) { atomic_fetch_add_explicit(&moves, 1, memory_order_relaxed); }

void watchdog_begin_wait(void) {
    watchdog_report_progress();
    add(&waits, 1);
}

void watchdog_end_wait(void) {
    add(&waits, -1);
    watchdog_report_progress();
}

/* ---- ending ---- */

/* On rank 0: ends all ranks. */
_Noreturn static void end_all(const char *why) {
    Heartbeat end = {.kind = HEARTBEAT_END};
    snprintf(end.text, sizeof end.text, "%s", why);
    for (int rank = 1; rank < watch.peer_count; rank++) heartbeat_send(rank, &end);
    fail_end(end.text);
}

static int seconds(int ticks) { return ticks / TICKS; }

/* Ends this rank because the ranks have not met in time. The message names stopped ranks. */
_Noreturn static void end_start(void) {
    char stopped[512], why[1024];
    if (peers_stopped(stopped, sizeof stopped))
        snprintf(why, sizeof why,
                 "the ranks did not come together within %d s (HETU_TIMEOUT): %s stopped",
                 seconds(watch.limit), stopped);
    else
        snprintf(why, sizeof why,
                 "the ranks did not come together within %d s (HETU_TIMEOUT): some did not call "
                 "ht_open, or have ended",
                 seconds(watch.limit));
    fail_end(why);
}

/* ---- this rank ---- */

static void count_wait(void) {
    unsigned now = atomic_load_explicit(&moves, memory_order_relaxed);
    bool waiting = atomic_load_explicit(&waits, memory_order_relaxed) > 0;
    watch.waited = waiting && now == watch.moves ? watch.waited + 1 : 0;
    watch.moves = now;
}

static Heartbeat take_heartbeat(void) {
    bool late = watch.limit && watch.waited > watch.limit,
         waiting = atomic_load_explicit(&waits, memory_order_relaxed) > 0;
    Heartbeat own = {.kind = watch.stage == STAGE_LEAVING ? HEARTBEAT_LEAVING
                             : late                       ? HEARTBEAT_LATE
                             : waiting                    ? HEARTBEAT_WAITING
                                                          : HEARTBEAT_BUSY};
    own.signals = told_heartbeat();
    own.task = watch.failed.task;
    own.error = watch.failed.error;
    fail_describe(own.text, sizeof own.text);
    return own;
}

/* ---- the other ranks ---- */

static void hear(int rank) {
    Peer *peer = &watch.peers[rank];
    Heartbeat heard = heartbeat_hear(rank);
    if (heard.kind == HEARTBEAT_END) fail_end(heard.text);
    peer->gone += !peer->gone && heard.kind == HEARTBEAT_GONE;
    peer->leaving = peer->leaving || heard.kind == HEARTBEAT_LEAVING;
    if (heard.kind == HEARTBEAT_NONE || heard.kind == HEARTBEAT_GONE) return;
    told_hear(heard.signals);
    peer->silent = 0;
    peer->last = heard;
}

/* Returns whether a rank has ended or had no heartbeat for HETU_TIMEOUT; `why` gets a message. */
static bool is_lost(int rank, char *why, size_t size) {
    const Peer *peer = &watch.peers[rank];
    const char *doing = peer->last.text;
    if (peer->gone && peer->leaving) return false;
    if (peer->gone > GRACE && (!watch.limit || peer->silent <= watch.limit))
        snprintf(why, size, "rank %d has ended%.140s", rank, doing);
    else if (watch.limit && peer->silent > watch.limit)
        snprintf(
            why, size,
            "rank %d has stopped%.140s: nothing was heard of its process for %d s (HETU_TIMEOUT)",
            rank, doing, seconds(watch.limit));
    else return false;
    return true;
}

/* On rank 0: returns the rank for which other ranks wait. The awaited rank is one without a
 * heartbeat, else the first rank that is in no wait; -1: there is none. */
static int find_awaited(void) {
    int busy = -1;
    for (int rank = watch.peer_count - 1; rank >= 0; rank--) {
        if (watch.peers[rank].silent > 2 * GRACE) return rank;
        if (watch.peers[rank].last.kind == HEARTBEAT_BUSY) busy = rank;
    }
    return busy;
}

/* On rank 0: ends all ranks because rank `late` has waited for HETU_TIMEOUT. */
_Noreturn static void end_wait(int late) {
    char why[sizeof((Heartbeat *)0)->text];
    int awaited = find_awaited();
    const char *doing = awaited < 0 ? "" : watch.peers[awaited].last.text;
    if (awaited < 0)
        snprintf(why, sizeof why, "all ranks wait for each other, rank %d for %d s (HETU_TIMEOUT)",
                 late, seconds(watch.limit));
    else
        snprintf(why, sizeof why, "rank %d keeps rank %d waiting for %d s (HETU_TIMEOUT)%.140s",
                 awaited, late, seconds(watch.limit), doing);
    end_all(why);
}

/* Reads the heartbeats of a rank, and calls `end` if the rank is lost. Runs once a tick. */
static void look_after(int rank, void (*end)(const char *why)) {
    char why[sizeof((Heartbeat *)0)->text];
    watch.peers[rank].silent++;
    watch.peers[rank].gone += watch.peers[rank].gone > 0;
    hear(rank);
    if (!is_lost(rank, why, sizeof why)) return;
    if (watch.limit && watch.peers[rank].silent > watch.limit) launch_guard();
    end(why);
}

/* Runs a tick of rank 0. Sends nothing to ranks without a heartbeat: messages would pile up. */
static void lead(void) {
    int late = watch.peers[0].last.kind == HEARTBEAT_LATE ? 0 : -1;
    for (int rank = 1; rank < watch.peer_count; rank++) {
        look_after(rank, end_all);
        if (watch.peers[rank].last.kind == HEARTBEAT_LATE) late = rank;
        if (watch.peers[rank].silent <= 2 * GRACE) heartbeat_send(rank, &watch.own);
    }
    if (late >= 0) end_wait(late);
}

/* Runs a tick of a rank without connections: the rank watches only its own waits. */
static void look_inward(void) {
    char why[128];
    snprintf(why, sizeof why, "other ranks keep rank %d waiting for %d s (HETU_TIMEOUT)",
             world_rank(), seconds(watch.limit));
    if (watch.own.kind == HEARTBEAT_LATE) fail_end(why);
}

/* Runs a tick of a rank other than 0. */
static void follow(void) {
    if (!watch.peers[0].leaving) look_after(0, fail_end);
    heartbeat_send(0, &watch.own);
}

/* ---- the thread ---- */

static void tick(void) {
    watch.ticks++;
    count_wait();
    if (watch.stage == STAGE_START && watch.limit && watch.ticks > watch.limit + 1) end_start();
    if (watch.stage < STAGE_TOGETHER) return;
    watch.own = take_heartbeat();
    if (!watch.peers) {
        look_inward();
    } else if (watch.rank == 0) {
        watch.peers[0].last = watch.own;
        lead();
        told_tick();
    } else {
        follow();
    }
}

static bool ranks_are_meeting(void) {
    pthread_mutex_lock(&watch.lock);
    bool coming = watch.stage == STAGE_START;
    pthread_mutex_unlock(&watch.lock);
    return coming;
}

/* Sleeps for a tick. While the ranks meet, this thread takes the signals that end the process, and
 * first removes the meeting's files. If the ranks have met, the main thread gets the signal. */
static void rest(WatchStage stage) {
    const struct timespec one = {.tv_nsec = TICK};
    int ended =
        stage == STAGE_START ? sigtimedwait(&watch.ending, NULL, &one) : nanosleep(&one, NULL);
    if (ended <= 0) return;
    if (!ranks_are_meeting()) {
        kill(getpid(), ended);
        return;
    }
    world_leave(true);
    signal(ended, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &watch.ending, NULL);
    raise(ended);
}

static void *keep_watch(void *argument) {
    (void)argument;
    for (WatchStage stage = STAGE_START; stage != STAGE_OVER;) {
        rest(stage);
        pthread_mutex_lock(&watch.lock);
        stage = watch.stage;
        if (stage != STAGE_OVER) tick();
        pthread_mutex_unlock(&watch.lock);
    }
    return NULL;
}

/* Starts the thread with all signals blocked, so that the main thread gets them. */
static void start_thread(void) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, keep_watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) ht_fail("cannot start a thread: %s", plain_error(error));
    pthread_detach(thread);
}

/* ---- failures of background tasks ---- */

void watchdog_report_failure(int task, int error) {
    pthread_mutex_lock(&watch.lock);
    watch.failed = (Failure){task, error};
    pthread_mutex_unlock(&watch.lock);
}

int watchdog_failure_of(int task, int *rank) {
    int error = 0;
    pthread_mutex_lock(&watch.lock);
    for (int other = *rank + 1; other < watch.peer_count && !error; other++)
        if (watch.peers[other].last.task == task && watch.peers[other].last.error) {
            error = watch.peers[other].last.error;
            *rank = other;
        }
    pthread_mutex_unlock(&watch.lock);
    return error;
}

/* ---- from the main thread ---- */

/* Returns the signals that end a process and that this process does not handle. */
static sigset_t ending_signals(void) {
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    sigset_t ending;
    sigemptyset(&ending);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action;
        if (!sigaction(signals[i], NULL, &action) && action.sa_handler == SIG_DFL)
            sigaddset(&ending, signals[i]);
    }
    return ending;
}

int watchdog_timeout(void) {
    const char *text = getenv("HETU_TIMEOUT");
    char *end;
    long seconds = text ? strtol(text, &end, 10) : DEFAULT_TIMEOUT;
    if (text && (end == text || *end || seconds < 0 || seconds > 1000000))
        ht_fail("HETU_TIMEOUT=%s is no number of seconds", text);
    return (int)seconds;
}

void watchdog_open(void) {
    watch.stage = STAGE_START;
    watch.ending = ending_signals();
    pthread_sigmask(SIG_BLOCK, &watch.ending, NULL);
    watch.limit = watchdog_timeout() * TICKS;
    start_thread();
}

void watchdog_connect(bool heartbeat) {
    if (heartbeat) heartbeat_open();
    Peer *peers = heartbeat ? memory_array(world_size(), sizeof *peers) : NULL;
    pthread_mutex_lock(&watch.lock);
    watch.rank = world_rank();
    watch.peers = peers;
    watch.peer_count = !heartbeat ? 0 : watch.rank ? 1 : world_size();
    watch.stage = STAGE_TOGETHER;
    pthread_mutex_unlock(&watch.lock);
    pthread_sigmask(SIG_UNBLOCK, &watch.ending, NULL);
}

/* Returns whether all other ranks have ended. */
static bool all_gone(void) {
    bool all = true;
    for (int rank = 1; rank < watch.peer_count; rank++) {
        hear(rank);
        all = all && watch.peers[rank].gone;
    }
    return all;
}

void watchdog_close(void) {
    pthread_mutex_lock(&watch.lock);
    watch.stage = STAGE_LEAVING;
    watch.own = take_heartbeat();
    for (int rank = watch.rank ? 0 : 1; rank < watch.peer_count; rank++)
        heartbeat_send(rank, &watch.own);
    while (watch.rank == 0 && !all_gone()) {
        pthread_mutex_unlock(&watch.lock);
        nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
        pthread_mutex_lock(&watch.lock);
    }
    if (watch.rank == 0) watch.stage = STAGE_OVER;
    pthread_mutex_unlock(&watch.lock);
}

void watchdog_wait_for_cause(void) {
    if (watch.stage == STAGE_START || watch.stage == STAGE_TOGETHER)
        nanosleep(&(struct timespec){.tv_nsec = 2 * GRACE * TICK}, NULL);
}

void watchdog_forget(void) {
    watch.stage = STAGE_NONE;
    heartbeat_forget();
}
