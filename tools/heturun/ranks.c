/* Starts and ends the processes of ranks, with their environment and signals. */
#include "ranks.h"

#include "support/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void set_number(const char *name, int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* Returns the local rank: how many lower ranks are on the host of `rank`. */
static int local_rank(const Ranks *ranks, int rank) {
    int local = 0;
    for (int i = 0; i < rank; i++)
        local += slots_same_machine(ranks->at[i].slot, ranks->at[rank].slot) &&
                 ranks->at[i].slot->part == ranks->at[rank].slot->part;
    return local;
}

/* Returns the number of ranks on the machine of `rank`, on all the hosts that it simulates. */
static int local_size(const Ranks *ranks, int rank) {
    int size = 0;
    for (int i = 0; i < ranks->count; i++)
        size += slots_same_machine(ranks->at[i].slot, ranks->at[rank].slot);
    return size;
}

/* Sets the environment variables of a rank, in its own process. */
static void set_environment(const Job *job, const Ranks *ranks, int rank, const Choice *choice) {
    const Slot *slot = ranks->at[rank].slot;
    char copies[512], digest[20];
    set_number("HETU_RANK", rank);
    set_number("HETU_SIZE", ranks->count);
    set_number("HETU_LOCAL_RANK", local_rank(ranks, rank));
    set_number("HETU_SLOT", slot->number);
    setenv("HETU_RENDEZVOUS", job->meeting, 1);
    set_number("HETU_LOCAL_SIZE", local_size(ranks, rank));
    if (choice) {
        setenv("HETU_STRATEGY", choice->word, 1);
        snprintf(digest, sizeof digest, "%" PRIx64, choice->digest);
        setenv("HETU_STRATEGY_DIGEST", digest, 1);
    }
    snprintf(copies, sizeof copies, slot->part < 0 ? "%s" : "%s.%d", job->copies, slot->part);
    if (*job->copies) setenv("HETU_COPIES", copies, 1);
    if (slot->part >= 0) set_number("HETU_NODE", slot->part);
}

/* Prepares a child process: unblocks signals, and makes it end with heturun, process `parent`. */
static void prepare_child(pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(CANNOT_START);
}

/* Runs in the child process: executes the program, or the remote shell that starts it elsewhere. */
static _Noreturn void become(const Job *job, const Ranks *ranks, int rank, const Choice *choice,
                             int input) {
    const Slot *slot = ranks->at[rank].slot;
    bool reads = job->once && rank == 0 &&
                 slot->here; // a terminal sends input to its foreground group alone
    if (!reads || !isatty(STDIN_FILENO)) setpgid(0, 0);
    int from = reads ? -1 : slot->here ? open("/dev/null", O_RDONLY) : input;
    if (from >= 0) dup2(from, STDIN_FILENO);
    set_environment(job, ranks, rank, choice);
    char **words =
        slot->here ? job->words : remote_words(job->shell, slot->host, "--hold", job->words);
    remote_restore_files();
    execvp(words[0], words);
    tool_message(stderr, "error", "%s cannot be started: %s", words[0], strerror(errno));
    _exit(CANNOT_START);
}

/* Writes to a remote rank the rest of the exported variables. Returns whether it has them all. */
static bool send_variables(Rank *rank) {
    size_t length;
    const char *text = remote_variables(&length);
    while (rank->sent < length) {
        ssize_t wrote = write(rank->input, text + rank->sent, length - rank->sent);
        if (wrote <= 0) return false; // the pipe is full, or the rank has ended
        rank->sent += (size_t)wrote;
    }
    return true;
}

/* Sends remote ranks the rest of the exported variables; then, each second, a sign of life. */
static void tell_alive(const Ranks *ranks) {
    static time_t last;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    bool due = time.tv_sec != last;
    last = time.tv_sec;
    for (int i = 0; i < ranks->count; i++) {
        Rank *rank = &ranks->at[i];
        if (rank->ended || rank->input < 0 || !send_variables(rank)) continue;
        if (due && write(rank->input, "", 1) < 0) {
            // The link is down, or the rank has just ended: waitpid tells.
        }
    }
}

/* Waits for a moment before the ninth rank of a host, and so on: sshd refuses more than ten logins
 * at a time (MaxStartups). */
static void await_logins(const Job *job, const Ranks *ranks, const Slot *slot) {
    enum { LOGINS = 8, PAUSE = 700 }; // PAUSE: milliseconds
    tell_alive(ranks);
    if (!slot->here && slot->number && slot->number % LOGINS == 0 && !remote_is_srun(job->shell))
        nanosleep(&(struct timespec){.tv_nsec = PAUSE * 1000000L}, NULL);
}

/* Notes that a rank cannot be started, after a message. */
static void fail_start(Ranks *ranks, int number) {
    Rank *rank = &ranks->at[number];
    int error = errno;
    tool_message(stderr, "error", "rank %d cannot be started: %s%s", number, strerror(error),
                 error == EMFILE   ? "; raise the limit of open files: ulimit -n"
                 : error == EAGAIN ? "; raise the limit of processes: ulimit -u"
                                   : "");
    rank->ended = true;
    rank->status = CANNOT_START;
    if (!ranks->first || !ranks->first->status) ranks->first = rank;
}

