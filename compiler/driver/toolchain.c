/* Finds and runs the C compiler and tools (CC, PATH), and reports how they end. Flags are
 * compile.c's and emit/backend.c's (-O2, kernels -O3); runtime/program.mk has nvcc's. */
#include "driver/toolchain.h"

#include "driver/output.h"
#include "support/diag.h"
#include "support/sarif.h"
#include "support/tool.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST_JOBS = 2, MOST_SIGNAL = 64 };
static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { END_SIGNALS = sizeof end_signals / sizeof *end_signals };

static volatile pid_t children[MOST_JOBS];
static FILE *child_output[MOST_JOBS]; // captured standard error of each child; NULL: not captured

static void end_children(int number) {
    for (int i = 0; i < MOST_JOBS; i++)
        if (children[i] > 0) {
            kill(children[i], number);
            waitpid(children[i], NULL, 0);
        }
}

static void end_by_signal(int number) {
    end_children(number);
    outputs_clean();
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- hetucc's installation, parent process and signals ---- */

/* Returns the parent of this program's folder, "/usr" for /usr/bin/hetucc. Exits on failure. */
static const char *find_prefix(Arena *arena) {
    enum { MOST = 4096 };
    char path[MOST];
    ssize_t length = readlink("/proc/self/exe", path, MOST - 1);
    for (int up = 0; up < 2 && length > 0; up++)
        while (length > 0 && path[--length] != '/');
    if (length < 0) {
        complain("cannot find out where hetucc is installed: %s", strerror(errno));
        exit(1);
    }
    return arena_substring(arena, path, length ? (size_t)length : 1);
}

/* Asks the system to end this process with its parent when HETUCC_PARENT is the parent's process
 * id. A rank compiles a strategy while it trains; a killed rank cannot end this process. */
static void end_with_parent(void) {
    const char *parent = getenv("HETUCC_PARENT");
    long rank = parent ? strtol(parent, NULL, 10) : 0;
    if (rank && rank == (long)getppid()) prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (rank > 0 && kill((pid_t)rank, 0) < 0 && errno == ESRCH) exit(1); // the parent has ended
    unsetenv("HETUCC_PARENT");
}

void toolchain_open(Toolchain *tools, Arena *arena, bool dry_run) {
    end_with_parent();
    *tools = (Toolchain){.arena = arena,
                         .prefix = find_prefix(arena),
                         .dry_run = dry_run,
                         .inside = getenv("HETUCC_INSIDE")};
    setenv("HETUCC_INSIDE", "1", 1);
    for (int i = 0; i < END_SIGNALS; i++) {
        struct sigaction action = {.sa_handler = end_by_signal}, before;
        sigfillset(&action.sa_mask);
        if (!sigaction(end_signals[i], NULL, &before) && before.sa_handler != SIG_IGN)
            sigaction(end_signals[i], &action, NULL);
    }
    atexit(outputs_clean);
}

/* ---- commands ---- */

void command_add(Command *command, ...) {
    va_list words;
    va_start(words, command);
    for (const char *word; (word = va_arg(words, const char *));)
        array_push(command->arena, &command->words, word);
    va_end(words);
}

/* Returns whether a file is this program: `name` in the folder whose path has `length` bytes. */
static bool is_this_program(Arena *arena, const char *folder, size_t length, const char *name) {
    struct stat self, other;
    const char *path = length ? arena_format(arena, "%.*s/%s", (int)length, folder, name) : name;
    return !stat("/proc/self/exe", &self) && !stat(path, &other) && self.st_dev == other.st_dev &&
           self.st_ino == other.st_ino;
}

/* Returns whether a word of CC, found along PATH, is this program, as in `CC=hetucc make`. */
static bool names_this_program(Arena *arena, const char *word) {
    if (strchr(word, '/')) return is_this_program(arena, "", 0, word);
    const char *path = getenv("PATH");
    for (path = path ? path : ""; *path; path += *path == ':') {
        size_t length = strcspn(path, ":");
        if (is_this_program(arena, length ? path : ".", length ? length : 1, word)) return true;
        path += length;
    }
    return false;
}

Command command_cc_words(const Toolchain *tools) {
    Command command = {.arena = tools->arena};
    const char *words = tools->inside ? NULL : getenv("CC");
    bool ours = false;
    for (words = words ? words : ""; *(words += strspn(words, " \t"));) {
        size_t length = strcspn(words, " \t");
        command_add(&command, arena_substring(tools->arena, words, length), NULL);
        ours |= names_this_program(tools->arena, command.words.at[command.words.count - 1]);
        words += length;
    }
    if (ours) command.words.count = 0;
    if (!command.words.count) command_add(&command, "cc", NULL);
    return command;
}

Command command_cc(const Toolchain *tools) {
    Command command = command_cc_words(tools);
    if (tool_color_for_cc()) command_add(&command, tool_color_for_cc(), NULL);
    return command;
}

/* Prints a command to stderr as a shell reads it: each word in double quotes. */
static void print_command(const Command *command) {
    for (int i = 0; i < command->words.count; i++) {
        fprintf(stderr, "%s\"", i ? " " : "");
        for (const char *c = command->words.at[i]; *c; c++)
            fprintf(stderr, strchr("\"\\$`", *c) ? "\\%c" : "%c", *c);
        fprintf(stderr, "\"");
    }
    fprintf(stderr, "\n");
}

/* Returns the words with NULL at the end, as exec needs them. */
static char **arguments_of(const Command *command) {
    char **words = arena_array(command->arena, char *, command->words.count + 1);
    for (int i = 0; i < command->words.count; i++)
        words[i] = arena_string(command->arena, command->words.at[i]);
    return words;
}

static int status_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- commands that are killed ---- */

/* Returns the command as a shell reads it, for messages. */
static const char *command_text(const Command *command) {
    Text text = {.arena = command->arena};
    for (int i = 0; i < command->words.count; i++) {
        text_string(&text, i ? " " : "");
        text_shell(&text, command->words.at[i]);
    }
    return text_bytes(&text);
}

static const char *memory_hint(int number) {
    return number == SIGKILL ? ", as the system does where memory runs out" : "";
}

/* Reports that a signal ended a command. */
static void report_killed(const Command *command, int number) {
    complain("%s was ended by signal %d (%s)%s: %s", command->words.at[0], number,
             strsignal(number), memory_hint(number), command_text(command));
}

/* Returns the line of a C compiler's output that says that a signal ended a child; NULL: none. */
static const char *killed_line(Arena *arena, const char *output) {
    static const char *const signs[] = {"signal terminated program", "terminated with signal",
                                        "command failed due to signal",
                                        "unable to execute command: "};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *at = strstr(output, signs[i]), *begin = at;
        while (begin > output && begin[-1] != '\n') begin--;
        if (at) return arena_substring(arena, begin, strcspn(begin, "\n"));
    }
    return NULL;
}

