/* An acceptor: a listening socket whose callers send a record of fixed size first. Callers are
 * served concurrently. A silent caller delays no other and is disconnected after some seconds. */
#pragma once

#include <stddef.h>

typedef struct Caller Caller;

typedef struct Acceptor {
    int listener;
    size_t bytes; // size of the record
    int caller_count;
    Caller *callers;
} Acceptor;

Acceptor acceptor_open(int listener, size_t bytes);

/* Returns the socket of the next caller whose record is complete, and copies the record to *record.
 * Returns -1 if there is none before `deadline` (socket_clock). */
int acceptor_next(Acceptor *acceptor, void *record, double deadline);

/* Closes the listening socket and all callers whose records are incomplete. */
void acceptor_close(Acceptor *acceptor);
