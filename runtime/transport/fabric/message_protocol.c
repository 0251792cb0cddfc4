/* Messages on lanes without MPI. Messages of every size use the rendezvous protocol (fabric.h). */
#include "transport/fabric/fabric.h"

#include "base/memory.h"
#include "transport/fabric/sockets.h"
#include "transport/meet/acceptor.h"

#include <hetu/kernel.h>

#include <stdlib.h>
#include <unistd.h>

enum { CONNECT_SECONDS = 30 };

static const double NEVER = 1e9; // seconds

/* FRAME_ASK: the receiver asks for a message; FRAME_DATA: the message follows; FRAME_OFFER: the
 * receiver may read the message in the sender's memory. */
typedef enum FrameKind { FRAME_NONE, FRAME_ASK, FRAME_DATA, FRAME_OFFER } FrameKind;
/* The header of every request and message on a line. */
typedef struct Frame {
    int32_t kind, tag;
    uint64_t bytes, address; // address: of an offer
} Frame;

/* A message that has begun. fabric_post_done frees it once it is complete. */
typedef struct Message Message;
struct Message {
    Message *next; // the message of this line that began after this one
    HostTransfer transfer;
    int tag;
    uint64_t offer;          // number of the offer that the receiver has not answered; 0: none
    bool sends, asked, over; // asked: the receiver has asked for the message; over: complete
};

/* A frame in transmission. head, body: bytes transmitted of its header and of its message. */
typedef struct Stream {
    Frame frame;
    size_t head, body;
    Message *message;
} Stream;

/* A lane's connection to one rank. */
typedef struct Line {
    int socket; // -1: shared memory
    Message *first;
    Stream out, in;
    Frame *early; // frames that asked for messages which this rank has not begun
    int early_count, early_room;
} Line;

typedef struct Lane {
    Queues *queues;
    Line *line; // by rank
} Lane;

static ChannelGround ground;
static Lane lanes[LANES];

/* ---- bytes ---- */

static size_t put(const Lane *lane, int rank, const void *data, size_t bytes) {
    int socket = lane->line[rank].socket;
    if (socket < 0) return queue_put(lane->queues, ground.node_rank[rank], data, bytes);
    ssize_t moved = socket_put(socket, data, bytes);
    if (moved < 0) ground.fail_gone(rank);
    return (size_t)moved;
}

static size_t get(const Lane *lane, int rank, void *data, size_t bytes) {
    int socket = lane->line[rank].socket;
    if (socket < 0) return queue_get(lane->queues, ground.node_rank[rank], data, bytes);
    ssize_t moved = socket_get(socket, data, bytes);
    if (moved < 0) ground.fail_gone(rank);
    return (size_t)moved;
}

/* ---- messages ---- */

/* Returns whether a message or an earlier one of its tag is offered. If such an offer were refused,
 * a later message of the tag would arrive first. */
static bool awaits_offer(const Line *line, const Message *message) {
    for (const Message *earlier = line->first; earlier != message; earlier = earlier->next)
        if (earlier->offer && earlier->tag == message->tag) return true;
    return message->offer != 0;
}

/* Returns a line's first message of a direction, asked state and tag (-1: any) that awaits no
 * offer; else NULL. */
static Message *find_message(const Line *line, bool sends, bool asked, int tag) {
    for (Message *message = line->first; message; message = message->next)
        if (message->sends == sends && message->asked == asked &&
            (tag < 0 || message->tag == tag) && !(sends && asked && awaits_offer(line, message)))
            return message;
    return NULL;
}

static void check_bytes(const Message *message, uint64_t bytes) {
    if (message->transfer.bytes != bytes)
        ht_fail("a message between the ranks %d and %d has %llu bytes on one side and %llu on the "
                "other; the program and the library are of "
                "different versions",
                ground.rank, message->transfer.rank, (unsigned long long)bytes,
                (unsigned long long)message->transfer.bytes);
}

static void end_message(Line *line, Message *message) {
    Message **link = &line->first;
    while (*link != message) link = &(*link)->next;
    *link = message->next;
    message->over = true;
}

/* Handles the other rank's request for a message; keeps it if the message has not begun here. */
static void take_ask(Line *line, const Frame *frame) {
    Message *message = find_message(line, true, false, frame->tag);
    if (message) {
        check_bytes(message, frame->bytes);
        message->asked = true;
        return;
    }
    if (line->early_count == line->early_room) {
        Frame *grown = memory_array(line->early_room = 2 * line->early_room + 8, sizeof *grown);
        for (int i = 0; i < line->early_count; i++) grown[i] = line->early[i];
        free(line->early);
        line->early = grown;
    }
    line->early[line->early_count++] = *frame;
}

