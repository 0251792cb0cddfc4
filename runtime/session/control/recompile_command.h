/* How a program is compiled: the words by which hetucc, and tools beside it, are run again on its
 * sources while it runs, in processes of their own.
 *
 *     Recipe *recipe = recompile_command_of(image);
 *     pid_t maker = recompile_start(recipe, NULL, words, NULL, reason);
 *
 * On rank 0.
 */
#ifndef SESSION_CONTROL_RECOMPILE_COMMAND_H
#define SESSION_CONTROL_RECOMPILE_COMMAND_H

#include "session/core/image.h"

#include <sys/types.h>

enum {
    REASON = 512,          // characters of why something could not be had
    RECOMPILE_KILLED = 256 // a status of recompile_ended: from here on, it did not end by itself
};

/* A source file of the program whose models can have further strategies. */
typedef struct RecompileCommand {
    const char *fingerprint;  // of its images
    const char *const *words; // the folder, CC, and the command
    const char *const *files; // that the source was read from; NULL: not known
    const char *refuses;      // why it has no further strategies made, now and later; NULL: it may
    char **more;              // options --strategy=WORD of those that have arrived
    int more_count;
} RecompileCommand;

/* Whether some source of the program can have strategies made. */
bool recompile_possible(void);

/* The recipe of the source of an image: the one that any image of its model has been compiled with
 * from the beginning; NULL: it has none.
 */
RecompileCommand *recompile_command_of(int image);

/* Strategies that the program has: those that it was compiled with, and those that have arrived. */
int recompile_strategies(const RecompileCommand *recipe);

/* Returns what an answer of hetucc on an option --strategy=WORD depends on: the same number while
 * no file of the strategy, of the source or of the cluster is written. */
uint64_t recompile_stamp(const RecompileCommand *recipe, const char *option);

/* Notes that a strategy has arrived by an option --strategy=WORD, which lives as long as the
 * program. */
void recompile_add(RecompileCommand *recipe, char *option);

/* Starts hetucc, or the tool of this name beside it, on the program's sources and strategies with
 * further words (NULL at the end), in the folder in which the program was compiled. What it prints
 * goes to the file `output`; NULL: where this program prints. 0 with a reason when it cannot be
 * started. */
pid_t recompile_start(const RecompileCommand *recipe, const char *tool, const char *const *words,
                      const char *output, char *reason);

/* The exit status of a process that recompile_start started; RECOMPILE_KILLED and the signal that
 * ended it, RECOMPILE_KILLED alone where that is not known; -1: it runs on. `wait`: until it has
 * ended. */
int recompile_ended(pid_t maker, bool wait);

/* A file in this process's private folder (base/files.h); free() it. NULL with a reason. */
char *recompile_file(const char *kind, int number, const char *suffix, char *reason);

#endif
