#include "comm/mpi.h"

#include <hetu/kernel.h>

#include <stdlib.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 30, TAG = 1 }; // of one message; MPI counts in int

static struct {
    bool active;
    int rank, size, node_size;
    MPI_Comm control;
} mpi = {.size = 1, .node_size = 1};

void ht_mpi_check(int code, const char *call, const char *file, int line)
{
    if (code == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    ht_fail("%.*s (%s:%d); MPI failed at: %s", length, text, file, line, call);
}

bool ht_mpi_launched(void)
{
    static const char *const SIGNS[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
        if (getenv(SIGNS[i]))
            return true;
    return false;
}

static void find_node_size(void)
{
    MPI_Comm node;
    HT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    HT_MPI(MPI_Comm_size(node, &mpi.node_size));
    HT_MPI(MPI_Comm_free(&node));
}

void ht_mpi_open(int *argc, char ***argv)
{
    if (!ht_mpi_launched())
        return;
    int initialised = 0, level = 0;
    HT_MPI(MPI_Initialized(&initialised));
    if (!initialised)
        HT_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level));
    mpi.active = true;
    HT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    HT_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &mpi.rank));
    HT_MPI(MPI_Comm_size(MPI_COMM_WORLD, &mpi.size));
    find_node_size();
    HT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &mpi.control));
    HT_MPI(MPI_Comm_set_name(mpi.control, "hetu control"));
}

void ht_mpi_close(void)
{
    if (!mpi.active)
        return;
    mpi.active = false;
    MPI_Comm_free(&mpi.control);
    MPI_Finalize();
}

bool ht_mpi_active(void) { return mpi.active; }

int ht_mpi_rank(void) { return mpi.rank; }

int ht_mpi_size(void) { return mpi.size; }

int ht_mpi_node_size(void) { return mpi.node_size; }

MPI_Comm ht_mpi_control(void) { return mpi.control; }

void ht_mpi_broadcast(void *data, size_t bytes)
{
    for (size_t done = 0; mpi.size > 1 && done < bytes; done += MOST_BYTES)
        HT_MPI(MPI_Bcast((char *)data + done, (int)(bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES), MPI_BYTE, 0, mpi.control));
}

void ht_mpi_send(const void *data, size_t bytes, int to)
{
    for (size_t done = 0; done < bytes; done += MOST_BYTES)
        HT_MPI(MPI_Send((const char *)data + done, (int)(bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES), MPI_BYTE, to, TAG,
                        mpi.control));
}

void ht_mpi_receive(void *data, size_t bytes, int from)
{
    for (size_t done = 0; done < bytes; done += MOST_BYTES)
        HT_MPI(MPI_Recv((char *)data + done, (int)(bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES), MPI_BYTE, from, TAG, mpi.control,
                        MPI_STATUS_IGNORE));
}

void ht_mpi_abort(void)
{
    if (mpi.active)
        MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}
