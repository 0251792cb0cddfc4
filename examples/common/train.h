/* Code that the examples share: options, text, progress, and files that tests compare.
 *
 *     ht_session *session = ht_open(&argc, &argv);
 *     Options options = options_read(argc, argv, (Options){.steps = 200, .rate = 3e-4f});
 *     Progress progress = progress_start(&options, batch * seq, "tokens");
 *     for (int step = 0; step < options.steps; step++)
 *         progress_step(&progress, ht_step(program, ...));
 *     progress_end(&progress, session);
 *
 * Nothing here knows of devices: these functions run on rank 0 alone, as all of `main` after ht_open does. Every error ends the program with
 * a message and exit status 1.
 */
#ifndef EXAMPLES_TRAIN_H
#define EXAMPLES_TRAIN_H

#include <hetu/hetu.h>

#include <stdio.h>

/* A change to another strategy before a step. */
typedef struct Switch {
    int step;
    const char *strategy;
    int seq; // tokens of a row from this step on; 0: as before
} Switch;

enum { MOST_SWITCHES = 256 };

/* Options of the command line. A field without an option on the command line has the example's default. */
typedef struct Options {
    int steps;          // training steps
    int every;          // steps between two lines of progress
    int sample;         // bytes of text to write at the end
    float rate;         // learning rate
    uint64_t seed;      // seed of weights, dropout and the choice of batches
    bool fixed;         // every step trains on the first step's batch
    const char *data;   // file or folder of text
    const char *dump;   // file for all parameters after training
    const char *losses; // file for the losses, one a line
    const char *load;   // file or folder of parameters to begin with
    const char *logits; // file for the logits of the first bytes of the text
    const char *saved;  // folder of checkpoints; training goes on from the newest one
    int save, copy;     // steps between two checkpoints, and between two copies in shared memory; 0: none
    int switch_count;
    Switch switches[MOST_SWITCHES]; // in the order of the command line
} Options;

/* Returns the example's defaults, changed by the command line; `--help` lists the options. */
Options options_read(int argc, char **argv, Options defaults);

/* Returns the latest switch that is later than step `after` and not later than `step`; NULL: none. */
const Switch *options_switch(const Options *options, int after, int step);

/* Returns the most tokens that a row has in any step; rows begin with `seq` tokens. */
int options_longest(const Options *options, int seq);

/* The bytes of a text. */
typedef struct Text {
    unsigned char *bytes;
    size_t size;
} Text;

/* Returns the bytes of a file, or of all regular files of a folder by name. Ends the program unless there are more than `least`. */
Text text_read(const char *path, size_t least);

/* Fills tokens (rows, length) with runs of text from random places, and targets (rows, length) with the byte after each. */
void text_batch(const Text *text, uint64_t *draw, int rows, int length, int32_t *tokens, int32_t *targets);

/* Runs a program with input `tokens` (rows, length) on the first bytes of the text, and writes its logits to `path`: float32 (rows, length, vocab). */
void text_logits(ht_program *program, const Text *text, int rows, int length, int vocab, const char *path);

/* Return the next random number after state *draw: 64 bits; uniform in [0, 1); normal with mean 0 and standard deviation 1. */
uint64_t draw_bits(uint64_t *draw);
double draw_uniform(uint64_t *draw);
double draw_normal(uint64_t *draw);

/* Returns index i, drawn with probability proportional to exp(logits[i] / temperature). */
int draw_index(uint64_t *draw, const float *logits, int count, float temperature);

/* Returns zeroed memory for `count` elements of `size` bytes; free() it. */
void *memory(size_t count, size_t size);

/* Progress of training. */
typedef struct Progress {
    const Options *options;
    int step, first;  // steps made so far, and those that earlier runs made
    int saved;        // steps made at the last checkpoint
    bool told;        // a signal ended training
    double items;     // tokens or rows a step
    const char *unit; // "tokens" or "rows"
    double start;     // clock in seconds at the end of this run's first step
    double elapsed;   // seconds since `start`
    FILE *losses;     // NULL: losses are not written
    ht_session *session; // NULL: no checkpoints
    uint64_t *draw;      // state of the random numbers, which checkpoints store
} Progress;

/* Returns the progress of a run whose steps have `items` tokens or rows (`unit`). Creates the file of losses unless progress_resume will. */
Progress progress_start(const Options *options, double items, const char *unit);

/* Resumes from the newest checkpoint if the options name a folder of checkpoints; returns its number of steps, or 0. Deletes later steps from the
 * file of losses; restores *draw unless all steps have one batch. From now on progress_step saves as the options say. */
int progress_resume(Progress *progress, ht_session *session, uint64_t *draw);

/* Counts a step and writes its loss. When due, saves, and prints a line: the loss, items a second, and the time left. */
void progress_step(Progress *progress, float loss);

/* Returns whether a signal (SIGTERM, SIGUSR1, SIGUSR2) has told training to end before its last step; if so, saves a checkpoint first. Without
 * a folder for checkpoints a signal ends the program at once. */
bool progress_ended(Progress *progress);

/* Closes the file of losses. Writes the parameters to options->dump: for each a line "name count", then its elements as native float32. */
void progress_end(Progress *progress, ht_session *session);

#endif
