/* Rank 0 collects all ranks, without MPI. rendezvous_file.c writes rank 0's address. */
#include "transport/meet/rendezvous.h"

#include "base/memory.h"
#include "transport/meet/rendezvous_file.h"
#include "transport/meet/acceptor.h"
#include "transport/fabric/sockets.h"

#include <hetu/kernel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HELLO_SECONDS = 5, PAUSE = 20000000 }; // PAUSE: nanoseconds between two reads of the file

static const double NEVER = 1e9; // seconds

/* The first message on a connection. */
typedef struct Hello {
    SocketKey key;
    uint64_t node;
    int32_t rank, size;
    SocketPlace place;
} Hello;

/* Rank 0's answer to a Hello. */
typedef enum AnswerKind {
    ANSWER_WELCOME = 0x600d,
    ANSWER_TAKEN = 0x7a4e, // another process has this rank
    ANSWER_SIZE = 0x512e   // the numbers of ranks differ
} AnswerKind;
typedef struct Answer {
    SocketKey key;
    int32_t kind;
} Answer;

typedef struct Gathering {
    const Launch *launch;
    double deadline;
    Acceptor acceptor;
    SocketKey ask, answer;
    Hello mine, *all; // all: every rank's Hello, which rank 0 sends to all ranks
    bool taken;       // another process has this rank
    Meeting meeting;
} Gathering;

static const Launch *unfinished; // the rendezvous in progress; NULL: none

static void pause_briefly(void) { nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL); }

static double earlier(double a, double b) { return a < b ? a : b; }

/* ---- rank 0 ---- */

static int missing(const Gathering *g, char *list, size_t size) {
    int count = 0;
    *list = 0;
    for (int rank = 1; rank < g->launch->size; rank++)
        if (g->meeting.socket[rank] < 0) {
            size_t length = strlen(list);
            if (count++ < 8)
                snprintf(list + length, size - length, "%s%d", length ? ", " : "", rank);
        }
    return count;
}

static AnswerKind judge(const Gathering *g, const Hello *hello) {
    if (hello->size != g->launch->size) return ANSWER_SIZE;
    int known =
        hello->rank <= 0 || hello->rank >= g->launch->size ? -1 : g->meeting.socket[hello->rank];
    return hello->rank <= 0 || hello->rank >= g->launch->size ||
                   (known >= 0 && socket_first_closed(&known, 1) < 0)
               ? ANSWER_TAKEN
               : ANSWER_WELCOME;
}

/* Answers a caller, and adds it as a rank. Disconnects a caller that lacks the key or whose rank is
 * taken. Ends the program if the caller has another number of ranks. */
static void admit(Gathering *g, int socket, const Hello *hello) {
    if (!socket_key_equal(&hello->key, &g->ask)) {
        close(socket);
        return;
    }
    Answer answer = {g->answer, judge(g, hello)};
    bool told = socket_write(socket, &answer, sizeof answer);
    if (answer.kind == ANSWER_SIZE)
        ht_fail("rank %d was told that there are %d ranks, rank 0 that there are %d", hello->rank,
                hello->size, g->launch->size);
    if (!told || answer.kind != ANSWER_WELCOME) {
        close(socket);
        return;
    }
    if (g->meeting.socket[hello->rank] >= 0) close(g->meeting.socket[hello->rank]);
    g->meeting.socket[hello->rank] = socket;
    g->all[hello->rank] = *hello;
}

/* Removes ranks that died during the rendezvous, so that other processes can take their numbers. */
static void forget_dead(Gathering *g) {
    int dead;
    while ((dead = socket_first_closed(g->meeting.socket, g->launch->size)) >= 0) {
        close(g->meeting.socket[dead]);
        g->meeting.socket[dead] = -1;
    }
}

/* Ends the program because some ranks did not come. */
_Noreturn static void fail_missing(const Gathering *g, const char *list, int count) {
    char stopped[512];
    int halted = peers_stopped(stopped, sizeof stopped);
    ht_fail("%d of %d ranks did not come%s%s within the time of HETU_TIMEOUT: %s%s%s%s", count,
            g->launch->size, *g->launch->path ? " to " : "", g->launch->path, list,
            count > 8 ? ", ..." : "", halted ? "; stopped: " : "", stopped);
}

static void gather_ranks(Gathering *g) {
    RendezvousFile record = {
        .size = g->launch->size, .ask = g->ask, .answer = g->answer, .place = g->mine.place};
    rendezvous_file_write(g->launch, &record);
    char list[128];
    for (int count; (count = missing(g, list, sizeof list));) {
        Hello hello;
        if (socket_clock() > g->deadline) fail_missing(g, list, count);
        int socket =
            acceptor_next(&g->acceptor, &hello, earlier(socket_clock() + 0.5, g->deadline));
        if (socket >= 0) admit(g, socket, &hello);
        forget_dead(g);
        rendezvous_file_keep(g->launch, &record);
    }
    rendezvous_file_remove();
    for (int rank = 1; rank < g->launch->size; rank++)
        if (!socket_write(g->meeting.socket[rank], g->all,
                          sizeof *g->all * (size_t)g->launch->size))
            ht_fail("rank %d has ended", rank);
}

