/* The command line.
 *
 * hetucc takes the place of the C compiler: it knows the options below, and keeps everything else,
 * in order, for the C compiler. So that argp can read the whole line, options_read first gives each
 * word that is not ours the form --Xcc=WORD.
 */
#ifndef DRIVER_OPTIONS_H
#define DRIVER_OPTIONS_H

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

/* The words that the C compiler is given, and what they say. */
typedef struct CcOptions {
    ItemList items;
    int source_count, input_count;
    int from_input;        // index of the item that is standard input, C source (-x c -); -1: none
    bool hand_over;        // -E, -S, -M, ...: the C compiler does everything
    bool optimised, debug; // some -O, some -g was given
} CcOptions;

/* Options that the passes read. */
typedef struct PassSwitches {
    bool no_fuse, no_views, no_chunks, no_overlap;
    int64_t bucket, chunk; // bytes; 0: not given
    bool warn_implicit_reshard;
} PassSwitches;

typedef struct Options {
    CcOptions cc;
    PassSwitches passes;
    const char *output; // -o; NULL: not given
    bool compile_only;  // -c
    bool dry_run;       // -###
    bool save_temps;
    bool plan;      // find a strategy
    int64_t memory; // of --memory: bytes; 0: not given
    Emit emit;
    const struct Backend *backend;
    Array(const char *) strategies; // of --strategy, in order
    int known;         // of --known: strategies that the running program has; 0: not given
    const char *sarif; // of --diagnostics: the file of the log; NULL: none is named
    const char *cluster, *resume, *print_after, *stop_after, *report;
    bool remarks[REMARKS];
    bool strict; // keys of a cluster file that nobody reads are errors; no option sets it
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

/* ---- response files (response.c) ---- */

/* The words of a command line, `words` with NULL behind the last, with those of files in place of
 * @FILE: words are parted by white space, may stand in single or double quotes, and a backslash
 * takes the next character as it is. A file may name others. What names no file that can be read
 * stays as it is. A NULL stands behind the last. Files that name themselves end the process with
 * status 1. */
char **response_expand(Arena *arena, char **words);

#endif
