/* Connects ranks by sockets, and by shared memory on one machine. */
#include "transport/fabric/fabric.h"

#include "transport/meet/rendezvous.h"
#include "base/memory.h"
#include "transport/fabric/peer_memory.h"
#include "transport/fabric/sockets.h"
#include "transport/watchdog/watchdog.h"
#include "transport/world.h"
#include "transport/world_kind.h"

#include <hetu/kernel.h>

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SPINS = 2000,       // passes without progress, before this rank sleeps
    CHECK_EVERY = 1000, // passes without progress between two checks for dead ranks
    NAP = 20000         // nanoseconds of a sleep
};

static struct {
    Launch launch;
    Meeting meeting;
    WorldPlace place;
    int *node_rank; // by rank: index on this machine; -1: another machine
    Queues *queues; // NULL: no shared memory
    bool active;
} fabric;

bool fabric_active(void) { return fabric.active; }

_Noreturn static void fail_gone(int rank) {
    watchdog_wait_for_cause();
    ht_fail("rank %d has ended", rank);
}

/* ---- messages ---- */

static void fabric_send(const void *data, size_t bytes, int to) {
    if (!socket_write(fabric.meeting.socket[to], data, bytes)) fail_gone(to);
}

static void fabric_receive(void *data, size_t bytes, int from) {
    if (!socket_read(fabric.meeting.socket[from], data, bytes, -1)) fail_gone(from);
}

/* Returns the lowest set bit of this rank (rank 0: the first power of 2 that is at least the number
 * of ranks). In a binomial tree, a rank receives from the rank without this bit and sends to the
 * ranks with one lower bit added. Rank 6 (110): receives from 4, sends to 7. */
static int own_bit(void) {
    int bit = 1;
    while (bit < fabric.launch.size && !(fabric.launch.rank & bit)) bit *= 2;
    return bit;
}

static void fabric_broadcast(void *data, size_t bytes) {
    int rank = fabric.launch.rank;
    if (rank) fabric_receive(data, bytes, rank & (rank - 1));
    for (int bit = own_bit() / 2; bit; bit /= 2)
        if (rank + bit < fabric.launch.size) fabric_send(data, bytes, rank + bit);
}

static int fabric_least(int mine) {
    int rank = fabric.launch.rank, other;
    for (int bit = 1; bit < own_bit(); bit *= 2)
        if (rank + bit < fabric.launch.size) {
            fabric_receive(&other, sizeof other, rank + bit);
            mine = other < mine ? other : mine;
        }
    if (rank) fabric_send(&mine, sizeof mine, rank & (rank - 1));
    fabric_broadcast(&mine, sizeof mine);
    return mine;
}

static void fabric_check(void) {
    int closed = socket_first_closed(fabric.meeting.socket, fabric.launch.size);
    if (closed >= 0) fail_gone(closed);
}

/* ---- concurrent transfers ---- */

/* A transfer and its progress. In shared memory, an offer precedes a large message: its address, or
 * 0 if the message follows in the queue. */
typedef struct Flow {
    HostTransfer transfer;
    size_t done, head;       // bytes moved of the message and of the address
    uint64_t address, offer; // offer: its number until it is answered; 0: none
    bool sends, offers;
} Flow;

static size_t move_in_queue(const Flow *flow, void *data, size_t bytes) {
    int other = fabric.node_rank[flow->transfer.rank];
    return flow->sends ? queue_put(fabric.queues, other, data, bytes)
                       : queue_get(fabric.queues, other, data, bytes);
}

/* Ends the flow if its offer is taken, lets the message follow if refused. Returns 0 if neither. */
static size_t flow_await_answer(Flow *flow) {
    OfferState state =
        queue_offer_state(fabric.queues, fabric.node_rank[flow->transfer.rank], flow->offer);
    if (state == OFFER_OPEN) return 0;
    flow->offer = 0;
    if (state == OFFER_TAKEN) flow->done = flow->transfer.bytes;
    return sizeof flow->address;
}