/* Returns whether the other rank asked for this message already, and removes that request. */
static bool was_asked(Line *line, const Message *message) {
    for (int i = 0; i < line->early_count; i++)
        if (line->early[i].tag == message->tag) {
            check_bytes(message, line->early[i].bytes);
            line->early_count--;
            for (int j = i; j < line->early_count; j++) line->early[j] = line->early[j + 1];
            return true;
        }
    return false;
}

/* ---- streams ---- */

/* Ends messages whose offers the receiver has taken. Those with refused offers follow as data. */
static void look_after_offers(const Lane *lane, int rank) {
    Line *line = &lane->line[rank];
    for (Message *message = line->first, *next; message; message = next) {
        next = message->next;
        if (!message->offer) continue;
        OfferState state = queue_offer_state(lane->queues, ground.node_rank[rank], message->offer);
        if (state == OFFER_TAKEN) end_message(line, message);
        if (state == OFFER_REFUSED) message->offer = 0;
    }
}

static bool may_offer(const Lane *lane, int rank, const Message *message) {
    return lane->line[rank].socket < 0 && queue_offers(message->transfer.bytes) &&
           queue_takes_offers(lane->queues, ground.node_rank[rank]);
}

/* Chooses the next frame to send: requests, then messages asked for. Returns false if none. */
static bool next_out(const Lane *lane, int rank) {
    Line *line = &lane->line[rank];
    look_after_offers(lane, rank);
    Message *ask = find_message(line, false, false, -1),
            *message = ask ? ask : find_message(line, true, true, -1);
    if (!message) return false;
    FrameKind kind = ask ? FRAME_ASK : may_offer(lane, rank, message) ? FRAME_OFFER : FRAME_DATA;
    line->out = (Stream){{kind, message->tag, message->transfer.bytes,
                          kind == FRAME_OFFER ? (uintptr_t)message->transfer.data : 0},
                         0,
                         0,
                         message};
    return true;
}

static void finish_out(const Lane *lane, int rank) {
    Line *line = &lane->line[rank];
    Message *message = line->out.message;
    if (line->out.frame.kind == FRAME_ASK) message->asked = true;
    else if (line->out.frame.kind == FRAME_DATA) end_message(line, message);
    else message->offer = queue_offer(lane->queues, ground.node_rank[rank]);
    line->out = (Stream){0};
}

/* Sends as much as possible without waiting. */
static void write_line(const Lane *lane, int rank) {
    Line *line = &lane->line[rank];
    Stream *out = &line->out;
    while (out->frame.kind || next_out(lane, rank)) {
        size_t body = out->frame.kind == FRAME_DATA ? out->message->transfer.bytes : 0;
        if (out->head < sizeof out->frame)
            out->head +=
                put(lane, rank, (char *)&out->frame + out->head, sizeof out->frame - out->head);
        if (out->head == sizeof out->frame && out->body < body)
            out->body +=
                put(lane, rank, (char *)out->message->transfer.data + out->body, body - out->body);
        if (out->head < sizeof out->frame || out->body < body) return;
        finish_out(lane, rank);
    }
}

/* Reads a message in the sender's memory. If that fails, the message will follow as data. */
static void take_offer(const Lane *lane, int rank) {
    Line *line = &lane->line[rank];
    Message *message = line->in.message;
    if (queue_take(lane->queues, ground.node_rank[rank], line->in.frame.address,
                   message->transfer.data, message->transfer.bytes))
        end_message(line, message);
    line->in = (Stream){0};
}

/* Handles a frame whose header has been received. */
static void begin_in(const Lane *lane, int rank) {
    Line *line = &lane->line[rank];
    Stream *in = &line->in;
    if (in->frame.kind == FRAME_ASK) {
        take_ask(line, &in->frame);
        *in = (Stream){0};
        return;
    }
    in->message = find_message(line, false, true, in->frame.tag);
    bool offers = in->frame.kind == FRAME_OFFER && line->socket < 0;
    if ((in->frame.kind != FRAME_DATA && !offers) || !in->message)
        ht_fail("rank %d sent what nobody asked for; the program and the library are of different "
                "versions",
                rank);
    check_bytes(in->message, in->frame.bytes);
    if (offers) take_offer(lane, rank);
}

