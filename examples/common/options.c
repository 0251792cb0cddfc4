/* The examples' command line. */
#include "train.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct argp_option option_table[] = {
    {"steps", 's', "N", 0, "training steps", 0},
    {"rate", 'r', "RATE", 0, "learning rate", 0},
    {"every", 'e', "N", 0, "print a line every N steps", 0},
    {"data", 'd', "PATH", 0, "a text file, or a folder of them", 0},
    {"sample", 'n', "BYTES", 0, "write so many bytes of text at the end", 0},
    {"seed", 'S', "N", 0, "seed of weights, dropout and batches", 0},
    {"fixed", 'f', 0, 0, "train on the first step's batch again and again", 0},
    {"losses", 'l', "FILE", 0, "write the loss of each step, one a line", 0},
    {"dump", 'D', "FILE", 0, "write all parameters after training", 0},
    {"load", 'L', "PATH", 0, "begin with the parameters of another tool's file, or folder of files", 0},
    {"logits", 'g', "FILE", 0, "write the logits of the first bytes of the text, float32", 0},
    {"checkpoints", 'c', "FOLDER", 0, "go on from the newest checkpoint of the folder, and save others there", 0},
    {"save", 'a', "N", 0, "save a checkpoint every N steps; 100 if it is not given", 0},
    {"copy", 'm', "N", 0, "under heturun, copy to shared memory every N steps", 0},
    {"switch", 'w', "STEP:STRATEGY[:SEQ]", 0, "go on under another strategy from a step on, with SEQ tokens a row", 0},
    {0},
};

static int number(const char *text, struct argp_state *state)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (*end || end == text || errno || value < 0 || value > 1000000000)
        argp_error(state, "'%s' is not a number of 0 or more", text);
    return (int)value;
}

static float rate(const char *text, struct argp_state *state)
{
    char *end;
    float value = strtof(text, &end);
    if (*end || end == text || !(value >= 0))
        argp_error(state, "'%s' is not a learning rate", text);
    return value;
}

/* Adds a switch, such as "20:tp4" or "20:tp4:48". */
static void add_switch(Options *options, char *text, struct argp_state *state)
{
    char *strategy = strchr(text, ':'), *seq = strategy ? strchr(strategy + 1, ':') : NULL;
    if (!strategy || !strategy[1] || options->switch_count == MOST_SWITCHES)
        argp_error(state, "'%s' is no STEP:STRATEGY[:SEQ], or one too many", text);
    *strategy++ = 0;
    if (seq)
        *seq++ = 0;
    options->switches[options->switch_count++] = (Switch){number(text, state), strategy, seq ? number(seq, state) : 0};
}

static error_t take(int key, char *text, struct argp_state *state)
{
    Options *options = state->input;
    switch (key) {
    case 's': options->steps = number(text, state); return 0;
    case 'r': options->rate = rate(text, state); return 0;
    case 'e': options->every = number(text, state); return 0;
    case 'd': options->data = text; return 0;
    case 'n': options->sample = number(text, state); return 0;
    case 'S': options->seed = (uint64_t)number(text, state); return 0;
    case 'f': options->fixed = true; return 0;
    case 'l': options->losses = text; return 0;
    case 'D': options->dump = text; return 0;
    case 'L': options->load = text; return 0;
    case 'g': options->logits = text; return 0;
    case 'c': options->saved = text; return 0;
    case 'a': options->save = number(text, state); return 0;
    case 'm': options->copy = number(text, state); return 0;
    case 'w': add_switch(options, text, state); return 0;
    case ARGP_KEY_ARG: argp_error(state, "unexpected argument '%s'", text); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

Options options_read(int argc, char **argv, Options defaults)
{
    static const struct argp parser = {.options = option_table, .parser = take, .doc = "Trains the example's model."};
    argp_err_exit_status = 1;
    defaults.save = 100;
    argp_parse(&parser, argc, argv, 0, NULL, &defaults);
    if (defaults.every == 0)
        defaults.every = 10;
    if (defaults.seed == 0)
        defaults.seed = 1;
    return defaults;
}

const Switch *options_switch(const Options *options, int after, int step)
{
    const Switch *found = NULL;
    for (int i = 0; i < options->switch_count; i++)
        if (options->switches[i].step > after && options->switches[i].step <= step && (!found || options->switches[i].step >= found->step))
            found = &options->switches[i];
    return found;
}

int options_longest(const Options *options, int seq)
{
    for (int i = 0; i < options->switch_count; i++)
        seq = options->switches[i].seq > seq ? options->switches[i].seq : seq;
    return seq;
}
