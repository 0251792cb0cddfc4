#include "transport/meet/lobby.h"

#include "transport/fabric/sockets.h"

#include <hetu/kernel.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    PATIENCE = 5, // seconds that a guest may stay silent
    MOST_GUESTS = 1024,
    TURN = 64 // guests that are let in before all are heard
};

struct LobbyGuest {
    int socket;
    size_t done; // bytes of the record
    double since;
    char *record;
};

Lobby lobby_open(int listener, size_t bytes) {
    return (Lobby){.listener = listener, .bytes = bytes};
}

static void *checked_realloc(void *memory, size_t bytes) {
    memory = realloc(memory, bytes);
    if (!memory) ht_fail("no memory to let ranks in");
    return memory;
}

static void lobby_dismiss(Lobby *lobby, int guest) {
    free(lobby->guests[guest].record);
    lobby->guests[guest] = lobby->guests[--lobby->guest_count];
}

/* How many guests may be silent at once: they take half of the files that this process may open at
 * most. */
static int most_guests(void) {
    struct rlimit files;
    rlim_t half = getrlimit(RLIMIT_NOFILE, &files) ? MOST_GUESTS : files.rlim_cur / 2;
    return half < 2 ? 2 : half < MOST_GUESTS ? (int)half : MOST_GUESTS;
}

/* Sends away the guest that has been silent for longest. */
static void lobby_dismiss_oldest(Lobby *lobby) {
    int oldest = 0;
    for (int i = 1; i < lobby->guest_count; i++)
        if (lobby->guests[i].since < lobby->guests[oldest].since) oldest = i;
    close(lobby->guests[oldest].socket);
    lobby_dismiss(lobby, oldest);
}

/* Lets in one that waits at the door; false when there is none. Strangers who say nothing cannot
 * fill the lobby: the newest takes the oldest's place. */
static bool lobby_admit(Lobby *lobby, int most) {
    int socket = socket_accept(lobby->listener);
    bool full = socket < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    if (lobby->guest_count && (full || (socket >= 0 && lobby->guest_count >= most)))
        lobby_dismiss_oldest(lobby);
    if (full) socket = socket_accept(lobby->listener);
    if (socket < 0) return false;
    lobby->guests =
        checked_realloc(lobby->guests, sizeof *lobby->guests * (size_t)(lobby->guest_count + 1));
    lobby->guests[lobby->guest_count++] =
        (LobbyGuest){socket, 0, socket_clock(), checked_realloc(NULL, lobby->bytes)};
    return true;
}

/* Waits until somebody comes or says something, or `deadline` passes. */
static void lobby_wait(const Lobby *lobby, double deadline) {
    double left = deadline - socket_clock();
    struct pollfd *entries =
        checked_realloc(NULL, sizeof *entries * (size_t)(lobby->guest_count + 1));
    entries[0] = (struct pollfd){.fd = lobby->listener, .events = POLLIN};
    for (int i = 0; i < lobby->guest_count; i++)
        entries[i + 1] = (struct pollfd){.fd = lobby->guests[i].socket, .events = POLLIN};
    poll(entries, (nfds_t)lobby->guest_count + 1,
         left <= 0  ? 0
         : left < 1 ? (int)(left * 1000) + 1
                    : 1000);
    free(entries);
}

/* Reads what the guests say; returns the socket of one that has said all, or -1. */
static int lobby_listen(Lobby *lobby, void *record) {
    for (int i = lobby->guest_count - 1; i >= 0; i--) {
        LobbyGuest *guest = &lobby->guests[i];
        ssize_t said =
            socket_get(guest->socket, guest->record + guest->done, lobby->bytes - guest->done);
        guest->done += said > 0 ? (size_t)said : 0;
        if (guest->done == lobby->bytes) {
            int socket = guest->socket;
            memcpy(record, guest->record, lobby->bytes);
            lobby_dismiss(lobby, i);
            return socket;
        }
        if (said < 0 || socket_clock() - guest->since > PATIENCE) {
            close(guest->socket);
            lobby_dismiss(lobby, i);
        }
    }
    return -1;
}

int lobby_next(Lobby *lobby, void *record, double deadline) {
    int most = most_guests(), turn = most / 2 < TURN ? most / 2 : TURN;
    for (;;) {
        for (int i = 0; i < turn && lobby_admit(lobby, most); i++) {
        }
        int socket = lobby_listen(lobby, record);
        if (socket >= 0 || socket_clock() >= deadline) return socket;
        lobby_wait(lobby, deadline);
    }
}

void lobby_close(Lobby *lobby) {
    while (lobby->guest_count) {
        close(lobby->guests[lobby->guest_count - 1].socket);
        lobby_dismiss(lobby, lobby->guest_count - 1);
    }
    if (lobby->listener >= 0) close(lobby->listener);
    free(lobby->guests);
    *lobby = (Lobby){.listener = -1};
}