/* Returns whether a failed C compiler's output says that a signal ended a child; reports that. */
static bool report_killed_child(const Command *command, const char *output) {
    const char *line = killed_line(command->arena, output);
    if (line)
        complain("%s did not come to its end: a signal ended a program that it runs (%s)%s: %s",
                 command->words.at[0], line, memory_hint(strstr(line, "Killed") ? SIGKILL : 0),
                 command_text(command));
    return line;
}

/* Returns an environment in which a C compiler's messages are English, as killed_line() expects. */
static char **plain_environment(Arena *arena) {
    int count = 0, kept = 0;
    while (environ[count]) count++;
    char **own = arena_array(arena, char *, count + 2);
    for (int i = 0; i < count; i++)
        if (strncmp(environ[i], "LC_ALL=", 7) != 0 &&
            strncmp(environ[i], "LC_MESSAGES=", 12) != 0 &&
            strncmp(environ[i], "LANGUAGE=", 9) != 0)
            own[kept++] = environ[i];
    own[kept] = arena_string(arena, "LC_MESSAGES=C");
    return own;
}

/* Starts a command as children[slot]. Ends the process with a message when that fails. */
static void start(const Command *command, int slot) {
    pid_t child;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t held, before;
    fflush(stdout);
    // end_children must know every child: block signals until the child's number is stored.
    sigemptyset(&held);
    for (int i = 0; i < END_SIGNALS; i++) sigaddset(&held, end_signals[i]);
    sigprocmask(SIG_BLOCK, &held, &before);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &before);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&actions);
    child_output[slot] =
        sarif_has_stderr() || command->quiet || !isatty(STDERR_FILENO) ? tmpfile() : NULL;
    if (child_output[slot])
        posix_spawn_file_actions_adddup2(&actions, fileno(child_output[slot]), STDERR_FILENO);
    int error =
        posix_spawnp(&child, command->words.at[0], &actions, &attributes, arguments_of(command),
                     command->quiet ? plain_environment(command->arena) : environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (!error) children[slot] = child;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (error) {
        complain("cannot run %s: %s", command->words.at[0], strerror(error));
        end_children(SIGTERM);
        exit(1);
    }
}

