#define _GNU_SOURCE
#include "transport/mesh.h"

#include "transport/rendezvous.h"
#include "transport/rings.h"
#include "transport/sockets.h"
#include "transport/watch.h"
#include "transport/world.h"
#include "transport/world_kind.h"

#include <hetu/kernel.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 2000, CHECK_EVERY = 1000, NAP = 20000 }; // passes without a nap; passes between checks; nanoseconds

static struct {
    Launch launch;
    Meeting meeting;
    WorldPlace place;
    int *node_rank; // by rank: its place in shared memory; -1: on another machine
    Rings *rings;   // NULL: there is no shared memory
    bool active;
} mesh;

bool mesh_active(void) { return mesh.active; }

_Noreturn static void fail_gone(int rank)
{
    watch_settle();
    ht_fail("rank %d has ended", rank);
}

/* ---- messages ---- */

static void mesh_send(const void *data, size_t bytes, int to)
{
    if (!socket_write(mesh.meeting.socket[to], data, bytes))
        fail_gone(to);
}

static void mesh_receive(void *data, size_t bytes, int from)
{
    if (!socket_read(mesh.meeting.socket[from], data, bytes, -1))
        fail_gone(from);
}

/* The lowest bit of a rank: in a binomial tree it hears from the rank without it, and speaks to those with one lower bit more. Rank 0 has
 * all. */
static int own_bit(void)
{
    int bit = 1;
    while (bit < mesh.launch.size && !(mesh.launch.rank & bit))
        bit *= 2;
    return bit;
}

static void mesh_broadcast(void *data, size_t bytes)
{
    int rank = mesh.launch.rank;
    if (rank)
        mesh_receive(data, bytes, rank & (rank - 1));
    for (int bit = own_bit() / 2; bit; bit /= 2)
        if (rank + bit < mesh.launch.size)
            mesh_send(data, bytes, rank + bit);
}

static int mesh_least(int mine)
{
    int rank = mesh.launch.rank, other;
    for (int bit = 1; bit < own_bit(); bit *= 2)
        if (rank + bit < mesh.launch.size) {
            mesh_receive(&other, sizeof other, rank + bit);
            mine = other < mine ? other : mine;
        }
    if (rank)
        mesh_send(&mine, sizeof mine, rank & (rank - 1));
    mesh_broadcast(&mine, sizeof mine);
    return mine;
}

/* `bytes` of every rank to all, in the order of the ranks. */
static void mesh_gather(const void *mine, size_t bytes, void *all)
{
    char *to = all;
    memcpy(to + (size_t)mesh.launch.rank * bytes, mine, bytes);
    for (int rank = 1; mesh.launch.rank == 0 && rank < mesh.launch.size; rank++)
        mesh_receive(to + (size_t)rank * bytes, bytes, rank);
    if (mesh.launch.rank)
        mesh_send(mine, bytes, 0);
    mesh_broadcast(all, bytes * (size_t)mesh.launch.size);
}

static void mesh_check(void)
{
    int closed = socket_first_closed(mesh.meeting.socket, mesh.launch.size);
    if (closed >= 0)
        fail_gone(closed);
}

/* ---- many transfers at once ---- */

typedef struct Flow {
    Transfer transfer;
    size_t done;
    bool sends;
} Flow;

/* Moves what can be moved now; 0 when nothing can. */
static size_t flow_advance(Flow *flow)
{
    int rank = flow->transfer.rank;
    char *data = (char *)flow->transfer.data + flow->done;
    size_t left = flow->transfer.bytes - flow->done;
    if (mesh.rings && mesh.node_rank[rank] >= 0)
        return flow->sends ? ring_put(mesh.rings, mesh.node_rank[rank], data, left)
                           : ring_get(mesh.rings, mesh.node_rank[rank], data, left);
    ssize_t moved = flow->sends ? socket_put(mesh.meeting.socket[rank], data, left) : socket_get(mesh.meeting.socket[rank], data, left);
    if (moved < 0)
        fail_gone(rank);
    return (size_t)moved;
}

/* One pass over the flows, which keep their order between two ranks; returns how many bytes moved. Finished flows are dropped. */
static size_t flows_pass(Flow *flows, int *count, bool *busy)
{
    size_t moved = 0;
    int kept = 0;
    memset(busy, 0, 2 * (size_t)mesh.launch.size);
    for (int i = 0; i < *count; i++) {
        Flow *flow = &flows[i];
        bool *taken = &busy[2 * flow->transfer.rank + flow->sends];
        if (!*taken) {
            size_t now = flow_advance(flow);
            flow->done += now;
            moved += now;
        }
        if (flow->done < flow->transfer.bytes) {
            *taken = true;
            flows[kept++] = *flow;
        }
    }
    *count = kept;
    return moved;
}