/* ---- ranks 1, 2, ... ---- */

/* Connects to rank 0. Returns false if the file is of an earlier run, or rank 0 refuses. */
static bool follow(Gathering *g, const RendezvousFile *record) {
    double patience = earlier(socket_clock() + HELLO_SECONDS, g->deadline);
    int socket =
        socket_connect(&record->place, record->node == g->mine.node, patience - socket_clock());
    Answer answer;
    g->mine.key = g->ask = record->ask;
    if (socket < 0) return false;
    if (!socket_write(socket, &g->mine, sizeof g->mine) ||
        !socket_read(socket, &answer, sizeof answer, patience) ||
        !socket_key_equal(&answer.key, &record->answer)) {
        close(socket);
        return false;
    }
    if (answer.kind == ANSWER_SIZE)
        ht_fail("rank %d was told that there are %d ranks, rank 0 that there are %d",
                g->launch->rank, g->launch->size, record->size);
    g->taken = answer.kind == ANSWER_TAKEN;
    if (answer.kind != ANSWER_WELCOME) {
        close(socket);
        return false;
    }
    if (!socket_read(socket, g->all, sizeof *g->all * (size_t)g->launch->size, -1))
        ht_fail("rank 0 has ended before all ranks came%s%s", *g->launch->path ? " to " : "",
                g->launch->path);
    g->meeting.socket[0] = socket;
    return true;
}

/* Ends the program because rank 0 did not come. */
_Noreturn static void fail_alone(const Gathering *g) {
    char stopped[512];
    if (g->taken) ht_fail("another process is rank %d, too", g->launch->rank);
    int halted = peers_stopped(stopped, sizeof stopped);
    ht_fail("rank 0 did not come%s%s within the time of HETU_TIMEOUT (this is rank %d)%s%s",
            *g->launch->path ? " to " : "", g->launch->path, g->launch->rank,
            halted ? "; stopped: " : "", stopped);
}

static void seek(Gathering *g) {
    RendezvousFile record;
    while (!rendezvous_file_read(g->launch, &record) || !follow(g, &record)) {
        if (socket_clock() > g->deadline) fail_alone(g);
        pause_briefly();
    }
}

/* Connects this rank to all lower ranks but 0. */
static void call_lower(Gathering *g) {
    for (int rank = 1; rank < g->launch->rank; rank++) {
        int socket =
            socket_connect(&g->all[rank].place, g->all[rank].node == g->mine.node, HELLO_SECONDS);
        if (socket < 0 || !socket_write(socket, &g->mine, sizeof g->mine))
            ht_fail("no connection to rank %d", rank);
        g->meeting.socket[rank] = socket;
    }
}

static void await_higher(Gathering *g) {
    for (int left = g->launch->size - 1 - g->launch->rank; left > 0;) {
        Hello hello;
        int socket = acceptor_next(&g->acceptor, &hello, socket_clock() + NEVER);
        bool known = socket_key_equal(&hello.key, &g->ask) && hello.rank > g->launch->rank &&
                     hello.rank < g->launch->size && g->meeting.socket[hello.rank] < 0;
        if (!known) {
            close(socket);
            continue;
        }
        g->meeting.socket[hello.rank] = socket;
        left--;
    }
}

/* ---- all ranks ---- */

static Meeting finish(Gathering *g) {
    for (int rank = 0; rank < g->launch->size; rank++) g->meeting.node[rank] = g->all[rank].node;
    acceptor_close(&g->acceptor);
    free(g->all);
    unfinished = NULL;
    return g->meeting;
}

void rendezvous_abandon(void) {
    if (unfinished) rendezvous_file_abandon(unfinished);
}

Meeting rendezvous_meet(const Launch *launch, int seconds) {
    if (!*launch->path && !(launch->one_node && *launch->run))
        ht_fail(
            "%d ranks need a place to meet: set HETU_RENDEZVOUS to a folder that all of them see",
            launch->size);
    unfinished = launch;
    Gathering g = {.launch = launch,
                   .deadline = socket_clock() + (seconds ? seconds : NEVER),
                   .all = memory_array(launch->size, sizeof(Hello))};
    g.meeting = (Meeting){.socket = memory_array(launch->size, sizeof(int)),
                          .node = memory_array(launch->size, sizeof(uint64_t))};
    for (int rank = 0; rank < launch->size; rank++) g.meeting.socket[rank] = -1;
    g.mine = (Hello){.node = socket_node(), .rank = launch->rank, .size = launch->size};
    g.acceptor = acceptor_open(socket_listen(&g.mine.place, rendezvous_file_is_local(launch)),
                               sizeof(Hello));
    if (launch->rank == 0) {
        g.ask = socket_key();
        g.answer = socket_key();
        g.all[0] = g.mine;
        gather_ranks(&g);
    } else {
        seek(&g);
        call_lower(&g);
        await_higher(&g);
    }
    return finish(&g);
}
