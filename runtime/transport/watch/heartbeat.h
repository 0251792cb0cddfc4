/* The heartbeat of a program's ranks: short messages several times a second between rank 0 and each
 * other rank, on connections of their own. A thread of each process sends them
 * (transport/watch/watch.h), so a rank that computes has a heartbeat, and one that is stopped has
 * none. */
#ifndef TRANSPORT_WATCH_HEARTBEAT_H
#define TRANSPORT_WATCH_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum HeartbeatKind {
    HEARTBEAT_NONE,    // nothing has come
    HEARTBEAT_GONE,    // the connection is closed
    HEARTBEAT_BUSY,    // the rank waits for nobody
    HEARTBEAT_WAITING, // it waits for other ranks
    HEARTBEAT_LATE,    // so for longer than it may
    HEARTBEAT_LEAVING, // the session is over
    HEARTBEAT_END      // of rank 0: all end, `text` says why
} HeartbeatKind;

typedef struct Heartbeat {
    int32_t kind;        // HeartbeatKind
    uint32_t signals;    // base/signals.h
    int32_t task, error; // watch_report; 0: nothing has failed
    char text[248];
} Heartbeat;

/* Connects every rank with rank 0; all ranks together. Rank 0 hears of the others when they have
 * come. */
void heartbeat_open(void);

/* Sends without waiting. On rank 0 to any rank, elsewhere to rank 0 only. */
void heartbeat_send(int rank, const Heartbeat *heartbeat);

/* The weightiest of what has come from a rank since the last call: an end, the closed connection,
 * else the last. */
Heartbeat heartbeat_hear(int rank);

/* In a child process: gives up its copies of the connections. */
void heartbeat_forget(void);

#endif
