#define _GNU_SOURCE
#include "transport/watch/pulse.h"

#include "base/memory.h"
#include "transport/meet/acceptor.h"
#include "transport/fabric/sockets.h"
#include "transport/world.h"

#include <hetu/kernel.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECT_SECONDS = 30 };

/* What a rank says first. */
typedef struct Hello {
    SocketKey key;
    int32_t rank;
} Hello;

/* Where rank 0 is called. */
typedef struct Call {
    SocketKey key;
    SocketPlace place;
    uint64_t node;
} Call;

typedef struct Line {
    int socket; // -1: not connected yet, or no more
    bool closed;
    size_t done; // bytes of the next pulse
    Pulse next;
} Line;

static struct {
    Call call;
    Acceptor acceptor; // of rank 0
    Line *lines;       // by rank; other ranks than 0 have that of rank 0
    int count;
} pulse;

static void open_lobby(uint64_t node, bool alone) {
    int listener = socket_listen(&pulse.call.place, alone);
    pulse.call.key = socket_key();
    pulse.call.node = node;
    pulse.acceptor = acceptor_open(listener, sizeof(Hello));
}

static void call_zero(uint64_t node) {
    Hello hello = {pulse.call.key, world_rank()};
    int socket = socket_connect(&pulse.call.place, pulse.call.node == node, CONNECT_SECONDS);
    if (socket < 0 || !socket_write(socket, &hello, sizeof hello))
        ht_fail("no connection to rank 0");
    pulse.lines[0].socket = socket;
}

void pulse_open(void) {
    uint64_t node = socket_node();
    bool zero = world_rank() == 0, alone = world_node_size() == world_size();
    pulse.count = zero ? world_size() : 1;
    pulse.lines = memory_array(pulse.count, sizeof *pulse.lines);
    for (int i = 0; i < pulse.count; i++) pulse.lines[i].socket = -1;
    if (zero) open_lobby(node, alone);
    world_broadcast(&pulse.call, sizeof pulse.call);
    if (!zero) call_zero(node);
}

/* Takes in the ranks that have come. */
static void answer_calls(void) {
    Hello hello;
    int socket;
    while (pulse.acceptor.bytes && (socket = acceptor_next(&pulse.acceptor, &hello, 0)) >= 0) {
        bool known = socket_key_equal(&hello.key, &pulse.call.key) && hello.rank > 0 &&
                     hello.rank < pulse.count;
        if (known && pulse.lines[hello.rank].socket < 0)
            pulse.lines[hello.rank].socket = socket;
        else
            close(socket);
    }
}

static void hang_up(Line *line) {
    if (line->socket >= 0) close(line->socket);
    line->socket = -1;
    line->closed = true;
}

void pulse_send(int rank, const Pulse *message) {
    Line *line = &pulse.lines[rank];
    if (line->socket < 0) return;
    ssize_t sent = socket_put(line->socket, message, sizeof *message);
    if (sent > 0 && sent < (ssize_t)sizeof *message) hang_up(line);
}

Pulse pulse_hear(int rank) {
    Line *line = &pulse.lines[rank];
    Pulse heard = {.kind = PULSE_NONE};
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
            if (heard.kind != PULSE_END) heard = line->next;
        }
    }
    if (line->closed && heard.kind == PULSE_NONE) heard.kind = PULSE_GONE;
    return heard;
}

void pulse_forget(void) {
    for (int i = 0; i < pulse.count; i++)
        if (pulse.lines[i].socket >= 0) close(pulse.lines[i].socket);
    if (pulse.acceptor.bytes) acceptor_close(&pulse.acceptor);
    free(pulse.lines);
    memset(&pulse, 0, sizeof pulse);
}
