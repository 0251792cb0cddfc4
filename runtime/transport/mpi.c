/* Ranks that MPI connects. */
#include "transport/mpi.h"

#include "transport/world_kind.h"

#include <hetu/kernel.h>

#include <stdlib.h>

enum { MOST_BYTES = 1 << 30, TAG = 1 }; // of one message; MPI counts in int

static MPI_Comm control;

void ht_mpi_check(int code, const char *call, const char *file, int line)
{
    if (code == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    ht_fail("%.*s (%s:%d); MPI failed at: %s", length, text, file, line, call);
}

/* Whether mpirun, srun or another launcher of MPI started this process, and the ranks are not told to meet by themselves. */
static bool mpi_launched(void)
{
    static const char *const SIGNS[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
    if (getenv("HETU_RENDEZVOUS"))
        return false;
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
        if (getenv(SIGNS[i]))
            return true;
    return false;
}

static void find_node(WorldPlace *place)
{
    MPI_Comm node;
    HT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    HT_MPI(MPI_Comm_rank(node, &place->node_rank));
    HT_MPI(MPI_Comm_size(node, &place->node_size));
    HT_MPI(MPI_Comm_free(&node));
}

static WorldPlace mpi_open(int *argc, char ***argv)
{
    WorldPlace place;
    int initialised = 0, level = 0;
    HT_MPI(MPI_Initialized(&initialised));
    if (!initialised)
        HT_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level));
    HT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    HT_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &place.rank));
    HT_MPI(MPI_Comm_size(MPI_COMM_WORLD, &place.size));
    find_node(&place);
    HT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &control));
    HT_MPI(MPI_Comm_set_name(control, "hetu control"));
    return place;
}

static void mpi_close(void)
{
    HT_MPI(MPI_Comm_free(&control));
    HT_MPI(MPI_Finalize());
}

static void mpi_abort(void) { MPI_Abort(MPI_COMM_WORLD, 1); }

/* The bytes of the next message, which begins at `done`. */
static int part(size_t bytes, size_t done) { return (int)(bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES); }

static void mpi_broadcast(void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += MOST_BYTES)
        HT_MPI(MPI_Bcast((char *)data + done, part(bytes, done), MPI_BYTE, 0, control));
}

static void mpi_send(const void *data, size_t bytes, int to)
{
    for (size_t done = 0; done < bytes; done += MOST_BYTES)
        HT_MPI(MPI_Send((const char *)data + done, part(bytes, done), MPI_BYTE, to, TAG, control));
}

static void mpi_receive(void *data, size_t bytes, int from)
{
    for (size_t done = 0; done < bytes; done += MOST_BYTES)
        HT_MPI(MPI_Recv((char *)data + done, part(bytes, done), MPI_BYTE, from, TAG, control, MPI_STATUS_IGNORE));
}

static int mpi_least(int mine)
{
    int least;
    HT_MPI(MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, control));
    return least;
}

const WorldKind world_mpi = {.launched = mpi_launched,
                             .open = mpi_open,
                             .close = mpi_close,
                             .abort = mpi_abort,
                             .ended_together = true,
                             .broadcast = mpi_broadcast,
                             .send = mpi_send,
                             .receive = mpi_receive,
                             .least = mpi_least};
