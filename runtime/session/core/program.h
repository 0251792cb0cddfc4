/* A program of an image on this rank: its arena, its slots, and running it. Every function here is
 * called by all ranks together. */
#ifndef SESSION_CORE_PROGRAM_H
#define SESSION_CORE_PROGRAM_H

#include "session/data/dataset.h"
#include "session/core/image.h"
#include "session/core/params.h"
#include "session/core/schedule.h"
#include "device/device.h"

enum { PROGRAM_MAX_INPUTS = 256 };

typedef struct ProgramParam {
    Param *param;
    ParamCopy *copy;
} ProgramParam;

typedef struct Program {
    int number; // of the image among the registered ones
    const ht_image *image;
    const ht_image_role *role; // NULL: this rank is idle
    Schedule *schedule;        // what it does in a step
    ht_worker worker;
    StepNumbers numbers;
    int64_t runs;
    DeviceRecording *recording; // of the device's work in a step
    void **slots;               // tensors that outlive a step: parameters, states, inputs
    ProgramParam *params;
    bool fed[PROGRAM_MAX_INPUTS];
    bool ran;
} Program;

/* The program of a registered image. */
Program *program_create(int image, Params *params, uint64_t seed);
void program_destroy(Program *program);

/* The same program under another of its strategies, which image `image` is for: with its
 * parameters, states and the number of its step. `program` is gone then. Its inputs have to be fed
 * anew. */
Program *program_switch(Program *program, int image, Params *params);

/* Distributes an input that lies whole on rank 0 at `data` (NULL on other ranks). */
void program_feed(Program *program, int input, const void *data);

/* Fills an input with rows of a file that this rank has open, each rank its own piece. */
void program_read(Program *program, int input, const RowsPlan *rows);

/* The inputs that the program was fed, each whole on rank 0; and feeds them to what the program has
 * become, whose inputs have the shapes that they had. */
typedef struct FedInputs {
    bool *fed;
    void **data; // NULL on other ranks
} FedInputs;
FedInputs *program_take_inputs(const Program *program);
void program_give_inputs(Program *program, FedInputs *inputs);

/* One step, or one forward run; returns the loss on rank 0, 0 elsewhere and where there is none. */
float program_run(Program *program, const float *hyper);

/* Gathers an output on rank 0. */
void program_fetch(Program *program, int output, void *to);

/* Gathers an input on rank 0, as it was fed; what stands for nothing (pragma padding) where no rank
 * reads it. */
void program_fetch_input(const Program *program, int input, void *to);

/* The index of an input or output by name; -1. */
int program_input(const Program *program, const char *name);
int program_output(const Program *program, const char *name);

/* Environment HETU_CHECK: ends the program when two holders of an element of a parameter or state
 * differ. Environment HETU_DUMP: writes what this rank holds to DIR/stepN/RANK/NAME.bin and
 * NAME.boxes; `when` is "step", or "switch". */
void program_check(Program *program);
void program_dump(const Program *program, const char *folder, const char *when);

#endif
