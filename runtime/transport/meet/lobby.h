/* A listening socket whose callers present themselves by a record of fixed size. Callers are served
 * side by side: one that stays silent keeps nobody waiting, and is sent away after some seconds. */
#ifndef TRANSPORT_MEET_LOBBY_H
#define TRANSPORT_MEET_LOBBY_H

#include <stddef.h>

typedef struct LobbyGuest LobbyGuest;

typedef struct Lobby {
    int listener;
    size_t bytes; // of the record
    int guest_count;
    LobbyGuest *guests;
} Lobby;

Lobby lobby_open(int listener, size_t bytes);

/* The next caller whose record is whole; it goes to *record, the socket to the caller of this
 * function. -1 when none is before `deadline` (socket_clock). */
int lobby_next(Lobby *lobby, void *record, double deadline);

/* Closes the listener, and sends away who is still there. */
void lobby_close(Lobby *lobby);

#endif
