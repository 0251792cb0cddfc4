/* Starts ranks on other hosts by a remote shell (ssh), and ends them there. */
#include "ranks.h"

#include "support/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_WORDS = 64,
    MOST_EXPORTS = 256,
    PATH_ROOM = 4096,
    HOST_ROOM = 256,
    DEFAULT_TIMEOUT = 600, // seconds
    LOOK = 20              // milliseconds that input_ended waits
};

extern char **environ;

/* ---- local side ---- */

/* Writes a blank and a word quoted for a shell. */
static void quote(FILE *out, const char *word) {
    fputs(" '", out);
    for (; *word; word++)
        if (*word == '\'') fputs("'\\''", out);
        else fputc(*word, out);
    fputc('\'', out);
}

/* The variables of --export. */
static struct {
    int count;
    const char *name[MOST_EXPORTS];
} exported;

bool remote_export(const char *word) {
    size_t length = strcspn(word, "=");
    char *name = strndup(word, length);
    bool good = length && exported.count < MOST_EXPORTS && (word[length] || getenv(name));
    if (good && word[length]) setenv(name, word + length + 1, 1);
    if (good) exported.name[exported.count++] = name;
    return good;
}

static bool has_name(const char *variable, const char *name) {
    size_t length = strlen(name);
    return !strncmp(variable, name, length) && variable[length] == '=';
}

/* Returns whether a remote rank gets the environment variable "NAME=VALUE". */
static bool goes_along(const char *variable) {
    static const char *const heads[] = {"HETU_", "OMP_",  "OPENBLAS_",
                                        "NCCL_", "PATH=", "LD_LIBRARY_PATH="};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (!strncmp(variable, heads[i], strlen(heads[i]))) return true;
    for (int i = 0; i < exported.count; i++)
        if (has_name(variable, exported.name[i])) return true;
    return false;
}

/* Returns the command that carries out `heturun OPTION -- FOLDER WORDS` on another machine, with
 * the folder of this process. */
static char *far_command(const char *option, char **words) {
    char *text = NULL, folder[PATH_ROOM] = "", own[PATH_ROOM] = "";
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out || !getcwd(folder, sizeof folder) ||
        readlink("/proc/self/exe", own, sizeof own - 1) < 0)
        abort();
    fputs("exec env", out);
    for (char **variable = environ; *variable; variable++)
        if (goes_along(*variable)) quote(out, *variable);
    quote(out, own);
    fprintf(out, " %s --", option);
    quote(out, folder);
    for (; *words; words++) quote(out, *words);
    fclose(out);
    return text;
}

/* Returns a list, NULL at its end: the words of the remote shell, the host, and the command. srun
 * takes the host by an option, and no command of a shell. */
static char **shell_words(const char *shell, const char *host, char *command) {
    char **words = calloc(MOST_WORDS + 5, sizeof *words), *copy = strdup(shell), *rest = copy;
    char *node = NULL;
    int count = 0;
    for (char *word; count < MOST_WORDS && (word = strtok_r(rest, " ", &rest));)
        words[count++] = word;
    bool slurm = count && !strcmp(words[0], "srun");
    if (slurm && asprintf(&node, "--nodelist=%s", host) < 0) abort();
    words[count++] = slurm ? node : (char *)host;
    if (slurm) words[count++] = "sh";
    if (slurm) words[count++] = "-c";
    words[count++] = command;
    return words;
}

char **remote_words(const char *shell, const char *host, const char *option, char **words) {
    return shell_words(shell, host, far_command(option, words));
}

void remote_remove(const char *shell, const char *host, const char *pattern) {
    char *command = NULL;
    if (asprintf(&command, "rm -rf %s", pattern) < 0) return;
    char **words = shell_words(shell, host, command);
    pid_t process = fork();
    if (!process) {
        execvp(words[0], words);
        _exit(CANNOT_START);
    }
    if (process > 0) waitpid(process, NULL, 0);
    free(command);
}

/* ---- remote side (heturun --hold) ---- */

static const char *own_name(void) {
    static char name[HOST_ROOM];
    gethostname(name, sizeof name - 1);
    return name;
}

/* Runs in the child process: executes the program in its own process group, without this process's
 * standard input. */
static _Noreturn void become(char **words, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(CANNOT_START);
    setpgid(0, 0);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    execvp(words[0], words);
    tool_message(stderr, "error", "%s cannot be started on %s: %s", words[0], own_name(),
                 strerror(errno));
    _exit(CANNOT_START);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Waits LOOK ms for a byte of standard input and sends it to the process as a signal; a byte of 0
 * only tells that heturun lives. Returns whether the standard input has ended, or `patience`
 * seconds (0: no limit) have passed since the last byte, as when a cable is pulled. */
static bool input_ended(pid_t process, double patience) {
    static double last;
    char byte;
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (!last) last = now();
    if (poll(&input, 1, LOOK) <= 0) return patience && now() - last > patience;
    if (read(STDIN_FILENO, &byte, 1) <= 0) return true;
    last = now();
    if (byte) kill(process, byte);
    return false;
}

/* Enters the folder of the run. Returns false after a message: this machine lacks the folder, or
 * the one where the ranks meet. */
static bool enter(const char *folder) {
    enum { WAIT = 20, WAITS = 100 }; // a network file system may show a new folder late
    const char *meeting = getenv("HETU_RENDEZVOUS");
    char *place = strdup(meeting ? meeting : folder), *slash = strrchr(place, '/');
    if (meeting && slash && slash > place) *slash = 0;
    bool good = !chdir(folder);
    if (!good)
        tool_message(stderr, "error", "folder %s of the run is missing on %s: %s", folder,
                     own_name(), strerror(errno));
    for (int i = 0; good && access(place, F_OK); i++) {
        nanosleep(&(struct timespec){.tv_nsec = WAIT * 1000000L}, NULL);
        good = i < WAITS;
        if (!good)
            tool_message(stderr, "error",
                         "%s does not see %s, where the ranks meet; a folder that all hosts see "
                         "is needed",
                         own_name(), place);
    }
    free(place);
    return good;
}

int remote_hold(char **words) {
    if (!words[1] || !enter(words[0])) return CANNOT_START;
    const char *limit = getenv("HETU_TIMEOUT");
    double patience = limit ? atof(limit) : DEFAULT_TIMEOUT;
    pid_t parent = getpid(), process = fork();
    int status = 0;
    if (!process) become(words + 1, parent);
    while (process > 0 && waitpid(process, &status, WNOHANG) == 0)
        if (input_ended(process, patience)) {
            kill(-process, SIGKILL);
            kill(process, SIGKILL);
            waitpid(process, &status, 0);
            break;
        }
    kill(-process, SIGKILL);
    return process < 0           ? CANNOT_START
           : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                 : WEXITSTATUS(status);
}
