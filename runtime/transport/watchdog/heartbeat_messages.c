/* Sends and hears heartbeats over connections of their own. watchdog.c finds dead ranks. */
#include "transport/watchdog/heartbeat_messages.h"

#include "base/memory.h"
#include "transport/meet/acceptor.h"
#include "transport/fabric/sockets.h"
#include "transport/world.h"

#include <hetu/kernel.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECT_SECONDS = 30 };

/* The first message on a connection to rank 0. */
typedef struct Hello {
    SocketKey key;
    int32_t rank;
} Hello;

/* The address of rank 0 and the key to present there, which rank 0 broadcasts. */
typedef struct Call {
    SocketKey key;
    SocketPlace place;
    uint64_t node;
} Call;

typedef struct Line {
    int socket; // -1: not connected yet, or closed
    bool closed;
    size_t done; // bytes received of the next heartbeat
    Heartbeat next;
} Line;

static struct {
    Call call;
    Acceptor acceptor; // on rank 0
    Line *lines;       // by rank; on ranks other than 0, only the connection to rank 0
    int count;
} heartbeat;

static void open_acceptor(uint64_t node, bool alone) {
    int listener = socket_listen(&heartbeat.call.place, alone);
    heartbeat.call.key = socket_key();
    heartbeat.call.node = node;
    heartbeat.acceptor = acceptor_open(listener, sizeof(Hello));
}

static void call_zero(uint64_t node) {
    Hello hello = {heartbeat.call.key, world_rank()};
    int socket =
        socket_connect(&heartbeat.call.place, heartbeat.call.node == node, CONNECT_SECONDS);
    if (socket < 0 || !socket_write(socket, &hello, sizeof hello))
        ht_fail("no connection to rank 0");
    heartbeat.lines[0].socket = socket;
}

void heartbeat_open(void) {
    uint64_t node = socket_node();
    bool zero = world_rank() == 0, alone = world_node_size() == world_size();
    heartbeat.count = zero ? world_size() : 1;
    heartbeat.lines = memory_array(heartbeat.count, sizeof *heartbeat.lines);
    for (int i = 0; i < heartbeat.count; i++) heartbeat.lines[i].socket = -1;
    if (zero) open_acceptor(node, alone);
    world_broadcast(&heartbeat.call, sizeof heartbeat.call);
    if (!zero) call_zero(node);
}

/* Accepts the connections of other ranks. Closes connections that do not present the key. */
static void answer_calls(void) {
    Hello hello;
    int socket;
    while (heartbeat.acceptor.bytes &&
           (socket = acceptor_next(&heartbeat.acceptor, &hello, 0)) >= 0) {
        bool known = socket_key_equal(&hello.key, &heartbeat.call.key) && hello.rank > 0 &&
                     hello.rank < heartbeat.count;
        if (known && heartbeat.lines[hello.rank].socket < 0)
            heartbeat.lines[hello.rank].socket = socket;
        else close(socket);
    }
}

static void hang_up(Line *line) {
    if (line->socket >= 0) close(line->socket);
    line->socket = -1;
    line->closed = true;
}

void heartbeat_send(int rank, const Heartbeat *message) {
    Line *line = &heartbeat.lines[rank];
    if (line->socket < 0) return;
    ssize_t sent = socket_put(line->socket, message, sizeof *message);
    if (sent > 0 && sent < (ssize_t)sizeof *message) hang_up(line);
}

Heartbeat heartbeat_hear(int rank) {
    Line *line = &heartbeat.lines[rank];
    Heartbeat heard = {.kind = HEARTBEAT_NONE};
    answer_calls();
    while (line->socket >= 0) {
        ssize_t got = socket_get(line->socket, (char *)&line->next + line->done,
                                 sizeof line->next - line->done);
        if (got < 0) hang_up(line);
        if (got <= 0) break;
        line->done += (size_t)got;
        if (line->done == sizeof line->next) {
            line->done = 0;
            line->next.text[sizeof line->next.text - 1] = 0;
            if (heard.kind != HEARTBEAT_END) heard = line->next;
        }
    }
    if (line->closed && heard.kind == HEARTBEAT_NONE) heard.kind = HEARTBEAT_GONE;
    return heard;
}

void heartbeat_forget(void) {
    for (int i = 0; i < heartbeat.count; i++)
        if (heartbeat.lines[i].socket >= 0) close(heartbeat.lines[i].socket);
    if (heartbeat.acceptor.bytes) acceptor_close(&heartbeat.acceptor);
    free(heartbeat.lines);
    memset(&heartbeat, 0, sizeof heartbeat);
}
