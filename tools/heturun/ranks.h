/* The ranks of a run: starting them, seeing how they end, ending them. They end when this process
 * does, however that ends. */
#ifndef HETURUN_RANKS_H
#define HETURUN_RANKS_H

#include "slots.h"
#include "strategies.h"

#include <sys/types.h>

typedef struct Rank {
    pid_t process;
    Slot *slot;
    bool ended;
    bool died;  // by a signal that this process has not sent, of a fault of its device, or its
                // machine is out of reach
    int held;   // the other end of the standard input of one on another machine; -1: it is here
    int status; // of its end: an exit status, or 128 and the signal
} Rank;

typedef struct Ranks {
    int count;
    const Rank *first; // that has ended; NULL: none has
    Rank *at;
} Ranks;

/* What all ranks of all starts have in common. */
typedef struct Job {
    char **words;        // the program and its arguments
    const char *meeting; // the file through which they meet
    const char *copies;  // the folder in shared memory for copies of what they have learnt
    const char *shell;   // the command that starts others on another machine
} Job;

/* The exit status of rank 0 where the program cannot begin under the strategy
 * (runtime/session/core/initial_strategy.h). */
enum { NO_STRATEGY = 121 };

/* That of a rank whose device or machine is at fault, and of one that could not exchange with
 * others (runtime/base/fail.h). */
enum { DEVICE_FAULT = 122, EXCHANGE_FAULT = 123 };

/* That of ssh, where it does not reach the other machine. */
enum { UNREACHED = 255 };

/* Starts so many ranks on the slots that are not lost, in their order. */
Ranks ranks_start(const Job *job, const Slots *slots, int count, const Choice *choice);

/* Notes which have ended since. Returns whether any has. */
bool ranks_look(Ranks *ranks);

/* Sends a signal to those that run. */
void ranks_tell(const Ranks *ranks, int signal_number);

/* Kills those that run, with all that they have started, and waits for their ends. */
void ranks_end(Ranks *ranks);

/* ---- ranks on other machines: remote.c ----
 *
 * A command there, over ssh or its replacement (Job.shell), starts `heturun --hold`, which starts
 * the rank and ends it when the other end of its standard input is closed. */

/* Returns the words that start a program on a host, in the folder of this process and with those of
 * its environment variables that begin with HETU_ or OMP_ or find programs and libraries. `shell`
 * is a command, its words separated by blanks, to which host and program are added. */
char **remote_words(const char *shell, const char *host, char **words);

/* Removes the folders PATTERN on a host. */
void remote_remove(const char *shell, const char *host, const char *pattern);

/* Carries out `heturun --hold`: runs the program until it ends or the standard input does. Each
 * byte of the standard input is a signal to the program. Returns its exit status, or 128 and the
 * signal by which it ended. */
int remote_hold(char **words);

#endif