/* Copies a child's captured messages to the log or to standard error and returns them; "": none. */
static const char *take_output(const Toolchain *tools, int slot, int status) {
    Text text = {.arena = tools->arena};
    char bytes[4096];
    if (!child_output[slot]) return "";
    rewind(child_output[slot]);
    for (size_t length; (length = fread(bytes, 1, sizeof bytes, child_output[slot]));)
        text_append(&text, bytes, length);
    fclose(child_output[slot]);
    child_output[slot] = NULL;
    if (text.length && sarif_has_stderr())
        sarif_add(status ? SARIF_ERROR : SARIF_WARNING, NULL, text_bytes(&text));
    else fwrite(text_bytes(&text), 1, text.length, stderr);
    return text_bytes(&text);
}

/* Handles the end of a command, and reports a signal that ended the command or its child process.
 * Returns the exit status, from 128 on for signals. */
static int note_end(const Toolchain *tools, const Command *command, int slot, int ended) {
    int status = status_of(ended);
    const char *output = take_output(tools, slot, status);
    // A shell that runs the compiler also returns 128 + the number of the signal.
    if (status > 128 && status <= 128 + MOST_SIGNAL) report_killed(command, status - 128);
    else if (status && report_killed_child(command, output)) status = 128 + SIGKILL;
    return status;
}

/* Waits for the end of a command; sets *status as waitpid does. Returns its index in children[]. */
static int wait_any(int *status) {
    for (;;) {
        pid_t ended = waitpid(-1, status, 0);
        if (ended < 0 && errno != EINTR) BUG("waiting for the C compiler: %s", strerror(errno));
        for (int slot = 0; slot < MOST_JOBS; slot++)
            if (ended > 0 && children[slot] == ended) {
                children[slot] = 0;
                return slot;
            }
    }
}

void command_run_all(const Toolchain *tools, const Command *commands, int count, int *status) {
    int job[MOST_JOBS], running = 0, started = 0, ended;
    for (int i = 0; i < count; i++) {
        status[i] = tools->dry_run ? 0 : 1;
        if (tools->dry_run) print_command(&commands[i]);
    }
    while (!tools->dry_run && (started < count || running)) {
        for (int slot = 0; slot < MOST_JOBS && started < count; slot++)
            if (!children[slot]) {
                job[slot] = started;
                start(&commands[started++], slot);
                running++;
            }
        if (running) {
            int slot = wait_any(&ended);
            running--;
            status[job[slot]] = note_end(tools, &commands[job[slot]], slot, ended);
        }
    }
}

int command_run(const Toolchain *tools, const Command *command) {
    int status;
    command_run_all(tools, command, 1, &status);
    return status;
}

_Noreturn void command_become(const Toolchain *tools, const Command *command) {
    if (tools->dry_run) {
        print_command(command);
        exit(0);
    }
    if (sarif_has_stderr()) exit(command_run(tools, command));
    fflush(NULL);
    outputs_close();
    if (!sarif_close(0)) exit(1);
    execvp(command->words.at[0], arguments_of(command));
    complain("cannot run %s: %s", command->words.at[0], strerror(errno));
    exit(1);
}
