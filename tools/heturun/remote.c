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
#include <unistd.h>

enum {
    MOST_WORDS = 64,
    PATH_ROOM = 4096,
    CANNOT_START = 127,
    LOOK = 20 // milliseconds that input_ended waits
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

/* Returns whether a remote rank gets the environment variable "NAME=VALUE". */
static int goes_along(const char *variable) {
    static const char *const heads[] = {"HETU_", "OMP_", "OPENBLAS_", "PATH=", "LD_LIBRARY_PATH="};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (!strncmp(variable, heads[i], strlen(heads[i]))) return 1;
    return 0;
}

static char *hold_command(char **words) {
    char *text = NULL, folder[PATH_ROOM] = "", own[PATH_ROOM] = "";
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out || !getcwd(folder, sizeof folder) ||
        readlink("/proc/self/exe", own, sizeof own - 1) < 0)
        abort();
    fputs("cd", out);
    quote(out, folder);
    fputs(" && exec env", out);
    for (char **variable = environ; *variable; variable++)
        if (goes_along(*variable)) quote(out, *variable);
    quote(out, own);
    fputs(" --hold --", out);
    for (; *words; words++) quote(out, *words);
    fclose(out);
    return text;
}

/* Returns a list, NULL at its end: the words of the remote shell, the host, and the command. */
static char **shell_words(const char *shell, const char *host, char *command) {
    char **words = calloc(MOST_WORDS + 3, sizeof *words), *copy = strdup(shell), *rest = copy;
    int count = 0;
    for (char *word; count < MOST_WORDS && (word = strtok_r(rest, " ", &rest));)
        words[count++] = word;
    words[count++] = (char *)host;
    words[count++] = command;
    return words;
}

char **remote_words(const char *shell, const char *host, char **words) {
    return shell_words(shell, host, hold_command(words));
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

/* Runs in the child process: executes the program in its own process group, without this process's
 * standard input. */
static _Noreturn void become(char **words, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(CANNOT_START);
    setpgid(0, 0);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    execvp(words[0], words);
    tool_message(stderr, "error", "%s cannot be started: %s", words[0], strerror(errno));
    _exit(CANNOT_START);
}

/* Waits LOOK ms for a byte of standard input and sends it to the process as a signal. Returns
 * whether the standard input has ended. */
static int input_ended(pid_t process) {
    char byte;
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, LOOK) <= 0) return 0;
    if (read(STDIN_FILENO, &byte, 1) <= 0) return 1;
    kill(process, byte);
    return 0;
}

int remote_hold(char **words) {
    pid_t parent = getpid(), process = fork();
    int status = 0;
    if (!process) become(words, parent);
    while (process > 0 && waitpid(process, &status, WNOHANG) == 0)
        if (input_ended(process)) {
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
