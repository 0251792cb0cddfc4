/* One source through the compiler: from the frontend to an object file.
 *
 *     gpt.c  ─unit_read─▶  Unit  ─unit_emit─▶  gpt.main.c, gpt.role0.c, ...  ─cc─▶  gpt.o
 *
 * command.c writes the C compiler's command lines, compile.c runs the steps, waiting.c runs them
 * for sources that objects keep. Nothing of a model's compilation is cached. folder.c does not
 * write emitted files that do not change, and caches the runtime's objects (HETU_RUNTIME_CACHE). */
#pragma once

#include "driver/options.h"
#include "driver/output.h"
#include "emit/emit.h"
#include "frontend/frontend.h"
#include "passes/pass_manager.h"

typedef struct CompileOptions CompileOptions; // passes/pass_manager.h

typedef struct Driver {
    Arena *arena;
    Diag *diag;
    const Options *options;
    Toolchain tools;
    Array(struct Module *) modules; // modules of the units that were read
    bool prepares;                  // a unit may get strategies at run time
    // All parts of the program, and its parts in objects (object_sections.h); NULL: not read yet.
    const struct PortionList *parts, *objects;
    // The part of an object that is being compiled; NULL: a source of the command line.
    const struct Portion *part;
} Driver;

/* ---- steps (compile.c) ---- */

/* Returns the options of the passes, as the command line gives them. */
CompileOptions compile_options(const Options *options);

/* Returns the target: the cluster, and whether communication overlaps with computing. */
Target compile_target(const Options *options, const struct Cluster *cluster);

/* Runs the frontend and the passes on a source; prints the tables of -R. Returns NULL on errors. */
Unit *unit_read(Driver *driver, const char *source);

/* Appends a unit's C files to `files`; they include its source under the name `include`. */
void unit_emit(Driver *driver, EmittedFiles *files, const Unit *unit, const char *include);

/* Compiles a unit that has models to `object`. Returns the exit status: 0; 1 after errors, or when
 * the C compiler refuses the user's source; 2 when it refuses an emitted file. */
int unit_compile(Driver *driver, const Unit *unit, const char *object);

/* Compiles a source with no models, or with waiting models, to the object file `object`. The object
 * also keeps what evaluation needs of the source. Returns the exit status. */
int part_compile(Driver *driver, const Unit *unit, const char *object);

/* Compiles a source without models to `object`, as the C compiler does. Returns the exit status. */
int plain_compile(Driver *driver, const char *source, const char *object);

/* Ends hetucc with status 2 when an output file is also an input, even under another name. */
void check_output(const Options *options, const char *path);

/* ---- command lines for the C compiler (command.c) ---- */

/* Returns whether a C source includes <hetu/hetu.h>, itself or through its headers, or contains
 * "hspmd". The frontend reads such a source. */
bool source_is_ours(Driver *driver, const char *source);

/* Returns the frontend's options for a source; `cluster` is the content of the cluster file. */
FrontendOptions frontend_options(Driver *driver, const char *source, const struct Cluster *cluster);

/* Returns the C compiler's command with the user's options for compiling and those for hetu.h. */
Command compile_command(Driver *driver);

/* Adds a source to a command, with -x c when the source's name does not end in .c. */
void add_source_word(Command *command, const char *source);

/* Adds the options that find hetu.h and define _HSPMD; these must follow the user's options. */
void add_headers(Driver *driver, Command *command);

/* Adds an item of hetucc's command line to a command: its word, and its value if it has one. */
void command_add_item(Command *command, const Item *item);

/* Returns whether an option changes generated code, not the meaning of the source. */
bool item_is_code(const Item *item);

/* Returns whether emitted files get an option, too: those of generated code, except -ffast-math and
 * its like, for kernels compute as they are written (<hetu/strict_math.h>). */
bool item_is_for_kernels(const Item *item);

/* Returns whether the last -O is -O0. Emitted files then get -O0, too, which compiles fast. */
bool is_unoptimised(const Options *options);

/* Returns whether the frontend needs an option, too: -I, -D, -include, -std= and the like. */
bool item_is_source(const Item *item);

/* Adds hetucc's and the C compiler's options for compiling a unit again, except its strategies. */
void add_options(Driver *driver, Command *command);

/* Writes the dependency file of -MD or -MMD, with target `object`. Returns the exit status. */
int write_dependencies(Driver *driver, const char *source, const char *object);

/* Returns the absolute name of a file; "" is the current folder. */
const char *absolute_name(Arena *arena, const char *path);

/* Returns a file's text with null bytes replaced by blanks; "" when the file cannot be read. */
const char *file_text(Arena *arena, const char *path);

/* Returns a source's name without folders and suffix, followed by `suffix`. */
const char *name_with(Arena *arena, const char *source, const char *suffix);

/* Returns a name in which `_` replaces every character that make or a shell treats specially. */
const char *name_plain(Arena *arena, const char *name);

/* Returns the clang option for an option of gcc; NULL if unneeded. Reports one that clang lacks. */
const char *language_option(Diag *diag, const char *option);

/* ---- options that replace a step (plan_option.c, list.c, resume_from_ir.c) ---- */

/* Finds a strategy for the sources' model on the cluster (--plan). Writes it to the file that -o
 * names, else to one named like the source, and prints the reasons. Returns the exit status. */
int plan_make(Driver *driver);

/* Finds a strategy for the sources' model on a cluster, and writes its text to `strategy`. Returns
 * false after errors. */
bool plan_find(Driver *driver, const struct Cluster *cluster, const char *name, Text *strategy);

/* Prints dimensions, parameters and layers of models, and strategies. Returns the exit status. */
int list_make(Driver *driver);

/* Replaces modules of the unit by the --resume file's modules of the same model and strategy.
 * Returns false after errors: a module belongs to none of the sources, or its model has changed. */
bool unit_resume(Driver *driver, Unit *unit);

/* Copies the files of examples/start, as they are installed, into a folder, which is made if it is
 * missing. Replaces no file. Prints what to do next. Returns the exit status. */
int init_folder(const Toolchain *tools, const char *folder);
