/* Slow messages, by MPI's profiling interface: a library to preload.
 *
 * Every message that a rank sends is synchronous: it ends only when it is received. Before each the rank waits for a random time. Without
 * mpirun it waits so where it yields the processor because no message moves.
 *
 *     SLOW_SEED   begins the random numbers
 *     SLOW_MOST   milliseconds of a wait, at most; 20
 *     SLOW_SUMS   milliseconds by which each message of a sum of gradients arrives later, as on a slow network; 0
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
    const char *seed = getenv("SLOW_SEED"), *alone = getenv("HETU_RANK");
    int rank = alone ? atoi(alone) : 0;
    if (!alone)
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

/* ---- messages that arrive later ---- */

enum { MOST_LATE = 1024 };

/* A message on its way. */
typedef struct Late {
    MPI_Request request;
    double due; // 0: without the delay it would not have come yet
} Late;

static Late late[MOST_LATE];
static int late_count;

static int is_sum(MPI_Comm comm)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    PMPI_Comm_get_name(comm, name, &length);
    return !strcmp(name, "hetu gradients");
}

static int has_arrived(Late *message)
{
    int come;
    PMPI_Request_get_status(message->request, &come, MPI_STATUS_IGNORE);
    if (come && !message->due)
        message->due = PMPI_Wtime() + 1e-3 * atof(getenv("SLOW_SUMS"));
    return message->due && PMPI_Wtime() >= message->due;
}

/* Whether a message has arrived that may be among those that come later; it is forgotten then. */
static int is_there(MPI_Request request)
{
    for (int l = 0; l < late_count; l++) {
        if (late[l].request != request)
            continue;
        if (!has_arrived(&late[l]))
            return 0;
        late[l] = late[--late_count];
        return 1;
    }
    return 1;
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    const char *sums = getenv("SLOW_SUMS");
    int rc = PMPI_Irecv(data, count, type, from, tag, comm, request);
    if (!sums || !is_sum(comm))
        return rc;
    pthread_mutex_lock(&lock);
    if (late_count == MOST_LATE)
        abort();
    late[late_count++] = (Late){*request, 0};
    pthread_mutex_unlock(&lock);
    return rc;
}

int MPI_Testall(int count, MPI_Request *requests, int *done, MPI_Status *statuses)
{
    *done = 1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count && *done; i++)
        *done = is_there(requests[i]);
    pthread_mutex_unlock(&lock);
    return *done ? PMPI_Testall(count, requests, done, statuses) : MPI_SUCCESS;
}

/* ---- messages that are sent later ---- */

/* Without mpirun: what looks after messages yields when nothing moved, and comes back late. */
int sched_yield(void)
{
    if (getenv("HETU_RANK"))
        wait_at_random();
    return 0;
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
