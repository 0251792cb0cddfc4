/* Starts ranks on other hosts by a remote shell (ssh), and ends them there. */
#include "check_hosts.h"
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
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_WORDS = 64,
    MOST_EXPORTS = 256,
    PATH_ROOM = 4096,
    HOST_ROOM = 256,
    VARIABLES_ROOM = 48 << 10, // bytes of exported variables in all
    HEAD = 8,                  // bytes of the number before the variables: digits, end of line
    PATIENCE = 5,              // seconds beyond HETU_TIMEOUT in which heturun may be silent
    LOOK = 20                  // milliseconds that input_ended waits
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

/* The variables of --export, and what remote_variables returns. */
static struct {
    int count;
    const char *name[MOST_EXPORTS];
    char *text;
    size_t length;
} exported;

static bool has_name(const char *variable, const char *name) {
    size_t length = strlen(name);
    return !strncmp(variable, name, length) && variable[length] == '=';
}

/* Returns whether the environment variable "NAME=VALUE" stands in the command of a remote rank. */
static bool goes_along(const char *variable) {
    static const char *const heads[] = {"HETU_", "OMP_",  "OPENBLAS_",
                                        "NCCL_", "PATH=", "LD_LIBRARY_PATH="};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (!strncmp(variable, heads[i], strlen(heads[i]))) return true;
    return false;
}

/* Writes the exported variables behind the number of their bytes: "0000012\nA=1\0B=two 2\0". */
static void write_variables(void) {
    FILE *out = open_memstream(&exported.text, &exported.length);
    char head[HEAD + 1];
    if (!out) abort();
    fprintf(out, "%0*d\n", HEAD - 1, 0);
    for (char **variable = environ; *variable; variable++)
        for (int i = 0; i < exported.count; i++)
            if (has_name(*variable, exported.name[i]) && !goes_along(*variable)) {
                fwrite(*variable, 1, strlen(*variable) + 1, out);
                break;
            }
    fclose(out);
    if (exported.length > VARIABLES_ROOM) return; // refused by remote_export
    snprintf(head, sizeof head, "%0*d\n", HEAD - 1, (int)(exported.length - HEAD));
    memcpy(exported.text, head, HEAD);
}

const char *remote_variables(size_t *length) {
    if (!exported.text) write_variables();
    *length = exported.length;
    return exported.text;
}

/* Returns whether a text is the name of a variable. */
static bool is_name(const char *text) {
    static const char MAY[] = "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    return *text && !(*text >= '0' && *text <= '9') && text[strspn(text, MAY)] == 0;
}

const char *remote_export(const char *word) {
    size_t length = strcspn(word, "=");
    char *name = strndup(word, length);
    if (!is_name(name)) return "this is no name of a variable; letters, digits and _ make one";
    if (word[length]) setenv(name, word + length + 1, 1);
    else if (!getenv(name)) return "this variable has no value; give it one: -x NAME=VALUE";
    if (exported.count == MOST_EXPORTS) return "there are more than 256 variables";
    exported.name[exported.count++] = name;
    free(exported.text);
    write_variables();
    return exported.length > VARIABLES_ROOM
               ? "the variables of -x have more than 48 KiB in all; give ranks the path of a file"
               : NULL;
}

/* Returns `heturun OPTION -- FOLDER WORDS` for another machine; FOLDER is the current folder. */
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

char *remote_shell_name(const char *shell) {
    const char *word = shell + strspn(shell, " ");
    size_t length = strcspn(word, " ");
    for (size_t i = length; i > 0; i--)
        if (word[i - 1] == '/') return strndup(word + i, length - i);
    return strndup(word, length);
}

bool remote_is_srun(const char *shell) {
    char *name = remote_shell_name(shell);
    bool slurm = !strcmp(name, "srun");
    free(name);
    return slurm;
}

/* Returns a list, NULL at its end: the words of the remote shell, the host, and the command. For
 * srun, the host is an option, and sh runs the command. */
static char **shell_words(const char *shell, const char *host, char *command) {
    char **words = calloc(MOST_WORDS + 5, sizeof *words), *copy = strdup(shell), *rest = copy;
    char *node = NULL;
    int count = 0;
    for (char *word; count < MOST_WORDS && (word = strtok_r(rest, " ", &rest));)
        words[count++] = word;
    bool slurm = remote_is_srun(shell);
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

/* ---- open files ---- */

static struct rlimit files; // the limit before it was raised; rlim_max 0: it was not

void remote_raise_files(void) {
    struct rlimit raised;
    if (files.rlim_max || getrlimit(RLIMIT_NOFILE, &files)) return;
    raised = files;
    raised.rlim_cur = raised.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised)) files.rlim_max = 0;
}

