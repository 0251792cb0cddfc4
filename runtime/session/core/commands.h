/* The commands of a session: what rank 0 tells all ranks to carry out.
 *
 *     Command command = {.kind = COMMAND_SWITCH, .switching = {.program = 0, .image = 2}};
 *     session_issue(session, &command, &(Payload){0});
 *
 * Command and Payload are tagged unions: `kind` says which member of both unions is set. Table
 * `commands` of commands.c has the function that carries out a command. */
#pragma once

#include "checkpoint/safetensors.h"
#include "session/core/program.h"

typedef enum CommandKind {
    COMMAND_OPEN,        // create a program
    COMMAND_SWITCH,      // switch a program to another strategy
    COMMAND_ARRIVE,      // load strategies that were compiled while the program runs
    COMMAND_RUN,         // run a step or a forward pass
    COMMAND_FETCH,       // read an output
    COMMAND_FETCH_INPUT, // read an input
    COMMAND_GET_PARAM,   // read a parameter
    COMMAND_SET_PARAM,   // write a parameter
    COMMAND_SAVE,        // begin a checkpoint
    COMMAND_WRITE,       // go on writing a checkpoint
    COMMAND_LOAD,        // load a checkpoint
    COMMAND_STEPS,       // set a program's next step and the seed of all programs
    COMMAND_REMEMBER,    // take an in-memory checkpoint
    COMMAND_FIND,        // look for the newest in-memory checkpoint
    COMMAND_RECALL,      // load the in-memory checkpoint that was found
    COMMAND_OPEN_ROWS,   // open a dataset's file
    COMMAND_ROWS,        // feed an input with rows of an open file
    COMMAND_LOOK,        // time messages between hosts
    COMMAND_HEED,        // defer signals to rank 0 from here on
    COMMAND_CLOSE        // end the session
} CommandKind;

/* A command's arguments, which rank 0 broadcasts: the same bytes on all ranks. A program is given
 * by its index in session->programs, an image by its index among the registered images. */
typedef struct Command {
    CommandKind kind;
    union {
        struct {
            int image;
            uint64_t seed;
        } open;
        struct {
            int program, image;
            bool keep_inputs; // fed inputs stay fed
        } switching;
        struct {
            int64_t bytes; // size of the shared object
        } arrive;
        struct {
            int program;
            bool report;                               // rank 0 needs each rank's computing time
            bool check;                                // HETU_CHECK is set on rank 0
            float hyper[HT_HYPER];                     // hyperparameters of the first optimizer
            int more;                                  // number of optimizers after the first
            unsigned char fed[PROGRAM_MAX_INPUTS / 8]; // bit i: this step feeds input i
        } run;
        struct {
            int program, index; // index: number of the output or input
        } fetch;
        struct {
            int param; // index in session->params
        } param;
        struct {
            int64_t step;
            int note_count;
            int keep; // number of checkpoints to keep in the folder; 0: all
        } save;
        struct {
            int program;
            int64_t step;
            uint64_t seed;
        } steps;
        struct {
            int64_t step;
            int note_count;
            uint64_t key; // key of the folder of checkpoints (copies_key)
        } remember;
        struct {
            uint64_t key; // key of the folder of checkpoints; 0: no folder
        } find;
        struct {
            int program, input;
            int64_t elements; // OPEN_ROWS only: dataset_elements of the file on rank 0
        } rows;
        struct {
            int round[3]; // rounds in which pairs of hosts meet (session/control/links.h); -1: none
            int tries;    // messages of a pair
            bool small;   // messages are those of a lowered link
        } look;
    };
} Command;

/* Memory of rank 0 that a command reads or writes. On other ranks, all members are zero. */
typedef union Payload {
    struct {
        const void **feeds;                // data by input; NULL: not fed
        struct PaceReport *reports;        // set to computing times by rank; NULL: not wanted
        float hyper[HT_GROUPS * HT_HYPER]; // hyperparameters by optimizer
        float loss;                        // set to the step's loss
    } run;
    const void *from; // ARRIVE, SET_PARAM: data that are read
    void *to;         // FETCH, FETCH_INPUT, GET_PARAM: memory for the result
    struct {
        const char *folder;    // SAVE: folder of checkpoints
        const SafeNote *notes; // SAVE, REMEMBER: metadata of the checkpoint
    } save;
    struct {
        const char *path;     // path of a folder or file
        const char *manifest; // file of checksums; NULL: none
        const char *names;    // how the file names parameters (foreign_tensors.h)
        const char *reason;   // LOAD, RECALL: set to why the command failed; NULL: success
    } load;
    int64_t found; // FIND: set to the step of the newest copy; -1: none
    struct {
        const char *path, *element; // path of the file; type of its elements, "uint16"
        const char *reason;         // set to why the command failed; NULL: success
    } open_rows;
    double *seconds; // LOOK: set to the seconds by rank and round
    RowsPlan rows;   // ROWS: which rows each rank reads
} Payload;

/* On rank 0: sends a command to all ranks and carries it out. */
void session_issue(ht_session *session, Command *command, Payload *payload);

/* On all ranks but 0: carries out commands until the session ends, then ends the process. */
_Noreturn void session_serve(ht_session *session);
