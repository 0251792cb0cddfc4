/* A compiled program on this rank: its arena, parameters, states and inputs, and its steps. All
 * ranks call each of these functions together. */
#pragma once

#include "session/data/dataset.h"
#include "session/core/image.h"
#include "session/core/params.h"
#include "device/device.h"

/* ---- the schedule of a step ---- */

/* Runs the rows of a pipeline schedule (a row is one part for one micro-batch) in order on a rank.
 * Begins and ends transfers between rows. */

typedef struct Schedule Schedule;

/* Returns the bytes of a role's arena and of the slots (activation buffers) after the arena. */
int64_t schedule_bytes(const ht_image_role *role, const ht_schedule *rows);

/* Plans before which row each transfer of this rank begins and ends. `worker` must have its arena,
 * pipeline and position. `tags` is the program's first message tag. */
Schedule *schedule_open(const ht_image *image, const ht_image_role *role, const ht_worker *worker,
                        int tags);
void schedule_close(Schedule *schedule);

/* Runs one step: all rows, with the transfers planned before each. */
void schedule_run(const Schedule *schedule, ht_worker *worker);

/* ---- programs ---- */

enum { PROGRAM_MAX_INPUTS = 256 };

typedef struct ProgramParam {
    Param *param;
    ParamCopy *copy;
} ProgramParam;

typedef struct Program {
    int number; // index of the registered image
    const ht_image *image;
    const ht_image_role *role; // NULL: this rank is idle
    Schedule *schedule;        // rows and transfers of a step
    ht_worker worker;
    StepNumbers numbers;
    int64_t runs;
    DeviceRecording *recording; // recorded device work of a step (such as a CUDA graph)
    void **slots;               // tensors that outlive a step: parameters, states, inputs
    ProgramParam *params;
    bool fed[PROGRAM_MAX_INPUTS];
    bool ran;
} Program;

/* Creates the program of a registered image, with initial parameters and zero states. */
Program *program_create(int image, Params *params, uint64_t seed);
void program_destroy(Program *program);

/* Switches a program to the strategy of image `image`: moves parameters and states, keeps the step
 * number, and frees `program`. Returns the new program, whose inputs must be fed again. */
Program *program_switch(Program *program, int image, Params *params);

/* Distributes an input to all ranks. `data` is the whole tensor on rank 0, else NULL. */
void program_feed(Program *program, int input, const void *data);

/* Returns the memory of the program's inputs on this rank, by input. */
void **program_input_slots(const Program *program);

/* Fills this rank's piece of an input with rows of a dataset file (data/rows_of_rank.c). */
void program_read(Program *program, int input, const RowsPlan *rows);

/* Inputs that carry over a switch. program_take_inputs gathers the fed inputs on rank 0.
 * program_give_inputs feeds and frees them; the switched program has equal inputs. */
typedef struct FedInputs {
    bool *fed;
    void **data; // NULL on other ranks
} FedInputs;
FedInputs *program_take_inputs(const Program *program);
void program_give_inputs(Program *program, FedInputs *inputs);

/* Runs a training step or forward pass. Returns the loss on rank 0; 0: another rank, or no loss. */
float program_run(Program *program, const float *hyper);

/* Gathers a whole output in `to` on rank 0. */
void program_fetch(Program *program, int output, void *to);

/* Return the bytes of a whole input or output. */
int64_t program_input_bytes(const Program *program, int input);
int64_t program_output_bytes(const Program *program, int output);

/* Gathers a whole input in `to` on rank 0. Unread elements have the padding value. */
void program_fetch_input(const Program *program, int input, void *to);

/* Return the index of an input or output by name; -1: there is none. */
int program_input(const Program *program, const char *name);
int program_output(const Program *program, const char *name);

/* program_check (HETU_CHECK) ends the program if ranks hold different values of an element of a
 * parameter or state. program_dump (HETU_DUMP=DIR) writes this rank's pieces to
 * DIR/stepN/RANK/NAME.bin and NAME.boxes; `when` is "step" or "switch". */
void program_check(Program *program);
void program_dump(const Program *program, const char *folder, const char *when);
