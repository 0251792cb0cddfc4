/* Serves all callers of a listening socket concurrently, and drops silent callers. */
#include "transport/meet/acceptor.h"

#include "transport/fabric/sockets.h"

#include <hetu/kernel.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    PATIENCE = 5, // seconds in which a caller must send its record
    MOST_CALLERS = 1024,
    TURN = 64 // connections that are accepted before callers' data are read
};

struct Caller {
    int socket;
    size_t done;  // bytes received of the record
    double since; // time of the connection (socket_clock)
    char *record;
};

Acceptor acceptor_open(int listener, size_t bytes) {
    return (Acceptor){.listener = listener, .bytes = bytes};
}

static void *checked_realloc(void *memory, size_t bytes) {
    memory = realloc(memory, bytes);
    if (!memory) ht_fail("no memory to let ranks in");
    return memory;
}

static void acceptor_drop(Acceptor *acceptor, int caller) {
    free(acceptor->callers[caller].record);
    acceptor->callers[caller] = acceptor->callers[--acceptor->caller_count];
}

/* Returns how many callers may be waiting at once: half of the files that this process may open. */
static int most_callers(void) {
    struct rlimit files;
    rlim_t half = getrlimit(RLIMIT_NOFILE, &files) ? MOST_CALLERS : files.rlim_cur / 2;
    return half < 2 ? 2 : half < MOST_CALLERS ? (int)half : MOST_CALLERS;
}

/* Disconnects the caller that has waited longest. */
static void acceptor_drop_oldest(Acceptor *acceptor) {
    int oldest = 0;
    for (int i = 1; i < acceptor->caller_count; i++)
        if (acceptor->callers[i].since < acceptor->callers[oldest].since) oldest = i;
    close(acceptor->callers[oldest].socket);
    acceptor_drop(acceptor, oldest);
}

/* Accepts one pending connection; returns false if there is none. If there are too many callers,
 * the new caller replaces the oldest, so that callers that send nothing cannot block others. */
static bool acceptor_accept(Acceptor *acceptor, int most) {
    int socket = socket_accept(acceptor->listener);
    bool full = socket < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    if (acceptor->caller_count && (full || (socket >= 0 && acceptor->caller_count >= most)))
        acceptor_drop_oldest(acceptor);
    if (full) socket = socket_accept(acceptor->listener);
    if (socket < 0) return false;
    acceptor->callers = checked_realloc(
        acceptor->callers, sizeof *acceptor->callers * (size_t)(acceptor->caller_count + 1));
    acceptor->callers[acceptor->caller_count++] =
        (Caller){socket, 0, socket_clock(), checked_realloc(NULL, acceptor->bytes)};
    return true;
}

/* Waits for a new caller, for data of a caller, or until `deadline`. */
static void acceptor_wait(const Acceptor *acceptor, double deadline) {
    double left = deadline - socket_clock();
    struct pollfd *entries =
        checked_realloc(NULL, sizeof *entries * (size_t)(acceptor->caller_count + 1));
    entries[0] = (struct pollfd){.fd = acceptor->listener, .events = POLLIN};
    for (int i = 0; i < acceptor->caller_count; i++)
        entries[i + 1] = (struct pollfd){.fd = acceptor->callers[i].socket, .events = POLLIN};
    poll(entries, (nfds_t)acceptor->caller_count + 1,
         left <= 0  ? 0
         : left < 1 ? (int)(left * 1000) + 1
                    : 1000);
    free(entries);
}

/* Reads callers' data. Copies the first full record to *record; returns its socket; -1: none. */
static int acceptor_read(Acceptor *acceptor, void *record) {
    for (int i = acceptor->caller_count - 1; i >= 0; i--) {
        Caller *caller = &acceptor->callers[i];
        ssize_t said = socket_get(caller->socket, caller->record + caller->done,
                                  acceptor->bytes - caller->done);
        caller->done += said > 0 ? (size_t)said : 0;
        if (caller->done == acceptor->bytes) {
            int socket = caller->socket;
            memcpy(record, caller->record, acceptor->bytes);
            acceptor_drop(acceptor, i);
            return socket;
        }
        if (said < 0 || socket_clock() - caller->since > PATIENCE) {
            close(caller->socket);
            acceptor_drop(acceptor, i);
        }
    }
    return -1;
}

int acceptor_next(Acceptor *acceptor, void *record, double deadline) {
    int most = most_callers(), turn = most / 2 < TURN ? most / 2 : TURN;
    for (;;) {
        for (int i = 0; i < turn && acceptor_accept(acceptor, most); i++) {
        }
        int socket = acceptor_read(acceptor, record);
        if (socket >= 0 || socket_clock() >= deadline) return socket;
        acceptor_wait(acceptor, deadline);
    }
}

void acceptor_close(Acceptor *acceptor) {
    while (acceptor->caller_count) {
        close(acceptor->callers[acceptor->caller_count - 1].socket);
        acceptor_drop(acceptor, acceptor->caller_count - 1);
    }
    if (acceptor->listener >= 0) close(acceptor->listener);
    free(acceptor->callers);
    *acceptor = (Acceptor){.listener = -1};
}
