/* A session: rank 0 runs main and issues commands; all ranks carry them out together. */
#ifndef SESSION_CORE_SESSION_H
#define SESSION_CORE_SESSION_H

#include "checkpoint/safetensors.h"
#include "session/core/program.h"
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

/* The kinds of commands; commands.c has a table of the functions that carry them out. */
typedef enum CommandKind {
    COMMAND_OPEN,        // create a program: index (image), seed
    COMMAND_SWITCH,      // switch a program to another strategy: number, index (image), keep
    COMMAND_ARRIVE,      // load strategies compiled meanwhile: bytes; from
    COMMAND_RUN,         // run a step: number, report, check, hyper, more, fed; feeds, loss
    COMMAND_FETCH,       // read an output: number, index; to
    COMMAND_FETCH_INPUT, // read an input: number, index; to
    COMMAND_GET_PARAM,   // read a parameter: number; to
    COMMAND_SET_PARAM,   // write a parameter: number; from
    COMMAND_SAVE, // begin a checkpoint: step, number (of notes), index (checkpoints to keep); path,
                  // notes
    COMMAND_WRITE,    // go on writing a checkpoint
    COMMAND_LOAD,     // load a checkpoint: path, manifest, names, reason
    COMMAND_STEPS,    // set a program's next step and the seed: number, step, seed
    COMMAND_REMEMBER, // take an in-memory checkpoint: seed (its key), step, number (of notes);
                      // notes
    COMMAND_FIND,     // look for an in-memory checkpoint: seed (its key; 0: none); found
    COMMAND_RECALL,   // load the in-memory checkpoint that was found: reason
    COMMAND_ROWS,     // open a data set (keep), or feed rows of it: number, index; rows
    COMMAND_HEED,     // take signals from here on
    COMMAND_CLOSE     // end the session
} CommandKind;

/* A command's arguments, which rank 0 broadcasts: the same bytes on all ranks. The kinds above say
 * which fields each reads. */
typedef struct Command {
    CommandKind kind;
    int number;    // of the program in session->programs, of the parameter; or how many notes
    int index;     // of the image, the input or the output
    int64_t step;  // number of a training step
    uint64_t seed; // of random numbers; or the key of in-memory checkpoints
    int64_t bytes; // ARRIVE: of the object that follows; ROWS: elements of the file
    bool keep;     // SWITCH: inputs that were fed stay fed; ROWS: open the file
    bool report;   // RUN: rank 0 wants each rank's computing time
    bool check;    // RUN: HETU_CHECK is set on rank 0
    float hyper[HT_HYPER]; // RUN: hyperparameters of the first optimizer
    int more;              // RUN: further optimizers, whose hyperparameters are broadcast next
    unsigned char fed[PROGRAM_MAX_INPUTS / 8]; // RUN: bit i: input i was fed anew
} Command;

/* Memory that a command reads or writes on rank 0; zero on the other ranks, except where a field
 * says that all ranks have it. */
typedef struct Payload {
    const void **feeds;                // RUN: data by input; NULL: not fed
    const void *from;                  // ARRIVE, SET_PARAM: data that are read
    void *to;                          // FETCH, FETCH_INPUT, GET_PARAM: memory for the result
    const char *path;                  // SAVE, LOAD: folder or file; ROWS: the data set
    const char *manifest;              // LOAD: file of checksums; NULL: none
    const char *names;                 // LOAD: how the file names parameters, as in Stored
    const SafeNote *notes;             // SAVE, REMEMBER: metadata of the checkpoint
    const char *element;               // ROWS: type of the file's numbers, "uint16"
    RowsPlan rows;                     // ROWS: which rows each rank reads
    const char *reason;                // LOAD, RECALL, ROWS: set to why it failed; NULL: it did not
    int64_t found;                     // FIND: set to the step of the newest copy; -1: none
    float loss;                        // RUN: set to the step's loss
    struct PaceReport *reports;        // RUN: set to computing times by rank; NULL: not wanted
    float hyper[HT_GROUPS * HT_HYPER]; // RUN: hyperparameters by optimizer, on all ranks
} Payload;

/* The one-device library; NULL: it is not linked. */
const EagerLibrary *session_eager(void);

/* Ends the program unless the session is open. */
void session_check_open(const ht_session *session);

/* On rank 0: sends a command to all ranks and carries it out. */
void session_issue(ht_session *session, Command *command, Payload *payload);

/* On all ranks but 0: carries out commands until the session ends, then ends the process. */
_Noreturn void session_serve(ht_session *session);

/* On rank 0: makes all ranks load the strategies of ht_prepare that are compiled. `wait`: waits
 * until all are compiled, or until a signal asks the program to end. */
void session_take_arrivals(ht_session *session, bool wait);

/* Frees what every rank holds when the session ends. */
void session_close(ht_session *session);

/* Starts the other ranks that the images need on this host when no launcher started this process
 * (transport/meet/local_ranks.h). HETU_RANKS=external forbids that. Returns whether it did. */
bool session_start_ranks(void);

/* Prints one line about the ranks that session_start_ranks has started. */
void session_print_ranks(void);

/* Ends the program with the right command line unless as many ranks run as the images need. */
void session_check_ranks(int argc, char **argv);

/* Threads for kernels on this rank: OMP_NUM_THREADS, else this rank's share of the node's cores. */
void session_set_threads(void);

/* Takes this rank's device; all ranks end with one line when a rank has none. */
void session_take_device(void);

/* Ends the process of this rank; all ranks call this function together. */
_Noreturn void session_leave(int status);

#endif
