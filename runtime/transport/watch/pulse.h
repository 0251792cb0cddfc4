/* The pulse of a program's ranks: short messages several times a second between rank 0 and each
 * other rank, on connections of their own. A thread of each process sends them
 * (transport/watch/watch.h), so a rank that computes has a pulse, and one that is stopped has
 * none. */
#ifndef TRANSPORT_WATCH_PULSE_H
#define TRANSPORT_WATCH_PULSE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum PulseKind {
    PULSE_NONE,    // nothing has come
    PULSE_GONE,    // the connection is closed
    PULSE_BUSY,    // the rank waits for nobody
    PULSE_WAITING, // it waits for other ranks
    PULSE_LATE,    // so for longer than it may
    PULSE_LEAVING, // the session is over
    PULSE_END      // of rank 0: all end, `text` says why
} PulseKind;

typedef struct Pulse {
    int32_t kind;        // PulseKind
    uint32_t signals;    // base/signals.h
    int32_t task, error; // watch_report; 0: nothing has failed
    char text[248];
} Pulse;

/* Connects every rank with rank 0; all ranks together. Rank 0 hears of the others when they have
 * come. */
void pulse_open(void);

/* Sends without waiting. On rank 0 to any rank, elsewhere to rank 0 only. */
void pulse_send(int rank, const Pulse *pulse);

/* The weightiest of what has come from a rank since the last call: an end, the closed connection,
 * else the last. */
Pulse pulse_hear(int rank);

/* In a child process: gives up its copies of the connections. */
void pulse_forget(void);

#endif