/* Receives as much as possible without waiting. */
static void read_line(const Lane *lane, int rank) {
    Line *line = &lane->line[rank];
    Stream *in = &line->in;
    for (size_t moved = 1; moved;) {
        if (!in->message) {
            in->head += moved =
                get(lane, rank, (char *)&in->frame + in->head, sizeof in->frame - in->head);
            if (in->head == sizeof in->frame) begin_in(lane, rank);
            continue;
        }
        in->body += moved = get(lane, rank, (char *)in->message->transfer.data + in->body,
                                in->message->transfer.bytes - in->body);
        if (in->body == in->message->transfer.bytes) {
            end_message(line, in->message);
            *in = (Stream){0};
            moved = 1;
        }
    }
}

void fabric_post_begin(int number, Post *post) {
    Line *line = &lanes[number].line[post->transfer.rank];
    Message *message = memory_array(1, sizeof *message), **link = &line->first;
    *message = (Message){.transfer = post->transfer, .tag = post->tag, .sends = post->sends};
    message->asked = message->sends && was_asked(line, message);
    while (*link) link = &(*link)->next;
    *link = message;
    post->state = message;
}

bool fabric_post_done(int number, Post *post) {
    Message *message = post->state;
    if (!message->over) read_line(&lanes[number], post->transfer.rank);
    if (!message->over) write_line(&lanes[number], post->transfer.rank);
    if (!message->over) return false;
    free(message);
    return true;
}

/* ---- opening and closing ---- */

/* The address of a rank and the key to present there. */
typedef struct Call {
    SocketKey key;
    SocketPlace place;
} Call;

/* The first message on a connection. */
typedef struct Hello {
    SocketKey key;
    int32_t rank, lane;
} Hello;

/* Returns whether a lane needs a socket to a rank. */
static bool is_apart(int rank) {
    return rank != ground.rank && (!lanes[0].queues || ground.node_rank[rank] < 0);
}

static void call_lower(const Call *calls) {
    for (int lane = 0; lane < LANES; lane++)
        for (int rank = 0; rank < ground.rank; rank++) {
            if (!is_apart(rank)) continue;
            Hello hello = {calls[rank].key, ground.rank, lane};
            int socket = socket_connect(
                &calls[rank].place, ground.node[rank] == ground.node[ground.rank], CONNECT_SECONDS);
            if (socket < 0 || !socket_write(socket, &hello, sizeof hello))
                ht_fail("no connection to rank %d", rank);
            lanes[lane].line[rank].socket = socket;
        }
}

static void await_higher(Acceptor *acceptor, const SocketKey *key) {
    int left = 0;
    for (int rank = ground.rank + 1; rank < ground.size; rank++) left += is_apart(rank) ? LANES : 0;
    while (left > 0) {
        Hello hello;
        int socket = acceptor_next(acceptor, &hello, socket_clock() + NEVER);
        bool known = socket_key_equal(&hello.key, key) && hello.rank > ground.rank &&
                     hello.rank < ground.size && hello.lane >= 0 && hello.lane < LANES &&
                     lanes[hello.lane].line[hello.rank].socket < 0;
        if (!known) {
            close(socket);
            continue;
        }
        lanes[hello.lane].line[hello.rank].socket = socket;
        left--;
    }
}

static bool is_one_machine(void) {
    for (int rank = 0; rank < ground.size; rank++)
        if (ground.node_rank[rank] < 0) return false;
    return true;
}

static void connect_lines(void) {
    Call mine = {.key = socket_key()}, *calls = memory_array(ground.size, sizeof *calls);
    Acceptor acceptor = acceptor_open(socket_listen(&mine.place, is_one_machine()), sizeof(Hello));
    ground.gather(&mine, sizeof mine, calls);
    call_lower(calls);
    await_higher(&acceptor, &mine.key);
    acceptor_close(&acceptor);
    free(calls);
}

void fabric_channels_open(const ChannelGround *given) {
    ground = *given;
    for (int lane = 0; lane < LANES; lane++) {
        lanes[lane].queues = ground.share();
        lanes[lane].line = memory_array(ground.size, sizeof(Line));
        for (int rank = 0; rank < ground.size; rank++) lanes[lane].line[rank].socket = -1;
    }
    connect_lines();
}

void fabric_channels_close(void) { fabric_channels_forget(); }

void fabric_channels_forget(void) {
    for (int lane = 0; lane < LANES; lane++) {
        for (int rank = 0; lanes[lane].line && rank < ground.size; rank++) {
            if (lanes[lane].line[rank].socket >= 0) close(lanes[lane].line[rank].socket);
            free(lanes[lane].line[rank].early);
        }
        queues_close(lanes[lane].queues);
        free(lanes[lane].line);
        lanes[lane] = (Lane){0};
    }
}
