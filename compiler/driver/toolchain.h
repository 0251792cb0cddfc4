/* The tools behind hetucc: running the C compiler, temporary files, and outputs that appear only when they are complete.
 *
 * Temporary files and unfinished outputs are removed when the process ends, by a signal, too.
 */
#ifndef DRIVER_TOOLCHAIN_H
#define DRIVER_TOOLCHAIN_H

#include "support/array.h"
#include "support/text.h"

#include <stdbool.h>

typedef struct Toolchain {
    Arena *arena;
    const char *prefix; // the folder that holds bin, lib and include
    const char *folder; // for temporary files
    bool dry_run;       // print commands, run none
    bool inside;        // another hetucc runs this one as its C compiler: then CC is not asked again
} Toolchain;

/* A command line. */
typedef struct Command {
    Arena *arena;
    Array(const char *) words;
} Command;

/* Finds where hetucc is installed and prepares the folder for temporary files; ends the process with a message when that cannot be done. */
void toolchain_open(Toolchain *tools, Arena *arena, bool dry_run);

/* Removes temporary files and unfinished outputs now; the arena may be destroyed after that. */
void toolchain_close(void);

/* The C compiler: the words of the environment variable CC, or cc. */
Command command_cc(const Toolchain *tools);
/* Adds words, NULL behind the last. */
void command_add(Command *command, ...) __attribute__((sentinel));

/* Runs a command and waits; the exit status (128 + signal when a signal ended it). Ends the process with a message when the command cannot be started. */
int command_run(const Toolchain *tools, const Command *command);

/* Runs the commands, a few at a time; writes each one's exit status. */
void command_run_all(const Toolchain *tools, const Command *commands, int count, int *status);

/* Becomes the command. */
_Noreturn void command_become(const Toolchain *tools, const Command *command);

/* A path in the folder for temporary files, removed at the end; a folder after what was named later. */
const char *temporary(Toolchain *tools, const char *name);

/* After something in the folder for temporary files failed: whether that folder is all but full; a message says so. */
bool temporary_full(const Toolchain *tools);

/* Where to write what shall become `path`: a new file beside it, or `path` itself where that is no plain file. NULL after a message when nothing can be written there. */
const char *output_begin(Toolchain *tools, const char *path);

/* Appends what a file holds; false, and errno, when it cannot be read or has more than 256 MiB. */
bool file_read(const char *path, Text *bytes);

/* Writes bytes where output_begin says; output_finish is left to the caller. NULL after a message. */
const char *output_bytes(Toolchain *tools, const char *path, const char *bytes, size_t size);

/* Writes a whole text where output_begin says; output_finish is left to the caller. NULL after a message. */
const char *output_write(Toolchain *tools, const char *path, const char *text);

/* The finished file takes its name; `mode` is its permissions before umask. False after a message. */
bool output_finish(Toolchain *tools, const char *written, const char *path, unsigned mode);

/* Writes a whole file through output_write and output_finish. False after a message. */
bool output_text(Toolchain *tools, const char *path, const char *text);

/* Prints "hetucc: error: ..." for something that has no place in a source. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
