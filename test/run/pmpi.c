/* Counts the bytes that a rank receives, by MPI's profiling interface: a library to preload.
 *
 *     PMPI_OUT=out mpirun -x LD_PRELOAD=pmpi.so -x PMPI_OUT ... program
 *
 * Each rank writes $PMPI_OUT.<rank> when it ends: a line `call<TAB>times<TAB>bytes` for each call that was made. Calls that move at most $PMPI_SMALL
 * bytes (default: none) are listed apart, as `call small`; with $PMPI_PEERS messages are, as `MPI_Irecv from 3`. A collective of n ranks counts what the textbook's algorithm lets a rank receive: an all-reduce
 * of B bytes 2(n-1)/n B, a reduce-scatter (n-1)/n of its input, a reduce likewise, gathers and all-to-alls what the others send. One-sided calls
 * count no bytes but are listed, so that a test can refuse them.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 128 };

typedef struct Count {
    char call[64];
    int small;
    long times;
    double bytes;
} Count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Count count_table[CALLS];
static int count_used, written, own_rank = -1;

/* Adds a call of `bytes` received. */
static void count_add(const char *call, double bytes)
{
    const char *limit = getenv("PMPI_SMALL");
    int small = limit && bytes <= atof(limit);
    pthread_mutex_lock(&lock);
    Count *c = count_table;
    while (c < count_table + count_used && (strcmp(c->call, call) || c->small != small))
        c++;
    if (c == count_table + count_used) {
        if (count_used == CALLS)
            abort();
        count_used++;
        snprintf(c->call, sizeof c->call, "%s", call);
        c->small = small;
    }
    c->times++;
    c->bytes += bytes;
    pthread_mutex_unlock(&lock);
}

static void counts_write(void)
{
    const char *base = getenv("PMPI_OUT");
    if (!base || own_rank < 0 || written)
        return;
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", base, own_rank);
    FILE *file = fopen(name, "w");
    if (!file) {
        perror(name);
        return;
    }
    for (Count *c = count_table; c < count_table + count_used; c++)
        fprintf(file, "%s%s\t%ld\t%.17g\n", c->call, c->small ? " small" : "", c->times, c->bytes);
    fclose(file);
    written = 1;
}

__attribute__((destructor)) static void counts_end(void)
{
    counts_write();
}

static double size_of(double count, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    return count * size;
}

static int ranks_of(MPI_Comm comm)
{
    int n, inter;
    PMPI_Comm_test_inter(comm, &inter);
    if (inter)
        PMPI_Comm_remote_size(comm, &n);
    else
        PMPI_Comm_size(comm, &n);
    return n;
}

static int rank_in(MPI_Comm comm)
{
    int r;
    PMPI_Comm_rank(comm, &r);
    return r;
}

/* What the others send of counts[] elements, one number a rank. */
static double from_others(const int *counts, MPI_Datatype type, MPI_Comm comm)
{
    double sum = 0;
    for (int r = 0; r < ranks_of(comm); r++)
        if (r != rank_in(comm))
            sum += counts[r];
    return size_of(sum, type);
}

static double from_others_w(const int *counts, const MPI_Datatype *types, MPI_Comm comm)
{
    double sum = 0;
    for (int r = 0; r < ranks_of(comm); r++)
        if (r != rank_in(comm))
            sum += size_of(counts[r], types[r]);
    return sum;
}

static double summed(const int *counts, MPI_Comm comm)
{
    double sum = 0;
    for (int r = 0; r < ranks_of(comm); r++)
        sum += counts[r];
    return sum;
}

/* (n - 1) / n. */
static double share(MPI_Comm comm)
{
    double n = ranks_of(comm);
    return (n - 1) / n;
}

static double unless_own(double bytes, int source, MPI_Comm comm)
{
    return source == MPI_PROC_NULL || source == rank_in(comm) ? 0 : bytes;
}

/* ---- start and end ---- */

