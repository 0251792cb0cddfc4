/* A session: rank 0 runs main and issues commands; all ranks carry them out together. */
#pragma once

#include "session/core/commands.h"
#include "session/core/eager.h"

#include <hetu/checkpoints.h>
#include <hetu/strategies.h>

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
    bool check;         // HETU_CHECK is set on this rank
    const char *dump;   // value of HETU_DUMP; NULL: not set
    int handle_count;
    ht_program **handles;        // rank 0: programs of main, in order of creation
    struct Writing *writing;     // checkpoint being written; NULL: none
    struct WritingPlan *waiting; // checkpoint to write next; NULL: none
    SafeFile loaded;             // header of the checkpoint loaded last
    int keep;                    // number of checkpoints to keep in a folder; 0: all
    char *owned;                 // folder that ht_save found free of other models; NULL: none
    struct Copies *copies;       // in-memory checkpoints; NULL: none
    struct Dispatch *dispatch;   // rank 0: state of ht_dispatch; NULL: not used
    struct Balance *balance;     // rank 0: state of ht_balance; NULL: not used
    struct Ending *ending;       // rank 0: main's saves, for a last save at a signal; NULL: none
    Datasets datasets;           // on rank 0
};

/* ht_progress prints a training's progress: one line on a terminal, about twenty elsewhere. */

/* The lines printed so far. */
typedef struct Progress {
    int64_t lines, first;  // number of lines; step after which the first was printed
    double begun, printed; // times of the first call and of the last line, in seconds
} Progress;

/* The numbers in a line of ht_progress; `rate` is the learning rate. */
typedef struct ProgressStep {
    int64_t done, steps;
    int64_t tokens; // tokens of a step; 0: not known
    float loss, rate;
} ProgressStep;

/* Prints the first and last line, and others every 0.2 s on a terminal, else every 5% or 10 s. */
void progress_print(Progress *progress, const ProgressStep *step);

struct ht_program {
    ht_session *session;
    bool trains;
    int number; // index in session->programs; -1: the one-device library runs the program
    eager_program *eager;
    float hyper[HT_GROUPS * HT_HYPER];
    int64_t step;                   // number of the next step
    double (*factor)(int64_t step); // learning-rate schedule: factor by step; NULL: 1
    float loss;                     // loss of the last step
    Progress progress;
    char *optimizers; // optimizers' names and parameter patterns; NULL: an optimizer has no name
};

/* Returns the one-device library; NULL: it is not linked. */
const EagerLibrary *session_eager(void);

/* Ends the program unless the session is open and session_ranks_fit. Calls session_print_ranks the
 * first time if the program started ranks. */
void session_check_open(const ht_session *session);

/* Ends the program if `program` is NULL; `call` names the function in the message. */
void session_check_program(const ht_program *program, const char *call);

/* Returns the compiled program of main's handle `program`. */
Program *session_image_program(const ht_program *program);

/* On rank 0: makes all ranks load the strategies of ht_prepare that are compiled. `wait`: waits
 * until all are compiled, or until a signal asks the program to end. */
void session_take_arrivals(ht_session *session, bool wait);

/* Writes the last checkpoints and traces, frees the session's memory, and ends communication. */
void session_close(ht_session *session);

/* Returns whether all ranks run the same program. All ranks call it together.
 *
 * Compares the fingerprints of their images (models, strategies, options) and the version of this
 * library. Ranks with `check` (HETU_CHECK) also compare the checksums of their executables. If
 * programs differ, every rank prints rank 0's fingerprint and one that differs from it. */
bool session_agree(bool check);

/* Starts, on this host, the other ranks that the images need (transport/meet/start_local_ranks.h).
 * Does nothing under a launcher or with HETU_RANKS=external. Returns whether it started ranks. */
bool session_start_ranks(void);

/* Prints strategy, number, threads and memory of the ranks that session_start_ranks started. */
void session_print_ranks(void);

/* Warns of environment variables whose names look like misspelled HETU_... variables. */
void session_check_variables(void);

/* Returns whether as many ranks run as each image needs, or there are images and HETU_STRATEGY. If
 * false, session_explain_ranks prints the number needed and the right command line. */
bool session_ranks_fit(void);
void session_explain_ranks(int argc, char **argv);

/* Says on rank 0 that ranks are on several hosts of which the program knows nothing, so that no sum
 * runs inside each host first, and how to mend it. All ranks call it. */
void session_tell_hosts(void);

/* Sets the number of threads for kernels: OMP_NUM_THREADS, else this rank's share of the cores. */
void session_set_threads(void);

/* Returns the number of cores of this host. */
int session_node_cores(void);

/* Opens this rank's device. If a rank has none, all ranks end with a message. */
void session_take_device(void);

/* Closes the world and ends this rank's process; all ranks call this function together. */
_Noreturn void session_leave(int status);
