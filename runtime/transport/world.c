#include "transport/world.h"

#include "base/fail.h"

#include "transport/meet/launcher.h"
#include "transport/watch/peers.h"
#include "transport/watch/watch.h"
#include "transport/world_kind.h"

#include <hetu/kernel.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_TIMEOUT = 600 };

/* In the order in which they are asked. */
static const WorldKind *const kinds[] = {
#ifdef HETU_MPI
    &world_mpi,
#endif
    &world_fabric,
};

static struct {
    const WorldKind *kind;    // NULL: alone
    const WorldKind *opening; // until the ranks have come together
    bool joined;              // this process is, or was, one of several
    WorldPlace place;
} world = {.place = {0, 1, 0, 1}};

/* The kind that the environment speaks of; NULL: this process is alone. */
static const WorldKind *find_kind(void)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->launched())
            return kinds[i];
    return NULL;
}

/* For a rank that ends together with others: where a launcher ends all ranks when one is gone, gives it the time to do that. Many ends at
 * once are more than Open MPI's can bear. */
static void give_way(void)
{
    const WorldKind *kind = world.kind ? world.kind : world.opening;
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &ending, NULL);
    if (kind && kind->ended_together && world.place.node_rank > 0)
        sleep(1);
}

/* Ends all ranks. */
static void end_all(void)
{
    world_abandon();
    if (world.kind && world.kind->abort)
        world.kind->abort();
}

static const FailRanks ranks = {world_rank, world_size, world_abandon, give_way, end_all};

void world_open(int *argc, char ***argv, bool pulse)
{
    world_timeout();
    world.opening = find_kind();
    if (!world.opening)
        return;
    fail_connect(&ranks);
    Launch launch;
    if (launch_find(&launch))
        world.place = (WorldPlace){.rank = launch.rank, .size = launch.size, .node_rank = launch.local, .node_size = 1};
    world.joined = true;
    watch_open();
    world.place = world.opening->open(argc, argv);
    world.kind = world.opening;
    world.opening = NULL;
    watch_connect(pulse);
}

void world_close(void)
{
    const WorldKind *kind = world.kind;
    if (!kind)
        return;
    watch_begin();
    world.kind = NULL;
    kind->close();
    watch_end();
    watch_close();
    world.place = (WorldPlace){0, 1, 0, 1};
}

void world_forget(void)
{
    if (world.kind)
        watch_forget();
    if (world.kind && world.kind->forget)
        world.kind->forget();
    world.kind = NULL;
    world.joined = false;
    world.place = (WorldPlace){0, 1, 0, 1};
}

void world_abandon(void)
{
    if (world.joined)
        peers_end_stopped();
    if (world.opening && world.opening->abandon)
        world.opening->abandon();
}

int world_rank(void) { return world.place.rank; }

int world_size(void) { return world.place.size; }

int world_node_rank(void) { return world.place.node_rank; }

int world_node_size(void) { return world.place.node_size; }

void world_await(void *data, size_t bytes)
{
    if (world.kind)
        world.kind->broadcast(data, bytes);
}

void world_broadcast(void *data, size_t bytes)
{
    watch_begin();
    world_await(data, bytes);
    watch_end();
}

void world_exchange(const Transfer *sends, int send_count, const Transfer *receives, int receive_count)
{
    if (!world.kind)
        return;
    watch_begin();
    world.kind->exchange(sends, send_count, receives, receive_count);
    watch_end();
}

int world_least(int mine)
{
    watch_begin();
    int least = world.kind ? world.kind->least(mine) : mine;
    watch_end();
    return least;
}

void world_gather(const void *mine, size_t bytes, void *all)
{
    watch_begin();
    if (world.kind)
        world.kind->gather(mine, bytes, all);
    else
        memcpy(all, mine, bytes);
    watch_end();
}

void world_check(void)
{
    if (world.kind && world.kind->check)
        world.kind->check();
}

int world_timeout(void)
{
    const char *text = getenv("HETU_TIMEOUT");
    char *end;
    long seconds = text ? strtol(text, &end, 10) : DEFAULT_TIMEOUT;
    if (text && (end == text || *end || seconds < 0 || seconds > 1000000))
        ht_fail("HETU_TIMEOUT=%s is no number of seconds", text);
    return (int)seconds;
}