static void rank_learn(void)
{
    PMPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
}

int MPI_Init(int *argc, char ***argv)
{
    int rc = PMPI_Init(argc, argv);
    rank_learn();
    return rc;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc = PMPI_Init_thread(argc, argv, required, provided);
    rank_learn();
    return rc;
}

int MPI_Finalize(void)
{
    counts_write();
    return PMPI_Finalize();
}

/* ---- collectives, blocking and not ---- */

/* A call and its nonblocking twin; BYTES is what it receives. */
#define TWINS(NAME, TWIN, PARAMETERS, ARGUMENTS, BYTES)               \
    int MPI_##NAME(PARAMETERS)                                        \
    {                                                                 \
        count_add("MPI_" #NAME, BYTES);                               \
        return PMPI_##NAME(ARGUMENTS);                                \
    }                                                                 \
    int MPI_##TWIN(PARAMETERS, MPI_Request *request)                  \
    {                                                                 \
        count_add("MPI_" #TWIN, BYTES);                               \
        return PMPI_##TWIN(ARGUMENTS, request);                       \
    }
#define LIST(...) __VA_ARGS__

TWINS(Allreduce, Iallreduce, LIST(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      LIST(from, to, count, type, op, comm), 2 * share(comm) * size_of(count, type))
TWINS(Reduce, Ireduce, LIST(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
      LIST(from, to, count, type, op, root, comm), share(comm) * size_of(count, type))
TWINS(Reduce_scatter, Ireduce_scatter, LIST(const void *from, void *to, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      LIST(from, to, counts, type, op, comm), share(comm) * size_of(summed(counts, comm), type))
TWINS(Reduce_scatter_block, Ireduce_scatter_block, LIST(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      LIST(from, to, count, type, op, comm), (ranks_of(comm) - 1) * size_of(count, type))
TWINS(Allgather, Iallgather, LIST(const void *from, int sent, MPI_Datatype sent_type, void *to, int count, MPI_Datatype type, MPI_Comm comm),
      LIST(from, sent, sent_type, to, count, type, comm), (ranks_of(comm) - 1) * size_of(count, type))
TWINS(Allgatherv, Iallgatherv,
      LIST(const void *from, int sent, MPI_Datatype sent_type, void *to, const int counts[], const int at[], MPI_Datatype type, MPI_Comm comm),
      LIST(from, sent, sent_type, to, counts, at, type, comm), from_others(counts, type, comm))
TWINS(Alltoall, Ialltoall, LIST(const void *from, int sent, MPI_Datatype sent_type, void *to, int count, MPI_Datatype type, MPI_Comm comm),
      LIST(from, sent, sent_type, to, count, type, comm), (ranks_of(comm) - 1) * size_of(count, type))
TWINS(Alltoallv, Ialltoallv,
      LIST(const void *from, const int sent[], const int sent_at[], MPI_Datatype sent_type, void *to, const int counts[], const int at[],
           MPI_Datatype type, MPI_Comm comm),
      LIST(from, sent, sent_at, sent_type, to, counts, at, type, comm), from_others(counts, type, comm))
TWINS(Alltoallw, Ialltoallw,
      LIST(const void *from, const int sent[], const int sent_at[], const MPI_Datatype sent_types[], void *to, const int counts[],
           const int at[], const MPI_Datatype types[], MPI_Comm comm),
      LIST(from, sent, sent_at, sent_types, to, counts, at, types, comm), from_others_w(counts, types, comm))
TWINS(Bcast, Ibcast, LIST(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm), LIST(data, count, type, root, comm),
      rank_in(comm) == root ? 0 : size_of(count, type))
TWINS(Gather, Igather, LIST(const void *from, int sent, MPI_Datatype sent_type, void *to, int count, MPI_Datatype type, int root, MPI_Comm comm),
      LIST(from, sent, sent_type, to, count, type, root, comm), rank_in(comm) == root ? (ranks_of(comm) - 1) * size_of(count, type) : 0)
TWINS(Gatherv, Igatherv,
      LIST(const void *from, int sent, MPI_Datatype sent_type, void *to, const int counts[], const int at[], MPI_Datatype type, int root,
           MPI_Comm comm),
      LIST(from, sent, sent_type, to, counts, at, type, root, comm), rank_in(comm) == root ? from_others(counts, type, comm) : 0)
TWINS(Scatter, Iscatter, LIST(const void *from, int sent, MPI_Datatype sent_type, void *to, int count, MPI_Datatype type, int root, MPI_Comm comm),
      LIST(from, sent, sent_type, to, count, type, root, comm), rank_in(comm) == root ? 0 : size_of(count, type))
TWINS(Scatterv, Iscatterv,
      LIST(const void *from, const int sent[], const int at[], MPI_Datatype sent_type, void *to, int count, MPI_Datatype type, int root,
           MPI_Comm comm),
      LIST(from, sent, at, sent_type, to, count, type, root, comm), rank_in(comm) == root ? 0 : size_of(count, type))

/* ---- messages ---- */

/* The bytes that came, by a receive's status. */
static double arrived(const MPI_Status *status, MPI_Comm comm)
{
    int bytes;
    PMPI_Get_count(status, MPI_BYTE, &bytes);
    return unless_own(bytes == MPI_UNDEFINED ? 0 : bytes, status->MPI_SOURCE, comm);
}

int MPI_Recv(void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    int rc = PMPI_Recv(to, count, type, source, tag, comm, &own);
    count_add("MPI_Recv", arrived(&own, comm));
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    return rc;
}

int MPI_Irecv(void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    char call[64] = "MPI_Irecv";
    if (getenv("PMPI_PEERS"))
        snprintf(call, sizeof call, "MPI_Irecv from %d", source);
    count_add(call, unless_own(size_of(count, type), source, comm));
    return PMPI_Irecv(to, count, type, source, tag, comm, request);
}

int MPI_Recv_init(void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    fprintf(stderr, "pmpi: MPI_Recv_init is not counted\n");
    return PMPI_Recv_init(to, count, type, source, tag, comm, request);
}

int MPI_Sendrecv(const void *from, int sent, MPI_Datatype sent_type, int target, int sent_tag, void *to, int count, MPI_Datatype type, int source,
                 int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    int rc = PMPI_Sendrecv(from, sent, sent_type, target, sent_tag, to, count, type, source, tag, comm, &own);
    count_add("MPI_Sendrecv", arrived(&own, comm));
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    return rc;
}

int MPI_Sendrecv_replace(void *data, int count, MPI_Datatype type, int target, int sent_tag, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    count_add("MPI_Sendrecv_replace", unless_own(size_of(count, type), source, comm));
    return PMPI_Sendrecv_replace(data, count, type, target, sent_tag, source, tag, comm, status);
}

/* ---- one-sided calls: none may be made ---- */

int MPI_Put(const void *from, int sent, MPI_Datatype sent_type, int target, MPI_Aint at, int count, MPI_Datatype type, MPI_Win window)
{
    count_add("MPI_Put", 0);
    return PMPI_Put(from, sent, sent_type, target, at, count, type, window);
}

int MPI_Get(void *to, int count, MPI_Datatype type, int target, MPI_Aint at, int sent, MPI_Datatype sent_type, MPI_Win window)
{
    count_add("MPI_Get", 0);
    return PMPI_Get(to, count, type, target, at, sent, sent_type, window);
}

int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *window)
{
    count_add("MPI_Win_create", 0);
    return PMPI_Win_create(base, size, unit, info, comm, window);
}

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window)
{
    count_add("MPI_Win_allocate", 0);
    return PMPI_Win_allocate(size, unit, info, comm, base, window);
}

int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window)
{
    count_add("MPI_Win_allocate_shared", 0);
    return PMPI_Win_allocate_shared(size, unit, info, comm, base, window);
}