void remote_restore_files(void) {
    if (files.rlim_max && setrlimit(RLIMIT_NOFILE, &files)) perror("RLIMIT_NOFILE");
}

/* ---- remote side (heturun --hold) ---- */

static const char *own_name(void) {
    static char name[HOST_ROOM];
    gethostname(name, sizeof name - 1);
    return name;
}

/* Runs in the child process: executes the program in its own process group, without this process's
 * standard input. Writes the number of an error to `report`. */
static _Noreturn void become(char **words, pid_t parent, int report) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(CANNOT_START);
    setpgid(0, 0);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    execvp(words[0], words);
    int error = errno;
    if (write(report, &error, sizeof error) < 0) perror(words[0]);
    _exit(CANNOT_START);
}

/* Starts the program. Returns its process; -1 after a message: it cannot be started here. */
static pid_t launch(char **words) {
    int ends[2], error = 0;
    pid_t parent = getpid(), process = pipe2(ends, O_CLOEXEC) ? -1 : fork();
    if (!process) become(words, parent, ends[1]);
    if (process < 0) error = errno;
    else {
        close(ends[1]);
        if (read(ends[0], &error, sizeof error) != sizeof error) error = 0; // it runs
        close(ends[0]);
        if (error) waitpid(process, NULL, 0);
    }
    if (!error) return process;
    tool_message(stderr, "error", "%s cannot be started on %s: %s", words[0], own_name(),
                 strerror(error));
    return -1;
}

/* Reads bytes of the standard input. Returns false if it ends, or is silent for `patience` s. */
static bool read_input(char *bytes, size_t length, double patience) {
    for (size_t held = 0; held < length;) {
        struct pollfd input = {STDIN_FILENO, POLLIN, 0};
        if (poll(&input, 1, patience > 0 ? (int)(patience * 1000) : -1) <= 0) return false;
        ssize_t got = read(STDIN_FILENO, bytes + held, length - held);
        if (got <= 0) return false;
        held += (size_t)got;
    }
    return true;
}

/* Sets heturun's exported variables from standard input. Returns false after a message. */
static bool take_variables(double patience) {
    static char text[VARIABLES_ROOM + 1];
    char head[HEAD + 1] = "", *end = head;
    bool good = read_input(head, HEAD, patience);
    long length = strtol(head, &end, 10);
    good = good && *end == '\n' && length >= 0 && length <= VARIABLES_ROOM &&
           read_input(text, (size_t)length, patience);
    if (!good)
        tool_message(stderr, "error", "no variables of heturun come to %s by the standard input",
                     own_name());
    for (const char *at = text; good && at < text + length; at += strlen(at) + 1) {
        char *name = strndup(at, strcspn(at, "="));
        setenv(name, at + strcspn(at, "=") + (strchr(at, '=') != NULL), 1);
        free(name);
    }
    return good;
}

/* Waits LOOK ms for a byte of standard input and sends it to the process as a signal; a byte of 0
 * only tells that heturun lives. Returns whether the standard input has ended, or `patience`
 * seconds (0: no limit) have passed since *last, the last byte, as when a cable is pulled. */
static bool input_ended(pid_t process, double patience, double *last) {
    char byte;
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, LOOK) <= 0)
        return patience > 0 && clock_seconds(CLOCK_MONOTONIC) - *last > patience;
    if (read(STDIN_FILENO, &byte, 1) <= 0) return true;
    *last = clock_seconds(CLOCK_MONOTONIC);
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

/* Returns the exit status of --hold for the program's wait status. The program's own 127 and 255
 * become 1: 127 says that the machine lacks something (a library), 255 that ssh failed. */
static int status_of(const char *program, int status) {
    int own = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    if (own == UNREACHED || (own == CANNOT_START && !probe_lacks_library(program))) return 1;
    return own;
}

int remote_hold(char **words) {
    const char *limit = getenv("HETU_TIMEOUT");
    double patience = limit ? atof(limit) : DEFAULT_TIMEOUT;
    int status = 0;
    if (!words || !words[0] || !words[1]) {
        tool_message(stderr, "error", "--hold is for heturun --hosts, which starts it");
        return CANNOT_START;
    }
    if (patience > 0) patience += PATIENCE;
    if (!take_variables(patience) || !enter(words[0])) return CANNOT_START;
    pid_t process = launch(words + 1);
    if (process < 0) return CANNOT_START;
    double last = clock_seconds(CLOCK_MONOTONIC);
    while (waitpid(process, &status, WNOHANG) == 0)
        if (input_ended(process, patience, &last)) {
            kill(-process, SIGKILL);
            kill(process, SIGKILL);
            waitpid(process, &status, 0);
            break;
        }
    kill(-process, SIGKILL);
    return status_of(words[1], status);
}
