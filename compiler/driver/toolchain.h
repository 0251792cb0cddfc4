/* The tools behind hetucc: where it is installed, and the commands that it runs. */
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
    bool inside; // another hetucc runs this one as its C compiler: then CC is not asked again
} Toolchain;

/* A command line. */
typedef struct Command {
    Arena *arena;
    Array(const char *) words;
    bool quiet; // nothing that it says is expected: its messages are English, so that a part of it
                // that is killed is known by them
} Command;

/* Finds where hetucc is installed and prepares the folder for temporary files; ends the process
 * with a message when that cannot be done. */
void toolchain_open(Toolchain *tools, Arena *arena, bool dry_run);

/* The C compiler: the words of the environment variable CC, or cc. */
Command command_cc(const Toolchain *tools);

/* Adds words, NULL behind the last. */
void command_add(Command *command, ...) __attribute__((sentinel));

/* Runs a command and waits; the exit status (from 128 on when a signal ended it or a program that
 * it ran, which is said with the command). Ends the process with a message when the command cannot
 * be started. */
int command_run(const Toolchain *tools, const Command *command);

/* Runs the commands, a few at a time; writes each one's exit status. */
void command_run_all(const Toolchain *tools, const Command *commands, int count, int *status);

/* Becomes the command. */
_Noreturn void command_become(const Toolchain *tools, const Command *command);

/* Has complain() print warnings. */
void complain_softly(void);

/* Prints "hetucc: error: ..." for something that has no place in a source. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
