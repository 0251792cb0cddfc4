/* Starts further ranks of a program that was run without a launcher, and discards their standard
 * output. session/core/start_ranks.c decides whether to start ranks. */
#include "transport/meet/rendezvous.h"

#include "base/c_locale.h"
#include "base/files.h"
#include "base/memory.h"

#include <hetu/kernel.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CANNOT_START = 127, PAUSE = 20, PATIENCE = 10000, PATH_ROOM = 4096 }; // PAUSE, PATIENCE: ms

static struct {
    int count;      // ranks, this one included; 0: none was started
    pid_t *process; // by rank; 0: rank 0, or a rank that has ended and been waited for
    char **words;   // the command line of this process
    char *text;
    char folder[PATH_ROOM]; // private folder with the rendezvous file
    pthread_t watcher;
    atomic_bool met;
} local;

static void pause_briefly(void) {
    nanosleep(&(struct timespec){.tv_nsec = PAUSE * 1000000L}, NULL);
}

/* Reads the command line of this process as it was before main changed anything. */
static void read_command(void) {
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t room = 0;
    ssize_t length = file ? getdelim(&local.text, &room, EOF, file) : -1;
    if (file) fclose(file);
    if (length <= 0) ht_fail("/proc/self/cmdline cannot be read; start the ranks by heturun -n");
    int words = 0;
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(local.text + at) + 1) words++;
    local.words = memory_array(words + 1, sizeof *local.words);
    words = 0;
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(local.text + at) + 1)
        local.words[words++] = local.text + at;
}

/* Creates the private folder in /dev/shm, or else in TMPDIR or /tmp. */
static void make_folder(void) {
    char *parent = private_parent("/dev/shm");
    if (!parent) parent = private_parent(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    int error =
        parent ? private_make(local.folder, sizeof local.folder, parent, "hetu-ranks") : EACCES;
    free(parent);
    if (error)
        ht_fail("no private folder can be made in /dev/shm or TMPDIR, where the ranks are to "
                "meet: %s",
                plain_error(error));
}

static void set_number(const char *name, int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* Sets the variables of a rank as heturun sets them (tools/heturun/ranks.c). */
static void set_environment(int rank) {
    char meeting[PATH_ROOM + 16];
    snprintf(meeting, sizeof meeting, "%s/ranks", local.folder);
    set_number("HETU_RANK", rank);
    set_number("HETU_SIZE", local.count);
    set_number("HETU_LOCAL_RANK", rank);
    set_number("HETU_LOCAL_SIZE", local.count);
    set_number("HETU_SLOT", rank);
    setenv("HETU_RENDEZVOUS", meeting, 1);
}

/* In the child process: runs the program again. The child dies with the thread that started it. */
static _Noreturn void become(int rank, pid_t parent) {
    int nothing = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(CANNOT_START);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
    }
    set_environment(rank);
    execv("/proc/self/exe", local.words);
    _exit(CANNOT_START);
}

/* ---- watching until the ranks have met ---- */

/* Returns the first rank that has ended, and sets *about to how it ended; 0: none. */
static int find_ended(siginfo_t *about) {
    for (int rank = 1; rank < local.count; rank++) {
        about->si_pid = 0;
        if (!waitid(P_PID, (id_t)local.process[rank], about, WEXITED | WNOHANG | WNOWAIT) &&
            about->si_pid)
            return rank;
    }
    return 0;
}

/* Ends the program if a rank ends before all ranks have met: the others would wait for it. */
static void *watch_starts(void *unused) {
    siginfo_t about;
    for (int rank; !atomic_load(&local.met); pause_briefly()) {
        if (!(rank = find_ended(&about))) continue;
        pause_briefly(); // the transport reports a rank that ended after the meeting
        if (atomic_load(&local.met)) break;
        private_remove(local.folder);
        bool killed = about.si_code != CLD_EXITED;
        ht_fail("rank %d, which this program started, ended before it met the others (%s %d)", rank,
                killed ? "signal" : "status", about.si_status);
    }
    return unused;
}

void local_ranks_start(int count) {
    local.count = count;
    local.process = memory_array(count, sizeof *local.process);
    read_command();
    make_folder();
    fflush(NULL);
    pid_t parent = getpid();
    for (int rank = 1; rank < count; rank++) {
        local.process[rank] = fork();
        if (!local.process[rank]) become(rank, parent);
        if (local.process[rank] < 0) {
            private_remove(local.folder);
            ht_fail("rank %d of %d cannot be started: %s", rank, count, plain_error(errno));
        }
    }
    set_environment(0);
    if (pthread_create(&local.watcher, NULL, watch_starts, NULL))
        ht_fail("no thread can be started that watches the ranks");
}

void local_ranks_met(void) {
    if (!local.count) return;
    atomic_store(&local.met, true);
    pthread_join(local.watcher, NULL);
    private_remove(local.folder);
}

static bool has_ended(int rank) {
    if (!local.process[rank] || waitpid(local.process[rank], NULL, WNOHANG))
        local.process[rank] = 0;
    return !local.process[rank];
}

void local_ranks_close(void) {
    int waited = 0;
    for (int rank = 1; rank < local.count; rank++)
        while (!has_ended(rank)) {
            if (waited >= PATIENCE) kill(local.process[rank], SIGKILL);
            waited += PAUSE;
            pause_briefly();
        }
    local_ranks_forget();
}

void local_ranks_forget(void) {
    free(local.process);
    free(local.words);
    free(local.text);
    local.process = NULL;
    local.words = NULL;
    local.text = NULL;
    local.count = 0;
}