/* What a rank does in a pass that moved nothing: `idle` counts these. */
static void flows_rest(int idle)
{
    if (idle < SPINS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
    if (idle % CHECK_EVERY == 0)
        mesh_check();
}

static void flows_run(Flow *flows, int count)
{
    bool *busy = calloc((size_t)mesh.launch.size, 2 * sizeof *busy);
    if (!busy)
        ht_fail("no memory to exchange with %d ranks", mesh.launch.size);
    for (int idle = 0; count;) {
        if (flows_pass(flows, &count, busy)) {
            idle = 0;
            watch_moved();
        } else {
            flows_rest(++idle);
        }
    }
    free(busy);
}

/* Copies what goes from this rank to itself. */
static void copy_own(const Transfer *sends, int send_count, const Transfer *receives, int receive_count)
{
    int r = 0;
    for (int s = 0; s < send_count; s++) {
        if (sends[s].rank != mesh.launch.rank)
            continue;
        while (r < receive_count && receives[r].rank != mesh.launch.rank)
            r++;
        memmove(receives[r].data, sends[s].data, sends[s].bytes);
        r++;
    }
}

static int add_flows(Flow *flows, const Transfer *transfers, int count, bool sends)
{
    int added = 0;
    for (int i = 0; i < count; i++)
        if (transfers[i].rank != mesh.launch.rank && transfers[i].bytes)
            flows[added++] = (Flow){transfers[i], 0, sends};
    return added;
}

void mesh_exchange(const Transfer *sends, int send_count, const Transfer *receives, int receive_count)
{
    Flow *flows = calloc((size_t)(send_count + receive_count) + 1, sizeof *flows);
    if (!flows)
        ht_fail("no memory for %d messages", send_count + receive_count);
    copy_own(sends, send_count, receives, receive_count);
    int count = add_flows(flows, sends, send_count, true);
    flows_run(flows, count + add_flows(flows + count, receives, receive_count, false));
    free(flows);
}

/* ---- opening and closing ---- */

static bool mesh_launched(void)
{
    Launch launch;
    return launch_find(&launch);
}

/* Numbers the ranks of this machine, and finds the place of this one among them. */
static void find_node(void)
{
    int rank = mesh.launch.rank;
    mesh.node_rank = calloc((size_t)mesh.launch.size, sizeof *mesh.node_rank);
    if (!mesh.node_rank)
        ht_fail("no memory to connect %d ranks", mesh.launch.size);
    for (int other = 0; other < mesh.launch.size; other++)
        mesh.node_rank[other] = mesh.meeting.node[other] == mesh.meeting.node[rank] ? mesh.place.node_size++ : -1;
    mesh.place.node_rank = mesh.launch.local >= 0 ? mesh.launch.local : mesh.node_rank[rank];
}

/* Shared memory with the ranks of this machine, when all ranks have it. */
static void open_rings(void)
{
    int size = mesh.launch.size, count = 0;
    RingFile *files = calloc((size_t)size, sizeof *files);
    if (!files)
        ht_fail("no memory to connect %d ranks", size);
    mesh.rings = rings_create(mesh.node_rank[mesh.launch.rank], mesh.place.node_size);
    RingFile mine = rings_file(mesh.rings);
    mesh_gather(&mine, sizeof mine, files);
    for (int rank = 0; rank < size; rank++)
        if (mesh.node_rank[rank] >= 0)
            files[count++] = files[rank];
    if (mesh_least(rings_connect(mesh.rings, files))) {
        rings_seal(mesh.rings);
    } else {
        rings_close(mesh.rings);
        mesh.rings = NULL;
    }
    free(files);
}

static WorldPlace mesh_open(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    launch_find(&mesh.launch);
    mesh.meeting = rendezvous_meet(&mesh.launch, world_timeout());
    mesh.place = (WorldPlace){.rank = mesh.launch.rank, .size = mesh.launch.size};
    find_node();
    open_rings();
    mesh.active = true;
    return mesh.place;
}

/* Gives up the connections. */
static void mesh_forget(void)
{
    mesh.active = false;
    rings_close(mesh.rings);
    mesh.rings = NULL;
    for (int rank = 0; rank < mesh.launch.size; rank++)
        if (mesh.meeting.socket[rank] >= 0)
            close(mesh.meeting.socket[rank]);
    free(mesh.meeting.socket);
    free(mesh.meeting.node);
    free(mesh.node_rank);
}

static void mesh_close(void)
{
    mesh_least(0);
    mesh_forget();
}

const WorldKind world_mesh = {.launched = mesh_launched,
                              .open = mesh_open,
                              .close = mesh_close,
                              .abandon = rendezvous_abandon,
                              .forget = mesh_forget,
                              .check = mesh_check,
                              .broadcast = mesh_broadcast,
                              .send = mesh_send,
                              .receive = mesh_receive,
                              .least = mesh_least};
