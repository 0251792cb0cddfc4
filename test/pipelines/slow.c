/* Slow messages, by MPI's profiling interface: a library to preload.
 *
 * Every message that a rank sends is synchronous: it ends only when it is received. Before each the rank waits for a random time.
 *
 *     SLOW_SEED   begins the random numbers
 *     SLOW_MOST   milliseconds of a wait, at most; 20
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
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

static void wait_at_random(void)
{
    const char *most = getenv("SLOW_MOST");
    usleep((useconds_t)(next_number() % (1000u * (most ? strtoul(most, NULL, 10) : 20) + 1)));
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    wait_at_random();
    return PMPI_Ssend(data, count, type, to, tag, comm);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    wait_at_random();
    return PMPI_Issend(data, count, type, to, tag, comm, request);
}
