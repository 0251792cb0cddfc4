/* Runs hetucc and its tools on the sources of a running program again, in other processes, with the
 * options that the program was compiled with.
 *
 *     RecompileCommand *recipe = recompile_command_of(image);
 *     pid_t maker = recompile_start(recipe, NULL, words, NULL, reason);
 *
 * All functions run on rank 0. */
#pragma once

#include "session/core/image.h"

#include <sys/types.h>

enum {
    REASON = 512,          // characters of an error message
    RECOMPILE_KILLED = 256 // recompile_ended returns this + the number of the signal
};

/* A source file of the program whose models can have further strategies. */
typedef struct RecompileCommand {
    const char *fingerprint;  // fingerprint of the source's images
    const char *const *words; // folder of the compilation, value of CC, and the command line
    const char *const *files; // source files and headers; NULL: not known
    const char *refuses;      // why no further strategies can be compiled; NULL: they can
    bool asks;                // the source calls ht_prepare or ht_balance
    char **more;              // options --strategy=WORD of strategies that have arrived
    int more_count;
} RecompileCommand;

/* Returns whether strategies may be compiled for some source of the program: it asks for them, or
 * HETU_BALANCE=1 does. */
bool recompile_possible(void);

/* Returns the recompile command of an image's source; NULL: the source has none. */
RecompileCommand *recompile_command_of(int image);

/* Returns the number of strategies of the source, compiled in or arrived later. */
int recompile_strategies(const RecompileCommand *recipe);

/* Returns a hash of the files on which hetucc's result for an option --strategy=WORD depends: the
 * files of strategies, sources and the cluster. The hash changes if one of these is written. */
uint64_t recompile_stamp(const RecompileCommand *recipe, const char *option);

/* Keeps the option --strategy=WORD of a strategy that has arrived; the option is never freed. */
void recompile_add(RecompileCommand *recipe, char *option);

/* Starts hetucc, or a tool in its folder, on the program's sources and strategies, in the folder of
 * the compilation. `words` are further arguments (NULL at the end). The tool's output goes to the
 * file `output`; NULL: to this program's output. Returns the process, or 0 with a reason. */
pid_t recompile_start(const RecompileCommand *recipe, const char *tool, const char *const *words,
                      const char *output, char *reason);

/* Returns the exit status of a process of recompile_start; RECOMPILE_KILLED + signal if a signal
 * ended it (signal 0: not known); -1 if it still runs. `wait`: waits for its end. */
int recompile_ended(pid_t maker, bool wait);

/* Returns the path of a file of the private folder, its name kind + number + suffix such as
 * "balance0.plan"; free() it. NULL with a reason on failure. */
char *recompile_file(const char *kind, int number, const char *suffix, char *reason);
