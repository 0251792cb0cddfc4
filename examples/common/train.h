/* What the examples share beside their models: options, text, progress, and files that tests compare.
 *
 *     ht_session *session = ht_open(&argc, &argv);
 *     Options options = options_read(argc, argv, (Options){.steps = 200, .rate = 3e-4f});
 *     Progress progress = progress_start(&options, batch * seq, "tokens");
 *     for (int step = 0; step < options.steps; step++)
 *         progress_step(&progress, ht_step(program, ...));
 *     progress_end(&progress, session);
 *
 * Nothing here knows of devices: these functions run on rank 0 alone, as all of `main` behind ht_open does. Every error ends the program with
 * a message and exit status 1.
 */
#ifndef EXAMPLES_TRAIN_H
#define EXAMPLES_TRAIN_H

#include <hetu/hetu.h>

#include <stdio.h>

/* Another strategy from a step on. */
typedef struct Switch {
    int step;
    const char *strategy;
    int seq; // tokens of a row from then on; 0: as before
} Switch;

enum { MOST_SWITCHES = 256 };

/* The command line. A field that is left zero has the default that the example chose. */
typedef struct Options {
    int steps;          // training steps
    int every;          // a line of progress every so many steps
    int sample;         // bytes of text to write at the end
    float rate;         // learning rate
    uint64_t seed;      // of weights, dropout and the choice of batches
    bool fixed;         // every step has the first step's batch
    const char *data;   // file or folder of text
    const char *dump;   // file for all parameters after training
    const char *losses; // file for the losses, one a line
    const char *load;   // file or folder of parameters to begin with
    const char *logits; // file for the logits of the first bytes of the text
    const char *saved;  // folder of checkpoints, from the newest of which training goes on
    int save, copy;     // a checkpoint, and a copy in shared memory, every so many steps; 0: never
    int switch_count;
    Switch switches[MOST_SWITCHES]; // in the order of the command line
} Options;

/* Reads the command line over the example's defaults; `--help` lists the options. */
Options options_read(int argc, char **argv, Options defaults);

/* The switch that is due in front of a step, of those behind step `after`; NULL: none. */
const Switch *options_switch(const Options *options, int after, int step);

/* The most tokens that a row has in any step, if it begins with `seq`. */
int options_longest(const Options *options, int seq);

/* Bytes of text. */
typedef struct Text {
    unsigned char *bytes;
    size_t size;
} Text;

/* The bytes of a file, or of all regular files of a folder in the order of their names. There must be more than `least`. */
Text text_read(const char *path, size_t least);

/* Fills tokens (rows, length) with runs of text from random places, and targets (rows, length) with the byte after each. */
void text_batch(const Text *text, uint64_t *draw, int rows, int length, int32_t *tokens, int32_t *targets);

/* Runs a program whose input `tokens` has so many rows on the first bytes of the text, and writes its logits: float32 (rows, length, vocab). */
void text_logits(ht_program *program, const Text *text, int rows, int length, int vocab, const char *path);

/* The next of a sequence of random numbers: 64 bits, uniform in [0, 1), and normal with mean 0 and deviation 1. */
uint64_t draw_bits(uint64_t *draw);
double draw_uniform(uint64_t *draw);
double draw_normal(uint64_t *draw);

/* An index drawn with probability proportional to exp(logits[i] / temperature). */
int draw_index(uint64_t *draw, const float *logits, int count, float temperature);

/* Memory for `count` elements of `size` bytes, zero. */
void *memory(size_t count, size_t size);

/* How training goes. */
typedef struct Progress {
    const Options *options;
    int step, first;  // steps made, and those of them that another run has made
    int saved;        // steps made when it was last saved
    bool told;        // a signal ended training
    double items;     // tokens or rows a step
    const char *unit; // what an item is
    double start;     // seconds, at the first step's end
    double elapsed;   // seconds since then
    FILE *losses;
    ht_session *session; // where checkpoints are wanted
    uint64_t *draw;      // random numbers that are yet to come, which go into them
} Progress;

/* Opens the file of losses; a step has so many items: "tokens", "rows". */
Progress progress_start(const Options *options, double items, const char *unit);

/* Goes on from the newest checkpoint, where the options name a folder of them: returns the steps that were made, 0: none. Losses of later ones go
 * from the file. `draw` is what it was then, unless all steps have one batch; from now on progress_step saves as the options say. */
int progress_resume(Progress *progress, ht_session *session, uint64_t *draw);

/* Counts a step and prints a line: the loss, items a second, and the time left. */
void progress_step(Progress *progress, float loss);

/* Whether training is to end before its last step, since a signal said so (SIGTERM, SIGUSR1, SIGUSR2): what there is is saved then. Without
 * a folder for checkpoints a signal ends the program at once. */
bool progress_ended(Progress *progress);

/* Closes the file of losses and writes the parameters: for each a line "name count" and then its elements, native float32. */
void progress_end(Progress *progress, ht_session *session);

#endif
