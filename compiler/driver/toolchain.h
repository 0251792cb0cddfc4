/* The tools that hetucc runs, and where hetucc is installed.
 *
 *     Command command = command_cc(tools);                     // the words of CC
 *     command_add(&command, "-c", "gpt.c", "-o", "gpt.o", NULL);
 *     int status = command_run(tools, &command);
 */
#pragma once

#include "support/array.h"
#include "support/text.h"

#include <stdbool.h>

typedef struct Toolchain {
    Arena *arena;
    const char *prefix; // the folder that holds bin, lib and include
    const char *folder; // folder for temporary files; NULL: not made yet
    bool dry_run;       // print commands instead of running them
    bool inside;        // runs as the C compiler of another hetucc: uses cc, not CC again
} Toolchain;

/* A command line. */
typedef struct Command {
    Arena *arena;
    Array(const char *) words;
    bool quiet; // messages are unusual: they are captured, in English, to find a killed child
} Command;

/* Sets *tools. Temporary files are removed at exit or at a signal. Exits with 1 on failure. */
void toolchain_open(Toolchain *tools, Arena *arena, bool dry_run);

/* command_cc_words returns the C compiler's command: the words of the environment variable CC, or
 * cc. command_cc adds the option that colours the compiler's messages like hetucc's. */
Command command_cc_words(const Toolchain *tools);
Command command_cc(const Toolchain *tools);

/* Adds words to a command; NULL ends the list. */
void command_add(Command *command, ...) __attribute__((sentinel));

/* Runs a command and waits. Returns the exit status; 128 or more, with a message, if a signal ended
 * the command or a child of it. Ends the process when the command cannot be started. */
int command_run(const Toolchain *tools, const Command *command);

/* Runs the commands, a few at a time, and sets status[i] to the exit status of command i. */
void command_run_all(const Toolchain *tools, const Command *commands, int count, int *status);

/* Ends this process by the command: becomes it, or runs it (SARIF), or prints it (dry run). */
_Noreturn void command_become(const Toolchain *tools, const Command *command);
