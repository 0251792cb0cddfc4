/* Heartbeats: short messages, several times a second, between rank 0 and each other rank on a
 * connection of their own. A thread of each process sends them (watchdog.h). So a rank that
 * computes has a heartbeat, and a stopped process has none. */
#pragma once

#include <stdint.h>

typedef enum HeartbeatKind {
    HEARTBEAT_NONE,    // no message
    HEARTBEAT_GONE,    // the connection is closed
    HEARTBEAT_BUSY,    // the rank waits for no other rank
    HEARTBEAT_WAITING, // the rank waits for other ranks
    HEARTBEAT_LATE,    // the rank has waited for longer than HETU_TIMEOUT
    HEARTBEAT_LEAVING, // the session is over
    HEARTBEAT_END      // from rank 0: all ranks end; `text` is the message
} HeartbeatKind;

typedef struct Heartbeat {
    int32_t kind;        // HeartbeatKind
    uint32_t signals;    // signal bits (base/signals.h)
    int32_t task, error; // arguments of watchdog_report_failure; error 0: no failure
    char text[248];      // what the rank is doing; HEARTBEAT_END: the message
} Heartbeat;

/* Connects every rank with rank 0, which accepts later, in heartbeat_hear. All ranks call it. */
void heartbeat_open(void);

/* Sends a heartbeat without waiting: on rank 0 to any rank, elsewhere to rank 0. */
void heartbeat_send(int rank, const Heartbeat *heartbeat);

/* Returns a rank's heartbeat since the last call: an END if there was one, else the newest; without
 * any, one of kind GONE if the connection is closed, else of kind NONE. */
Heartbeat heartbeat_hear(int rank);

/* Closes the connections in a forked child process. */
void heartbeat_forget(void);
