/* The command line of hetucc.
 *
 *     hetucc -O3 gpt.c --strategy=fast -lm -o gpt
 *
 * hetucc takes the place of the C compiler: it reads the options that it knows, and keeps all
 * others, in order, for the C compiler. options_read first rewrites each unknown word as
 * --Xcc=WORD, so that argp can parse the whole line. */
#pragma once

#include "support/array.h"

#include <stdbool.h>

/* Defines _HSPMD, year and month of the language, whenever hetucc reads or compiles a source. */
#define HSPMD_DEFINE "-D_HSPMD=202611"

typedef enum ItemKind {
    ITEM_FLAG,   // an option
    ITEM_DEPEND, // an option about dependency files: -MD, -MF, ...
    ITEM_SOURCE, // a .c file
    ITEM_DEVICE, // a source in the language of a backend, such as .cu
    ITEM_INPUT   // another file, or a library: their order matters to the linker
} ItemKind;

/* The words after -R, by Remark; NULL at the end. */
extern const char *const remark_words[];

/* A word for the C compiler, with its value if it has one: -isystem DIR. */
typedef struct Item {
    ItemKind kind;
    const char *text;
    const char *value; // NULL: none
} Item;
typedef Array(Item) ItemList;

/* The form of hetucc's output (--emit). */
typedef enum Emit { EMIT_EXE, EMIT_C, EMIT_IR, EMIT_COST, EMIT_COST_JSON } Emit;

/* What an option -R can ask for. */
typedef enum Remark { REMARK_COMM, REMARK_SWITCH, REMARK_MEMORY, REMARK_SHARDING, REMARKS } Remark;

/* The words for the C compiler, and facts about them. */
typedef struct CcOptions {
    ItemList items;
    int source_count, input_count; // C sources; these, all other files, and libraries (-l)
    int from_input; // index of the item that is standard input, C source (-x c -); -1: none
    bool hand_over; // -E, -S, -M, ...: the C compiler does everything
    bool optimised; // some -O was given
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
    const char *init; // --init: the folder for a first program; NULL: not given
    struct {
        bool find;      // --plan: find a strategy
        bool list;      // --strategies: list the model and its strategies
        int64_t memory; // --memory: bytes; 0: not given
    } plan;
    Emit emit;
    const struct Backend *backend;
    Array(const char *) strategies; // values of --strategy, in order
    int known;         // --known: number of strategies that the running program has; 0: not given
    const char *sarif; // --diagnostics: the file of the log; NULL: none is named
    const char *cluster, *resume, *print_after, *stop_after, *report;
    bool remarks[REMARKS];
    bool strict; // unknown keys of a cluster file are errors; set by tools, by no option
} Options;

/* Returns whether a word begins with `with`. */
bool begins(const char *word, const char *with);

/* Returns whether one of the words for the C compiler is `word`. */
bool options_have(const Options *options, const char *word);

/* If an option in `words`, such as "-o -c", is given, exits with 2 and "WHY: leave out WORD". */
void options_refuse(const Options *options, const char *why, const char *words);

/* Returns whether only -x c makes a source C: its name does not end in .c, or it is "-". */
bool is_c_by_option(const char *source);

/* Reads the command line to *options. Exits with 2 after a mistake, 0 after --help, --version. */
void options_read(Arena *arena, Options *options, int argc, char **argv);

/* ---- response files (response.c) ---- */

/* Returns the words of a command line, each @FILE replaced by FILE's words. NULL ends both lists.
 *
 * White space separates the words of a file, except in quotes and after a backslash. A file may
 * name other files. An @FILE that does not exist stays as it is. A file that cannot be read, or
 * that names itself, ends the process with status 1. */
char **response_expand(Arena *arena, char **words);
