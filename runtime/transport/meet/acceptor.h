/* A listening socket whose callers present themselves by a record of fixed size. Callers are served
 * side by side: one that stays silent keeps nobody waiting, and is sent away after some seconds. */
#ifndef TRANSPORT_MEET_ACCEPTOR_H
#define TRANSPORT_MEET_ACCEPTOR_H

#include <stddef.h>

typedef struct Caller Caller;

typedef struct Acceptor {
    int listener;
    size_t bytes; // of the record
    int caller_count;
    Caller *callers;
} Acceptor;

Acceptor acceptor_open(int listener, size_t bytes);

/* The next caller whose record is whole; it goes to *record, the socket to the caller of this
 * function. -1 when none is before `deadline` (socket_clock). */
int acceptor_next(Acceptor *acceptor, void *record, double deadline);

/* Closes the listener, and sends away who is still there. */
void acceptor_close(Acceptor *acceptor);

#endif
