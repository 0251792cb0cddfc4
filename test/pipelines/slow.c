/* Slow messages, by MPI's profiling interface: a library to preload.
 *
 * Every message that a rank sends is synchronous: it ends only when it is received. Before each the rank waits for a random time.
 *
 *     SLOW_SEED   begins the random numbers
 *     SLOW_MOST   milliseconds of a wait, at most; 20
 *     SLOW_SUMS   milliseconds more of each message of a sum of gradients; 0
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t state;

static uint64_t next_number(void)
{
    const char *seed = getenv("SLOW_SEED");
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_mutex_lock(&lock);
    if (!state)
        state = (seed ? strtoull(seed, NULL, 10) : 0) * 1000003u + (uint64_t)rank * 7919u + 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t number = state >> 33;
    pthread_mutex_unlock(&lock);
    return number;
}

static int is_sum(MPI_Comm comm)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    PMPI_Comm_get_name(comm, name, &length);
    return !strcmp(name, "hetu gradients");
}

static void wait_at_random(MPI_Comm comm)
{
    const char *most = getenv("SLOW_MOST"), *sums = getenv("SLOW_SUMS");
    if (sums && is_sum(comm))
        usleep((useconds_t)(1000 * atoi(sums)));
    usleep((useconds_t)(next_number() % (1000u * (most ? strtoul(most, NULL, 10) : 20) + 1)));
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    wait_at_random(comm);
    return PMPI_Ssend(data, count, type, to, tag, comm);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    wait_at_random(comm);
    return PMPI_Issend(data, count, type, to, tag, comm, request);
}
