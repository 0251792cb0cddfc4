/* The transport between ranks that MPI connects; mpi_open chooses the level of MPI_Init_thread.
 * exchange/mpi.c has collectives over MPI. */
#include "transport/mpi.h"

#include "base/memory.h"
#include "transport/world_kind.h"

#include <hetu/kernel.h>

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BYTES = 1 << 30, // largest message; MPI counts in int
    TAG = 1,
    LEAST_TAGS = 32767 // number of tags that every MPI has at least
};

static MPI_Comm control, lane[LANES];

void ht_mpi_check(int code, const char *call, const char *file, int line) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    ht_fail("%.*s (%s:%d); MPI failed at: %s", length, text, file, line, call);
}

/* Returns whether MPI launched this process, and HETU_RENDEZVOUS does not ask for the fabric. */
static bool mpi_launched(void) {
    static const char *const SIGNS[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
                                        "PMI_SIZE"};
    if (getenv("HETU_RENDEZVOUS")) return false;
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
        if (getenv(SIGNS[i])) return true;
    return false;
}

static void find_node(WorldPlace *place) {
    MPI_Comm node;
    HT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    HT_MPI(MPI_Comm_rank(node, &place->node_rank));
    HT_MPI(MPI_Comm_size(node, &place->node_size));
    HT_MPI(MPI_Comm_free(&node));
}

/* Makes Open MPI's ranks share no lock with mpirun, unless the user has set PMIX_MCA_gds.
 * Otherwise mpirun hangs if a rank is stopped or killed while the rank holds the lock. */
static void share_no_lock(void) { setenv("PMIX_MCA_gds", "hash", 0); }

/* Returns whether MPI, which the user may have initialised, allows calls from several threads. */
static bool takes_threads(void) {
    int level = MPI_THREAD_SINGLE;
    HT_MPI(MPI_Query_thread(&level));
    return level == MPI_THREAD_MULTIPLE;
}

/* Returns whether srun started this rank with PMI-1 or PMI-2, not with PMIx. */
static bool started_by_pmi(void) {
    return getenv("SLURM_PROCID") && getenv("PMI_RANK") && !getenv("PMIX_RANK") &&
           !getenv("OMPI_COMM_WORLD_SIZE");
}

/* Returns whether this is an Open MPI that supports neither PMI-1 nor PMI-2, judged by the
 * components in its folder. MPI_Init of such an MPI would end the program. */
static bool lacks_pmi(void) {
    bool found = false, speaks = true;
#ifdef OPEN_MPI
    static const char *const folders[] = {"openmpi*", "openmpi*/lib/openmpi*"};
    Dl_info library;
    char path[PATH_MAX], pattern[PATH_MAX + 64];
    if (!dladdr((void *)MPI_COMM_WORLD, &library) || !realpath(library.dli_fname, path) ||
        !strrchr(path, '/'))
        return false;
    *strrchr(path, '/') = 0;
    speaks = false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        glob_t files;
        snprintf(pattern, sizeof pattern, "%s/%s/mca_pmix_*.so", path, folders[i]);
        if (glob(pattern, 0, NULL, &files)) continue;
        for (size_t k = 0; k < files.gl_pathc; k++)
            speaks = speaks || strstr(files.gl_pathv[k], "_s1.so") ||
                     strstr(files.gl_pathv[k], "_s2.so");
        found = true;
        globfree(&files);
    }
#endif
    return found && !speaks;
}

/* Ends the program if MPI_Init would, with a message on rank 0 that says what to do. */
static void check_pmi(void) {
    if (!started_by_pmi() || !lacks_pmi()) return;
    if (strcmp(getenv("PMI_RANK"), "0")) exit(1);
    ht_fail("srun has started the ranks by PMI-1 or PMI-2 (--mpi=pmi2), by which this MPI cannot "
            "connect them; start them by srun "
            "--mpi=pmix, or by srun --mpi=none, which does without MPI");
}

static WorldPlace mpi_open(int *argc, char ***argv, bool threads) {
    WorldPlace place;
    int initialised = 0, level = 0;
    share_no_lock();
    check_pmi();
    HT_MPI(MPI_Initialized(&initialised));
    if (!initialised)
        HT_MPI(MPI_Init_thread(argc, argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED,
                               &level));
    HT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    HT_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &place.rank));
    HT_MPI(MPI_Comm_size(MPI_COMM_WORLD, &place.size));
    find_node(&place);
    HT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &control));
    HT_MPI(MPI_Comm_set_name(control, "hetu control"));
    return place;
}

