/* The command line.
 *
 * hetucc takes the place of the C compiler: it knows the options below, and keeps everything else,
 * in order, for the C compiler. So that argp can read the whole line, options_read first gives each
 * word that is not ours the form --Xcc=WORD.
 */
#ifndef DRIVER_OPTIONS_H
#define DRIVER_OPTIONS_H

#include "emit/backend.h"
#include "support/array.h"

#include <stdbool.h>

/* Defined whenever hetucc reads or compiles a source: the year and month of the language. */
#define HSPMD_DEFINE "-D_HSPMD=202611"

typedef enum ItemKind {
    ITEM_FLAG,   // an option
    ITEM_DEPEND, // an option about dependency files: -MD, -MF, ...
    ITEM_SOURCE, // a .c file
    ITEM_DEVICE, // a source in the language of a back end that has one of its own
    ITEM_INPUT   // another file, or a library: the linker needs these in order
} ItemKind;

/* What stands behind -R, by remark; NULL at the end. */
extern const char *const remark_words[];

/* A word for the C compiler, with the word that belongs to it: -isystem DIR. */
typedef struct Item {
    ItemKind kind;
    const char *text;
    const char *value; // NULL: none
} Item;
typedef Array(Item) ItemList;

typedef enum Emit { EMIT_EXE, EMIT_C, EMIT_IR, EMIT_COST, EMIT_COST_JSON } Emit;

/* Words of -R. */
typedef enum Remark { REMARK_COMM, REMARK_SWITCH, REMARK_MEMORY, REMARK_SHARDING, REMARKS } Remark;

typedef struct Options {
    ItemList items;
    int source_count, input_count;
    const char *output; // -o; NULL: not given
    bool compile_only;  // -c
    bool hand_over;     // -E, -S, -M, ...: the C compiler does all
    int from_input;     // the item that is standard input, a source in C (-x c -); -1: none
    bool dry_run;       // -###
    bool save_temps, no_fuse, no_views, no_chunks, no_overlap;
    bool plan;             // find a strategy
    int64_t memory;        // of --memory: bytes; 0: not given
    int64_t bucket, chunk; // bytes; 0: not given
    bool optimised, debug; // some -O, some -g was given
    Emit emit;
    const Backend *backend;
    Array(const char *) strategies; // of --strategy, in order
    int known;         // of --known: strategies that a program which runs has; 0: not given
    const char *sarif; // of --diagnostics: the file of the log; NULL: none is named
    const char *cluster, *resume, *print_after, *stop_after, *report;
    bool remarks[REMARKS], warn_implicit_reshard;
    bool strict; // what a cluster file has and nobody reads is an error; no option sets it
} Options;

/* Whether a word begins with another. */
bool begins(const char *word, const char *with);

/* Whether a word for the C compiler is given. */
bool options_have(const Options *options, const char *word);

/* Whether a source is C by -x c alone: its name says something else, or it is standard input. */
bool is_c_by_option(const char *source);

/* Reads the command line. Ends the process with status 1 after a mistake, with 0 after --help and
 * --version. */
void options_read(Arena *arena, Options *options, int argc, char **argv);

#endif
