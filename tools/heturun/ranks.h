/* Processes of the ranks of a run: starts, watches and ends them. All ranks end when this process
 * ends, even when it is killed. */
#ifndef HETURUN_RANKS_H
#define HETURUN_RANKS_H

#include "lock_slots.h"
#include "slots.h"
#include "choose_elastic_strategy.h"

#include <signal.h>
#include <sys/types.h>
#include <time.h>

enum { DEFAULT_TIMEOUT = 600 }; // seconds if HETU_TIMEOUT is not set (runtime/transport/world.c)

/* Returns the time of a clock in seconds. */
double clock_seconds(clockid_t clock);

typedef struct Rank {
    pid_t process; // -1: it could not be started
    Slot *slot;
    bool ended;
    /* Killed by another process's signal or a device fault, or on a machine that is out of reach or
     * lacks what the rank needs. */
    bool died;
    int input;   // write end of a remote rank's standard input; -1: a local rank
    size_t sent; // bytes of the exported variables that `input` has taken
    int status;  // after its end: the exit status, or 128 plus the signal
} Rank;

typedef struct Ranks {
    int count;
    const Rank *first; // the first rank that ended; NULL: all ranks run
    Rank *at;
} Ranks;

/* Properties of a run that all its ranks share, at every restart. */
typedef struct Job {
    char **words;        // the program and its arguments
    const char *meeting; // the file through which the ranks meet
    const char *copies;  // folder in shared memory for in-memory checkpoints (ht_remember)
    const char *shell;   // remote shell, such as ssh
    bool once;           // -n or --hosts: no restart; rank 0, if on this host, has standard input
} Job;

/* Exit status of rank 0 when the program cannot begin under the strategy
 * (runtime/session/core/initial_strategy.h). */
enum { NO_STRATEGY = 121 };

/* Exit statuses of a rank after a fault of its device or machine, and after a communication failure
 * (runtime/base/fail.h). */
enum { DEVICE_FAULT = 122, EXCHANGE_FAULT = 123 };

/* Exit status of ssh when the other machine is unreachable; that of `heturun --hold` when its
 * machine lacks the program, a library or a folder. `heturun --hold` exits with 1 for a program
 * that exits with one of them. */
enum { UNREACHED = 255, CANNOT_START = 127 };

/* Starts `count` ranks on the slots that are not lost, in the order of the file, up to the first
 * that cannot be started. `choice` NULL: the program chooses its strategy. The caller frees the
 * result's `at`. */
Ranks ranks_start(const Job *job, const Slots *slots, int count, const Choice *choice);

/* Records the ranks that ended since the last call; returns whether any did. Tells the other
 * machines once a second that heturun lives. */
bool ranks_look(Ranks *ranks);

/* Returns the rank that failed first; NULL: none did. */
const Rank *ranks_failed(const Ranks *ranks);

/* Sends a signal to all running ranks. */
void ranks_tell(const Ranks *ranks, int signal_number);

/* Kills all running ranks with their child processes, and waits until the ranks have ended. */
void ranks_end(Ranks *ranks);

/* Returns the signals that heturun waits for. */
sigset_t ranks_signals(void);

/* Milliseconds between two looks at the ranks. */
enum { RANKS_LOOK = 50 };

/* Waits for a signal of ranks_signals(), for RANKS_LOOK ms at most. Returns the signal, or 0 for
 * SIGCHLD and when no signal comes. */
int ranks_signal(void);

/* Returns the status of the lowest rank that ended with an error; 0: no rank did. Sets *all to
 * whether all ranks have ended. */
int ranks_status(const Ranks *ranks, bool *all);

/* Waits up to `grace` seconds until all ranks have ended after a signal, then kills running ranks.
 * SIGINT, SIGHUP or a second SIGTERM ends the wait early. Returns the exit status of heturun. */
int ranks_await_ends(Ranks *ranks, int signal_number, int grace);

/* ---- elastic runs: elastic_restart.c ---- */

/* Starts and restarts the ranks until the program ends; returns the exit status. */
int elastic_run(Job *job, const Place *place, Slots *slots, ChoiceList *list, int grace);

/* ---- ranks on other machines: remote.c ----
 *
 * heturun starts `heturun --hold` on the machine, over ssh or its replacement (Job.shell). `heturun
 * --hold` starts the rank, and ends the rank when its own standard input ends: heturun is gone. */

/* Returns the words that carry out `heturun OPTION -- FOLDER WORDS` on a host, FOLDER being that of
 * this process. The program gets PATH, LD_LIBRARY_PATH and the environment variables HETU_*, OMP_*,
 * NCCL_* and OPENBLAS_*. `shell` is a command, its words separated by
 * blanks, to which host and program are added. */
char **remote_words(const char *shell, const char *host, const char *option, char **words);

/* Adds NAME or NAME=VALUE to the variables of remote ranks. Returns why not; NULL: it is added. */
const char *remote_export(const char *word);

/* Returns the bytes that `heturun --hold` reads first, of the variables of remote_export; *length
 * is their number. The standard input carries them, as all users may read a command line. */
const char *remote_variables(size_t *length);

/* Returns whether a remote shell is srun; remote_shell_name returns its name without folders, such
 * as "ssh"; free() it. */
bool remote_is_srun(const char *shell);
char *remote_shell_name(const char *shell);

/* Raise the limit of open files to the hard limit, since each remote rank and each probe has open
 * files, and restore the limit in a child process, before it executes its program. */
void remote_raise_files(void);
void remote_restore_files(void);

/* Removes the files and folders on a host that match a shell's pattern. */
void remote_remove(const char *shell, const char *host, const char *pattern);

/* Carries out `heturun --hold -- FOLDER PROGRAM ARGUMENTS...`: runs PROGRAM, and kills it when the
 * standard input ends or is silent for HETU_TIMEOUT and some seconds. The standard input begins
 * with remote_variables. Each byte behind them is the number of a signal for PROGRAM; 0: none.
 * Returns PROGRAM's exit status, or 128 plus the signal that ended it. */
int remote_hold(char **words);

#endif
