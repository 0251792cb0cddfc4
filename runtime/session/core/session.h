/* A session: rank 0 runs main and issues commands; all ranks carry them out together. */
#ifndef SESSION_CORE_SESSION_H
#define SESSION_CORE_SESSION_H

#include "checkpoint/safetensors.h"
#include "session/core/program.h"
#include "session/observe/progress.h"
#include "session/core/eager.h"

/* A dataset: how many of its rows were read. */
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
    eager_store *eager; // models that hetucc did not compile
    bool check;         // HETU_CHECK on this rank
    const char *dump;   // HETU_DUMP
    int handle_count;
    ht_program **handles;    // on rank 0: the programs that main has, in the order of their making
    struct Writing *writing; // a checkpoint that is on its way; NULL: none
    struct WritingPlan *waiting; // the one after it; NULL: none
    SafeFile loaded;             // what was read last
    int keep;                    // checkpoints of a folder; 0: all
    struct Copies *copies;       // in shared memory; NULL: there are none
    struct Dispatch *dispatch;   // of a program, on rank 0; NULL: there is none
    struct Balance *balance;     // of a program, on rank 0; NULL: there is none
    struct Ending *ending;       // how main saves, on rank 0; NULL: it has not
    Datasets datasets;           // on rank 0
};

struct ht_program {
    ht_session *session;
    bool trains;
    int number; // in session->programs; -1: the one-device library runs it
    eager_program *eager;
    float hyper[HT_GROUPS * HT_HYPER];
    int64_t step;                   // the next one
    double (*factor)(int64_t step); // of the learning rates; NULL: 1
    float loss;                     // of the last step
    Progress progress;
    char *optimizers; // of one that trains: their names, with the parameters' patterns; NULL: some
                      // has no name
};

typedef enum CommandKind {
    COMMAND_OPEN,
    COMMAND_SWITCH,
    COMMAND_ARRIVE,
    COMMAND_RUN,
    COMMAND_FETCH,
    COMMAND_FETCH_INPUT,
    COMMAND_GET_PARAM,
    COMMAND_SET_PARAM,
    COMMAND_SAVE,
    COMMAND_WRITE,
    COMMAND_LOAD,
    COMMAND_STEPS,
    COMMAND_REMEMBER,
    COMMAND_FIND,
    COMMAND_RECALL,
    COMMAND_ROWS,
    COMMAND_HEED,
    COMMAND_CLOSE
} CommandKind;

/* What rank 0 tells the others; the same bytes on all ranks. */
typedef struct Command {
    CommandKind kind;
    int number;    // of the program, or of the parameter
    int index;     // of the image, or of the output
    int64_t step;  // COMMAND_SAVE, COMMAND_STEPS, COMMAND_REMEMBER
    uint64_t seed; // COMMAND_OPEN, COMMAND_STEPS; the key of copies: COMMAND_REMEMBER, COMMAND_FIND
                   // (0: none)
    int64_t bytes; // COMMAND_ARRIVE: of the object that follows
    bool keep;   // COMMAND_SWITCH: inputs that were fed stay fed; COMMAND_ROWS: ranks open the file
    bool report; // COMMAND_RUN: rank 0 wants to know the pace of each rank
    bool check;  // COMMAND_RUN: whether HETU_CHECK is set on rank 0
    float hyper[HT_HYPER]; // COMMAND_RUN: of the first optimizer
    int more; // COMMAND_RUN: optimizers behind it whose numbers follow; those of the others are 0
    unsigned char fed[PROGRAM_MAX_INPUTS / 8]; // COMMAND_RUN: which inputs follow
} Command;

/* Memory of rank 0 that a command reads or writes; NULL on the others. */
typedef struct Payload {
    const void **feeds; // by input
    const void *from;
    void *to;
    const char *path, *manifest; // COMMAND_SAVE, COMMAND_LOAD; NULL: none
    const char *names;           // COMMAND_LOAD: Stored's
    const SafeNote *notes;       // COMMAND_SAVE, COMMAND_REMEMBER
    const char *element;         // COMMAND_ROWS: of the file, at `path`
    RowsPlan rows;               // COMMAND_ROWS
    const char *reason; // COMMAND_LOAD, COMMAND_RECALL, COMMAND_ROWS: why it was refused, on all
                        // ranks, or on rank 0
    int64_t found;      // COMMAND_FIND: the step of the newest copy; -1: none
    float loss;
    struct PaceReport *reports;        // COMMAND_RUN: by rank, where they are wanted
    float hyper[HT_GROUPS * HT_HYPER]; // COMMAND_RUN: on all ranks, once the command is there
} Payload;

/* The one-device library; NULL: it is not linked. */
const EagerLibrary *session_eager(void);

/* Ends the program unless the session is open. */
void session_check_open(const ht_session *session);

/* On rank 0: sends a command to all ranks and carries it out. */
void session_issue(ht_session *session, Command *command, Payload *payload);

/* On the others: carries out commands until the session ends, and ends the process with it. */
_Noreturn void session_serve(ht_session *session);

/* On rank 0: has all ranks take the strategies that were asked for and are there; `wait`: all that
 * were asked for. */
void session_take_arrivals(ht_session *session, bool wait);

/* What is left to do on every rank when the session ends. */
void session_close(ht_session *session);

/* Ends the program with the right command line unless as many ranks run as the images need. */
void session_check_ranks(int argc, char **argv);

/* Threads for kernels on this rank: OMP_NUM_THREADS, else this rank's share of the node's cores. */
void session_set_threads(void);

/* Takes this rank's device; all ranks end with one line when a rank has none. */
void session_take_device(void);

/* Ends this rank; all ranks together. */
_Noreturn void session_leave(int status);

#endif
