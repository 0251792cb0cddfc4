/* A session: rank 0 runs main and issues commands; all ranks carry them out together. */
#ifndef SESSION_CORE_SESSION_H
#define SESSION_CORE_SESSION_H

#include "session/core/commands.h"
#include "session/observe/progress.h"
#include "session/core/eager.h"

/* A dataset and the number of rows read so far. */
typedef struct Dataset {
    char *name;
    int64_t position;
} Dataset;
typedef struct Datasets {
    Dataset *at;
    int count;
} Datasets;

struct ht_session {
    bool open;
    uint64_t seed;
    Params params;
    Program **programs;
    int program_count;
    eager_store *eager; // parameters of models that hetucc did not compile
    bool check;         // HETU_CHECK on this rank
    const char *dump;   // HETU_DUMP
    int handle_count;
    ht_program **handles;        // rank 0: programs of main, in order of creation
    struct Writing *writing;     // checkpoint being written; NULL: none
    struct WritingPlan *waiting; // checkpoint to write next; NULL: none
    SafeFile loaded;             // header of the checkpoint loaded last
    int keep;                    // number of checkpoints to keep in a folder; 0: all
    struct Copies *copies;       // in-memory checkpoints; NULL: none
    struct Dispatch *dispatch;   // rank 0: state of ht_dispatch; NULL: not used
    struct Balance *balance;     // rank 0: state of ht_balance; NULL: not used
    struct Ending *ending; // rank 0: how main saves, to save once more at a signal; NULL: unknown
    Datasets datasets;     // on rank 0
};

struct ht_program {
    ht_session *session;
    bool trains;
    int number; // in session->programs; -1: the one-device library runs it
    eager_program *eager;
    float hyper[HT_GROUPS * HT_HYPER];
    int64_t step;                   // number of the next step
    double (*factor)(int64_t step); // learning-rate schedule: factor by step; NULL: 1
    float loss;                     // of the last step
    Progress progress;
    char *optimizers; // names and parameter patterns of the optimizers; NULL: one has no name
};

/* The one-device library; NULL: it is not linked. */
const EagerLibrary *session_eager(void);

/* Ends the program unless the session is open. */
void session_check_open(const ht_session *session);

/* On rank 0: makes all ranks load the strategies of ht_prepare that are compiled. `wait`: first
 * waits until all are compiled. */
void session_take_arrivals(ht_session *session, bool wait);

/* Frees what every rank holds when the session ends. */
void session_close(ht_session *session);

/* Ends the program with the right command line unless as many ranks run as the images need. */
void session_check_ranks(int argc, char **argv);

/* Threads for kernels on this rank: OMP_NUM_THREADS, else this rank's share of the node's cores. */
void session_set_threads(void);

/* Takes this rank's device; all ranks end with one line when a rank has none. */
void session_take_device(void);

/* Ends the process of this rank; all ranks call this function together. */
_Noreturn void session_leave(int status);

#endif