/* Moves the address of a large message, makes or takes its offer. Returns the bytes moved. */
static size_t flow_begin(Flow *flow) {
    int other = fabric.node_rank[flow->transfer.rank];
    if (flow->sends && !flow->head && queue_takes_offers(fabric.queues, other))
        flow->address = (uintptr_t)flow->transfer.data;
    size_t moved =
        move_in_queue(flow, (char *)&flow->address + flow->head, sizeof flow->address - flow->head);
    flow->head += moved;
    if (flow->head < sizeof flow->address || !flow->address) return moved;
    if (flow->sends) flow->offer = queue_offer(fabric.queues, other);
    else if (queue_take(fabric.queues, other, flow->address, flow->transfer.data,
                        flow->transfer.bytes))
        flow->done = flow->transfer.bytes;
    return moved;
}

/* Moves as many bytes of the message as possible without waiting; returns their number. */
static size_t flow_move(Flow *flow) {
    int rank = flow->transfer.rank;
    char *data = (char *)flow->transfer.data + flow->done;
    size_t left = flow->transfer.bytes - flow->done;
    if (fabric.queues && fabric.node_rank[rank] >= 0) return move_in_queue(flow, data, left);
    ssize_t moved = flow->sends ? socket_put(fabric.meeting.socket[rank], data, left)
                                : socket_get(fabric.meeting.socket[rank], data, left);
    if (moved < 0) fail_gone(rank);
    return (size_t)moved;
}

/* Advances a flow without waiting. Returns 0 if it made no progress. */
static size_t flow_advance(Flow *flow) {
    if (flow->offer) return flow_await_answer(flow);
    if (flow->offers && flow->head < sizeof flow->address) return flow_begin(flow);
    size_t moved = flow_move(flow);
    flow->done += moved;
    return moved;
}

/* Makes one pass over the flows and removes the finished ones. Flows between the same two ranks
 * keep their order. Returns 0 if no flow made progress. */
static size_t flows_pass(Flow *flows, int *count, bool *busy) {
    size_t moved = 0;
    int kept = 0;
    memset(busy, 0, 2 * (size_t)fabric.launch.size);
    for (int i = 0; i < *count; i++) {
        Flow *flow = &flows[i];
        bool *taken = &busy[2 * flow->transfer.rank + flow->sends];
        if (!*taken) {
            moved += flow_advance(flow);
        }
        if (flow->done < flow->transfer.bytes) {
            *taken = true;
            flows[kept++] = *flow;
        }
    }
    *count = kept;
    return moved;
}

/* Yields, or sleeps after SPINS passes without progress (`idle`: how many in a row). */
static void flows_rest(int idle) {
    if (idle < SPINS) sched_yield();
    else nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
    if (idle % CHECK_EVERY == 0) fabric_check();
}

static void flows_run(Flow *flows, int count) {
    bool *busy = memory_array(fabric.launch.size, 2 * sizeof *busy);
    for (int idle = 0; count;) {
        if (flows_pass(flows, &count, busy)) {
            idle = 0;
            watchdog_report_progress();
        } else {
            flows_rest(++idle);
        }
    }
    free(busy);
}

/* Returns whether an offer precedes a message; both ranks must answer alike. */
static bool may_offer(const HostTransfer *transfer) {
    return fabric.queues && fabric.node_rank[transfer->rank] >= 0 && queue_offers(transfer->bytes);
}

static int add_flows(Flow *flows, const HostTransfer *transfers, int count, bool sends) {
    int added = 0;
    for (int i = 0; i < count; i++)
        if (transfers[i].rank != fabric.launch.rank && transfers[i].bytes)
            flows[added++] = (Flow){
                .transfer = transfers[i], .sends = sends, .offers = may_offer(&transfers[i])};
    return added;
}

void fabric_exchange(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                     int receive_count) {
    Flow *flows = memory_array(send_count + receive_count, sizeof *flows);
    transfer_copy_own(fabric.launch.rank, sends, send_count, receives, receive_count);
    int count = add_flows(flows, sends, send_count, true);
    flows_run(flows, count + add_flows(flows + count, receives, receive_count, false));
    free(flows);
}

