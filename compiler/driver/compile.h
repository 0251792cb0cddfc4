/* One source through the compiler: from the frontend to an object file. */
#ifndef DRIVER_COMPILE_H
#define DRIVER_COMPILE_H

#include "driver/options.h"
#include "driver/output.h"
#include "emit/emit.h"
#include "frontend/frontend.h"

typedef struct CompileOptions CompileOptions; // ir/module.h

typedef struct Driver {
    Arena *arena;
    Diag *diag;
    const Options *options;
    Toolchain tools;
    Array(struct Module *) modules; // of the units that were read
    bool prepares;                  // some of them calls ht_prepare
    // of the program (driver/object_sections.h); NULL: not asked for yet
    const struct PortionList *parts, *objects;
    // of an object, which is being made; NULL: a source of the command line is
    const struct Portion *part;
} Driver;

/* Whether a C source includes <hetu/hetu.h>, itself or through its headers, or has pragmas of ours:
 * then the frontend reads it. */
bool source_is_ours(Driver *driver, const char *source);

/* What the frontend needs to read a source under the options; `cluster` is what the cluster file
 * describes. */
FrontendOptions frontend_options(Driver *driver, const char *source, const struct Cluster *cluster);

/* What the options ask of the passes. */
CompileOptions compile_options(const Options *options, const struct Cluster *cluster);

/* Runs the frontend and the passes. NULL after errors; those of the user are reported. */
Unit *unit_read(Driver *driver, const char *source);

/* The C files of a unit; `include` is how they name its source. */
void unit_emit(Driver *driver, EmittedFiles *files, const Unit *unit, const char *include);

/* Makes `object` from a unit that has models. The exit status: 0; 1 after errors, or when the C
 * compiler refused the user's source; 2 when it refused what hetucc wrote. */
int unit_compile(Driver *driver, const Unit *unit, const char *object);

/* Makes `object` from a source whose models wait, or that has none: what the C compiler makes of
 * it, and what evaluation will need. The exit status. */
int part_compile(Driver *driver, const Unit *unit, const char *object);

/* Makes `object` from a source without models, as the C compiler does. */
int plain_compile(Driver *driver, const char *source, const char *object);

/* Writes the dependency file that -MD or -MMD asks for, with `object` as its target. The exit
 * status. */
int write_dependencies(Driver *driver, const char *source, const char *object);

/* The C compiler's command with those of the user's options that compiling (not linking) needs, and
 * what finds hetu.h. */
Command compile_command(Driver *driver);

/* Adds a source, and what says that it is C where its name does not. */
void add_source_word(Command *command, const char *source);

/* What finds hetu.h and says that hetucc compiles; behind the user's options. */
void add_headers(Driver *driver, Command *command);

/* Whether what will be written may be: false, after a message, where it is a file that is read,
 * under this name or another. */
bool check_output(const Options *options, const char *path);

/* Adds the options that make of a unit what it is, its strategies aside, as words. */
void add_options(Driver *driver, Command *command);

/* A file's name that means it from every folder; "" is the current folder. */
const char *absolute_name(Arena *arena, const char *path);

/* A file's text with null bytes as blanks; empty when it cannot be read. */
const char *file_text(Arena *arena, const char *path);

/* A source's name without folders and suffix, with `suffix` behind. */
const char *name_with(Arena *arena, const char *source, const char *suffix);

/* A name as one that make and a shell take for a word: what they would take for something else
 * becomes `_`. */
const char *name_plain(Arena *arena, const char *name);

/* ---- language.c, plan_option.c, resume.c ---- */

/* The parser's words for an option of gcc; NULL: it needs none. Reports an option that the parser
 * does not have. */
const char *language_option(Diag *diag, const char *option);

/* Plans the model of the sources for the cluster, writes the strategy to the file that -o names (or
 * one named like the source), and prints why this one. The exit status. */
int plan_make(Driver *driver);

/* Puts the modules of the file into the place of those of the unit of the same names. False after
 * errors: a module that is not of the sources, or of a model that has changed since. */
bool unit_resume(Driver *driver, Unit *unit);

#endif
