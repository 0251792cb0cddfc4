/* Processes of the ranks of a run: starts, watches and ends them. All ranks end when this process
 * ends, even when it is killed. */
#ifndef HETURUN_RANKS_H
#define HETURUN_RANKS_H

#include "slots.h"
#include "strategies.h"

#include <sys/types.h>

typedef struct Rank {
    pid_t process;
    Slot *slot;
    bool ended;
    bool died;  // killed by a signal of another process, by a device fault, or its
                // machine is out of reach
    int input;  // write end of a remote rank's standard input; -1: a local rank
    int status; // of its end: an exit status, or 128 and the signal
} Rank;

typedef struct Ranks {
    int count;
    const Rank *first; // the first rank that ended; NULL: none has
    Rank *at;
} Ranks;

/* Data that all ranks of all starts share. */
typedef struct Job {
    char **words;        // the program and its arguments
    const char *meeting; // the file through which they meet
    const char *copies;  // folder in shared memory for in-memory checkpoints (ht_remember)
    const char *shell;   // remote shell, such as ssh
    bool once;           // on this host alone, never again: rank 0 has the standard input
} Job;

/* Exit status of rank 0 when the program cannot begin under the strategy
 * (runtime/session/core/initial_strategy.h). */
enum { NO_STRATEGY = 121 };

/* Exit statuses of a rank after a fault of its device or machine, and after a communication failure
 * (runtime/base/fail.h). */
enum { DEVICE_FAULT = 122, EXCHANGE_FAULT = 123 };

/* Exit status of ssh when the other machine is unreachable. */
enum { UNREACHED = 255 };

/* Starts `count` ranks on the slots that are not lost, in the order of the file. `choice` NULL: the
 * program chooses its strategy. */
Ranks ranks_start(const Job *job, const Slots *slots, int count, const Choice *choice);

/* Records the ranks that ended since the last call; returns whether any did. */
bool ranks_look(Ranks *ranks);

/* Sends a signal to all running ranks. */
void ranks_tell(const Ranks *ranks, int signal_number);

/* Kills all running ranks with their child processes, and waits until they have ended. */
void ranks_end(Ranks *ranks);

/* ---- ranks on other machines: remote.c ----
 *
 * heturun starts `heturun --hold` there, over ssh or its replacement (Job.shell). That process
 * starts the rank, and ends it when the other end of its standard input is closed. */

/* Returns the words that start a program on a host, in the folder of this process. The program gets
 * the environment variables that begin with HETU_ or OMP_, or that find programs and libraries.
 * `shell` is a command, its words separated by blanks, to which host and program are added. */
char **remote_words(const char *shell, const char *host, char **words);

/* Removes the folders PATTERN on a host. */
void remote_remove(const char *shell, const char *host, const char *pattern);

/* Carries out `heturun --hold`: runs the program until it ends or the standard input does. Sends
 * the program a signal for each byte of the standard input, whose value is the signal's number.
 * Returns its exit status, or 128 and the signal by which it ended. */
int remote_hold(char **words);

#endif