static void mpi_close(void) {
    HT_MPI(MPI_Comm_free(&control));
    HT_MPI(MPI_Finalize());
}

static void mpi_abort(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

/* Returns the bytes of the next message of a transfer, which begins at byte `done`. */
static int part(size_t bytes, size_t done) {
    return (int)(bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES);
}

static void mpi_broadcast(void *data, size_t bytes) {
    for (size_t done = 0; done < bytes; done += MOST_BYTES)
        HT_MPI(MPI_Bcast((char *)data + done, part(bytes, done), MPI_BYTE, 0, control));
}

static void mpi_gather(const void *mine, size_t bytes, void *all) {
    HT_MPI(MPI_Allgather(mine, part(bytes, 0), MPI_BYTE, all, part(bytes, 0), MPI_BYTE, control));
}

static int message_count(const HostTransfer *transfers, int count) {
    int messages = 0;
    for (int i = 0; i < count; i++)
        messages += (int)((transfers[i].bytes + MOST_BYTES - 1) / MOST_BYTES);
    return messages;
}

/* Starts a transfer's messages and writes their requests to `requests`. Returns their number. */
static int post_messages(MPI_Comm comm, const HostTransfer *transfer, int tag, bool sends,
                         MPI_Request *requests) {
    int posted = 0;
    for (size_t done = 0; done < transfer->bytes; done += MOST_BYTES, posted++) {
        char *data = (char *)transfer->data + done;
        int bytes = part(transfer->bytes, done);
        if (sends)
            HT_MPI(MPI_Isend(data, bytes, MPI_BYTE, transfer->rank, tag, comm, &requests[posted]));
        else HT_MPI(MPI_Irecv(data, bytes, MPI_BYTE, transfer->rank, tag, comm, &requests[posted]));
    }
    return posted;
}

void mpi_exchange(MPI_Comm comm, const HostTransfer *sends, int send_count,
                  const HostTransfer *receives, int receive_count) {
    static MPI_Request *requests;
    static int room;
    int count = message_count(sends, send_count) + message_count(receives, receive_count),
        posted = 0;
    if (count > room) {
        free(requests);
        requests = memory_array(room = count, sizeof *requests);
    }
    for (int i = 0; i < receive_count; i++)
        posted += post_messages(comm, &receives[i], TAG, false, requests + posted);
    for (int i = 0; i < send_count; i++)
        posted += post_messages(comm, &sends[i], TAG, true, requests + posted);
    HT_MPI(MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE));
}

static void exchange(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                     int receive_count) {
    mpi_exchange(control, sends, send_count, receives, receive_count);
}

static int mpi_least(int mine) {
    int least;
    HT_MPI(MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, control));
    return least;
}

/* ---- lanes ---- */

static void mpi_open_channels(void) {
    static const char *const names[LANES] = {"hetu stages", "hetu gradients"};
    if (!takes_threads())
        ht_fail("this program exchanges beside computing, for which it needs MPI_THREAD_MULTIPLE, "
                "and MPI does not give it; initialise MPI "
                "with that level, or use an MPI that has it");
    for (int i = 0; i < LANES; i++) {
        HT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &lane[i]));
        HT_MPI(MPI_Comm_set_name(lane[i], names[i]));
    }
}

static void mpi_close_channels(void) {
    for (int i = 0; i < LANES; i++) HT_MPI(MPI_Comm_free(&lane[i]));
}

static int mpi_tags(void) {
    int *most, known;
    HT_MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &known));
    return known ? *most : LEAST_TAGS;
}

static void mpi_begin(int number, Post *post) {
    MPI_Request *requests = memory_array(message_count(&post->transfer, 1), sizeof *requests);
    post_messages(lane[number], &post->transfer, post->tag, post->sends, requests);
    post->state = requests;
}

static bool mpi_done(int number, Post *post) {
    int done = 0;
    (void)number;
    HT_MPI(MPI_Testall(message_count(&post->transfer, 1), post->state, &done, MPI_STATUSES_IGNORE));
    if (done) free(post->state);
    return done;
}

const WorldKind world_mpi = {.launched = mpi_launched,
                             .open = mpi_open,
                             .close = mpi_close,
                             .abort = mpi_abort,
                             .ended_together = true,
                             .broadcast = mpi_broadcast,
                             .gather = mpi_gather,
                             .exchange = exchange,
                             .least = mpi_least,
                             .open_lanes = mpi_open_channels,
                             .close_lanes = mpi_close_channels,
                             .tags = mpi_tags,
                             .begin = mpi_begin,
                             .done = mpi_done};
