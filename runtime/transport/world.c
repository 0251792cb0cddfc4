#include "transport/world.h"

#include "transport/launcher.h"
#include "transport/peers.h"
#include "transport/watch.h"
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
    &world_mesh,
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

void world_open(int *argc, char ***argv, bool pulse)
{
    world_timeout();
    world.opening = find_kind();
    if (!world.opening)
        return;
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

void world_send(const void *data, size_t bytes, int to)
{
    watch_begin();
    world.kind->send(data, bytes, to);
    watch_end();
}

void world_receive(void *data, size_t bytes, int from)
{
    watch_begin();
    world.kind->receive(data, bytes, from);
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
    char *to = all;
    memcpy(to + (size_t)world_rank() * bytes, mine, bytes);
    for (int rank = 1; rank < world_size(); rank++)
        if (world_rank() == 0)
            world_receive(to + (size_t)rank * bytes, bytes, rank);
        else if (world_rank() == rank)
            world_send(mine, bytes, 0);
    world_broadcast(all, bytes * (size_t)world_size());
}

void world_check(void)
{
    if (world.kind && world.kind->check)
        world.kind->check();
}

void world_give_way(void)
{
    const WorldKind *kind = world.kind ? world.kind : world.opening;
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &ending, NULL);
    if (kind && kind->ended_together && world.place.node_rank > 0)
        sleep(1);
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

void world_abort(void)
{
    world_abandon();
    if (world.kind && world.kind->abort)
        world.kind->abort();
    _exit(1);
}