/* Starts a rank; returns whether it could be started. */
static bool start_rank(const Job *job, Ranks *ranks, int number, const Choice *choice) {
    Rank *rank = &ranks->at[number];
    int ends[2] = {-1, -1};
    pid_t parent = getpid();
    await_logins(job, ranks, rank->slot);
    if (rank->slot->here || !pipe2(ends, O_CLOEXEC)) rank->process = fork();
    if (!rank->process) {
        prepare_child(parent);
        become(job, ranks, number, choice, ends[0]);
    }
    if (rank->process < 0) fail_start(ranks, number);
    if (ends[0] >= 0) close(ends[0]);
    if (rank->process < 0 && ends[1] >= 0) close(ends[1]);
    if (rank->process < 0) return false;
    rank->ended = false;
    rank->input = ends[1];
    if (rank->input < 0) return true;
    fcntl(rank->input, F_SETFL, O_NONBLOCK);
    send_variables(rank);
    return true;
}

Ranks ranks_start(const Job *job, const Slots *slots, int count, const Choice *choice) {
    Ranks ranks = {.count = count, .at = calloc((size_t)count, sizeof *ranks.at)};
    for (int i = 0, rank = 0; i < slots->count && rank < count; i++)
        if (!slots->at[i].lost)
            ranks.at[rank++] =
                (Rank){.process = -1, .slot = &slots->at[i], .ended = true, .input = -1};
    remote_raise_files();
    fflush(NULL);
    signal(SIGPIPE, SIG_IGN);
    for (int rank = 0; rank < count && start_rank(job, &ranks, rank, choice);) rank++;
    return ranks;
}

static Rank *find(Ranks *ranks, pid_t process) {
    for (int rank = 0; rank < ranks->count; rank++)
        if (ranks->at[rank].process == process && !ranks->at[rank].ended) return &ranks->at[rank];
    return NULL;
}

static void note_end(Ranks *ranks, pid_t process, int status, bool died) {
    Rank *rank = find(ranks, process);
    if (!rank) return;
    rank->ended = true;
    ranks->first = ranks->first ? ranks->first : rank;
    rank->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    rank->died = died && (WIFSIGNALED(status) || rank->status == DEVICE_FAULT ||
                          (!rank->slot->here && rank->status >= CANNOT_START));
    if (rank->input >= 0) close(rank->input);
    rank->input = -1;
    kill(-process, SIGKILL);
}

bool ranks_look(Ranks *ranks) {
    bool any = false;
    int status;
    tell_alive(ranks);
    for (pid_t process; (process = waitpid(-1, &status, WNOHANG)) > 0; any = true)
        note_end(ranks, process, status, true);
    return any;
}

void ranks_tell(const Ranks *ranks, int signal_number) {
    char byte = (char)signal_number;
    for (int rank = 0; rank < ranks->count; rank++)
        if (!ranks->at[rank].ended && ranks->at[rank].slot->here)
            kill(ranks->at[rank].process, signal_number);
        else if (!ranks->at[rank].ended &&
                 (!send_variables(&ranks->at[rank]) || write(ranks->at[rank].input, &byte, 1) != 1))
            tool_message(stderr, "error", "rank %d is not told to end: %s", rank, strerror(errno));
}

void ranks_end(Ranks *ranks) {
    int status;
    for (int rank = 0; rank < ranks->count; rank++)
        if (!ranks->at[rank].ended) {
            kill(ranks->at[rank].process, SIGKILL);
            kill(-ranks->at[rank].process, SIGKILL);
        }
    for (int rank = 0; rank < ranks->count; rank++)
        if (!ranks->at[rank].ended && waitpid(ranks->at[rank].process, &status, 0) > 0)
            note_end(ranks, ranks->at[rank].process, status, false);
}

/* ---- waiting for ranks and signals ---- */

/* Seconds in which a second SIGTERM is ignored, since launchers send SIGTERM twice. */
enum { AGAIN = 1 };

sigset_t ranks_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    struct sigaction hang_up; // nohup ignores it; a blocked signal comes all the same
    if (!sigaction(SIGHUP, NULL, &hang_up) && hang_up.sa_handler != SIG_IGN)
        sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    return set;
}

int ranks_signal(void) {
    sigset_t set = ranks_signals();
    int signal_number =
        sigtimedwait(&set, NULL, &(struct timespec){.tv_nsec = RANKS_LOOK * 1000000L});
    return signal_number > 0 && signal_number != SIGCHLD ? signal_number : 0;
}

int ranks_status(const Ranks *ranks, bool *all) {
    int worst = 0;
    *all = true;
    for (int rank = ranks->count - 1; rank >= 0; rank--) {
        *all = *all && ranks->at[rank].ended;
        worst = ranks->at[rank].ended && ranks->at[rank].status ? ranks->at[rank].status : worst;
    }
    return worst;
}

const Rank *ranks_failed(const Ranks *ranks) {
    if (ranks->first && ranks->first->status) return ranks->first;
    for (int rank = 0; rank < ranks->count; rank++)
        if (ranks->at[rank].ended && ranks->at[rank].status) return &ranks->at[rank];
    return NULL;
}

double clock_seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int ranks_await_ends(Ranks *ranks, int signal_number, int grace) {
    double since = clock_seconds(CLOCK_MONOTONIC);
    bool all = false, cut = false;
    int status = 0;
    while (!all && !cut && clock_seconds(CLOCK_MONOTONIC) < since + grace) {
        int more = ranks_signal();
        cut = more == SIGINT || more == SIGHUP ||
              (more == SIGTERM && clock_seconds(CLOCK_MONOTONIC) > since + AGAIN);
        ranks_look(ranks);
        status = ranks_status(ranks, &all);
    }
    if (!all)
        fprintf(stderr, "heturun: the ranks did not end by themselves%s\n",
                cut ? "" : " in time (--grace)");
    ranks_end(ranks);
    return all ? status : 128 + signal_number;
}
