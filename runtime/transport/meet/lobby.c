#include "transport/meet/lobby.h"

#include "transport/fabric/sockets.h"

#include <hetu/kernel.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 5, MOST_GUESTS = 4096 }; // PATIENCE: seconds that a guest may stay silent

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

static void lobby_admit(Lobby *lobby) {
    int socket = socket_accept(lobby->listener);
    if (socket < 0) return;
    lobby->guests =
        checked_realloc(lobby->guests, sizeof *lobby->guests * (size_t)(lobby->guest_count + 1));
    lobby->guests[lobby->guest_count++] =
        (LobbyGuest){socket, 0, socket_clock(), checked_realloc(NULL, lobby->bytes)};
}

/* Waits until somebody comes or says something, or `deadline` passes. */
static void lobby_wait(const Lobby *lobby, double deadline) {
    double left = deadline - socket_clock();
    struct pollfd *entries =
        checked_realloc(NULL, sizeof *entries * (size_t)(lobby->guest_count + 1));
    entries[0] = (struct pollfd){.fd = lobby->guest_count < MOST_GUESTS ? lobby->listener : -1,
                                 .events = POLLIN};
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
    for (;;) {
        lobby_admit(lobby);
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