/* Sends this rank's bytes to all ranks, and writes those of all ranks to `all`, in rank order. */
static void fabric_gather(const void *mine, size_t bytes, void *all) {
    HostTransfer *transfers = memory_array(2 * (int64_t)fabric.launch.size, sizeof *transfers),
                 *receives = transfers + fabric.launch.size;
    for (int rank = 0; rank < fabric.launch.size; rank++) {
        transfers[rank] = (HostTransfer){(void *)mine, bytes, rank};
        receives[rank] = (HostTransfer){(char *)all + (size_t)rank * bytes, bytes, rank};
    }
    fabric_exchange(transfers, fabric.launch.size, receives, fabric.launch.size);
    free(transfers);
}

/* ---- opening and closing ---- */

static bool fabric_launched(void) {
    Launch launch;
    return launch_find(&launch);
}

/* Numbers the ranks of this machine in fabric.node_rank; sets the place's node_rank, node_size. */
static void find_node(void) {
    int rank = fabric.launch.rank;
    fabric.node_rank = memory_array(fabric.launch.size, sizeof *fabric.node_rank);
    for (int other = 0; other < fabric.launch.size; other++)
        fabric.node_rank[other] =
            fabric.meeting.node[other] == fabric.meeting.node[rank] ? fabric.place.node_size++ : -1;
    fabric.place.node_rank =
        fabric.launch.local >= 0 ? fabric.launch.local : fabric.node_rank[rank];
}

/* Returns queues shared with the ranks of this machine; NULL unless all ranks have them. */
static Queues *share_memory(void) {
    int size = fabric.launch.size, count = 0;
    QueueFile *files = memory_array(size, sizeof *files);
    Queues *queues = queues_create(fabric.node_rank[fabric.launch.rank], fabric.place.node_size);
    QueueFile mine = queues_file(queues);
    fabric_gather(&mine, sizeof mine, files);
    for (int rank = 0; rank < size; rank++)
        if (fabric.node_rank[rank] >= 0) files[count++] = files[rank];
    queues_permit(queues, files);
    fabric_least(0); // all ranks have given permission
    if (fabric_least(queues_connect(queues, files))) {
        queues_seal(queues);
    } else {
        peer_memory_forbid();
        queues_close(queues);
        queues = NULL;
    }
    free(files);
    return queues;
}

static WorldPlace fabric_open(int *argc, char ***argv, bool threads) {
    (void)argc, (void)argv, (void)threads;
    launch_find(&fabric.launch);
    fabric.meeting = rendezvous_meet(&fabric.launch, watchdog_timeout());
    fabric.place = (WorldPlace){.rank = fabric.launch.rank, .size = fabric.launch.size};
    find_node();
    fabric.queues = share_memory();
    fabric.active = true;
    return fabric.place;
}

/* Closes the connections in a forked child process. */
static void fabric_forget(void) {
    fabric.active = false;
    fabric_channels_forget();
    queues_close(fabric.queues);
    fabric.queues = NULL;
    for (int rank = 0; rank < fabric.launch.size; rank++)
        if (fabric.meeting.socket[rank] >= 0) close(fabric.meeting.socket[rank]);
    free(fabric.meeting.socket);
    free(fabric.meeting.node);
    free(fabric.node_rank);
}

static void fabric_close(void) {
    fabric_least(0);
    fabric_forget();
    peer_memory_forbid();
}

/* ---- lanes ---- */

static void fabric_open_channels(void) {
    fabric_channels_open(&(ChannelGround){.rank = fabric.launch.rank,
                                          .size = fabric.launch.size,
                                          .node_rank = fabric.node_rank,
                                          .node = fabric.meeting.node,
                                          .share = share_memory,
                                          .gather = fabric_gather,
                                          .fail_gone = fail_gone});
}

static int fabric_tags(void) { return INT_MAX; }

const WorldKind world_fabric = {.launched = fabric_launched,
                                .open = fabric_open,
                                .close = fabric_close,
                                .abandon = rendezvous_abandon,
                                .forget = fabric_forget,
                                .check = fabric_check,
                                .broadcast = fabric_broadcast,
                                .gather = fabric_gather,
                                .exchange = fabric_exchange,
                                .least = fabric_least,
                                .open_lanes = fabric_open_channels,
                                .close_lanes = fabric_channels_close,
                                .tags = fabric_tags,
                                .begin = fabric_post_begin,
                                .done = fabric_post_done};
