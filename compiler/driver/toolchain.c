#include "driver/toolchain.h"

#include "support/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST_JOBS = 2 };

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "hetucc: error: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
}

/* ---- what must be removed at the end; a signal handler reads this, so entries are only added in front or emptied ---- */

typedef struct Removal Removal;
struct Removal {
    Removal *next;
    const char *volatile path; // NULL: no longer
};

static Removal *volatile removals;
static const char *volatile temporary_folder;
static volatile pid_t children[MOST_JOBS];

static void remove_at_end(Arena *arena, const char *path)
{
    Removal *removal = arena_new(arena, Removal);
    *removal = (Removal){.next = removals, .path = path};
    removals = removal;
}

static void remove_no_more(const char *path)
{
    for (Removal *removal = removals; removal; removal = removal->next)
        if (removal->path == path)
            removal->path = NULL;
}

static void clean_up(void)
{
    for (Removal *removal = removals; removal; removal = removal->next)
        if (removal->path && unlink(removal->path))
            rmdir(removal->path);
    if (temporary_folder)
        rmdir(temporary_folder);
}

void toolchain_close(void)
{
    clean_up();
    removals = NULL;
    temporary_folder = NULL;
}

static void end_children(int number)
{
    for (int i = 0; i < MOST_JOBS; i++)
        if (children[i] > 0) {
            kill(children[i], number);
            waitpid(children[i], NULL, 0);
        }
}

static void end_by_signal(int number)
{
    end_children(number);
    clean_up();
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- places ---- */

/* The folder above the one that this program is in. */
static const char *find_prefix(Arena *arena)
{
    enum { MOST = 4096 };
    char path[MOST];
    ssize_t length = readlink("/proc/self/exe", path, MOST - 1);
    for (int up = 0; up < 2 && length > 0; up++)
        while (length > 0 && path[--length] != '/')
            ;
    if (length < 0) {
        complain("cannot find out where hetucc is installed: %s", strerror(errno));
        exit(1);
    }
    return arena_substring(arena, path, length ? (size_t)length : 1);
}

/* A new folder for temporary files. */
static const char *make_folder(Arena *arena)
{
    const char *base = getenv("TMPDIR");
    char *folder = arena_format(arena, "%s/hetucc-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder)) {
        complain("cannot make a folder for temporary files (%s): %s", folder, strerror(errno));
        exit(1);
    }
    return folder;
}

void toolchain_open(Toolchain *tools, Arena *arena, bool dry_run)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    *tools = (Toolchain){.arena = arena, .prefix = find_prefix(arena), .dry_run = dry_run, .inside = getenv("HETUCC_INSIDE")};
    setenv("HETUCC_INSIDE", "1", 1);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action = {.sa_handler = end_by_signal}, before;
        sigfillset(&action.sa_mask);
        if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
    atexit(clean_up);
}

const char *temporary(Toolchain *tools, const char *name)
{
    if (!tools->folder)
        tools->folder = tools->dry_run ? "/tmp/hetucc" : make_folder(tools->arena);
    if (!tools->dry_run)
        temporary_folder = tools->folder;
    const char *path = arena_format(tools->arena, "%s/%s", tools->folder, name);
    remove_at_end(tools->arena, path);
    return path;
}

bool temporary_full(const Toolchain *tools)
{
    enum { TIGHT = 16 << 20 }; // bytes: what a C compiler may want for one file
    struct statvfs space;
    if (!tools->folder || tools->dry_run || statvfs(tools->folder, &space) || (double)space.f_bavail * (double)space.f_frsize >= TIGHT)
        return false;
    complain("the folder for temporary files, %s, has no room left (%lld KiB); TMPDIR names another", tools->folder,
             (long long)((double)space.f_bavail * (double)space.f_frsize / 1024));
    return true;
}

/* ---- outputs ---- */

const char *output_begin(Toolchain *tools, const char *path)
{
    struct stat found;
    bool exists = !stat(path, &found);
    if (exists && S_ISDIR(found.st_mode)) {
        complain("cannot write %s: it is a folder", path);
        return NULL;
    }
    if (tools->dry_run || (exists && !S_ISREG(found.st_mode)))
        return path;
    if (exists && access(path, W_OK)) {
        complain("cannot write %s: %s", path, strerror(errno));
        return NULL;
    }
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    char *written = arena_format(tools->arena, "%.*s.%s.XXXXXX", folder, path, path + folder);
    int file = mkstemp(written);
    if (file < 0) {
        complain("cannot write %s: %s", path, strerror(errno));
        return NULL;
    }
    remove_at_end(tools->arena, written);
    close(file);
    return written;
}

bool output_finish(Toolchain *tools, const char *written, const char *path, unsigned mode)
{
    if (tools->dry_run || written == path)
        return true;
    mode_t mask = umask(0);
    umask(mask);
    if (chmod(written, (mode_t)mode & ~mask) || rename(written, path)) {
        complain("cannot write %s: %s", path, strerror(errno));
        return false;
    }
    remove_no_more(written);
    return true;
}

bool file_read(const char *path, Text *bytes)
{
    enum { MOST = 1 << 28 };
    char piece[8192];
    FILE *stream = fopen(path, "rb");
    for (size_t length; stream && bytes->length <= MOST && (length = fread(piece, 1, sizeof piece, stream));)
        text_append(bytes, piece, length);
    bool good = stream && !ferror(stream) && bytes->length <= MOST;
    if (stream)
        fclose(stream);
    if (bytes->length > MOST)
        errno = EFBIG;
    return good;
}

const char *output_bytes(Toolchain *tools, const char *path, const char *bytes, size_t size)
{
    const char *written = output_begin(tools, path);
    if (!written || tools->dry_run)
        return written;
    FILE *file = fopen(written, "w");
    bool good = file && fwrite(bytes, 1, size, file) == size;
    if (file && fclose(file))
        good = false;
    if (!good) {
        complain("cannot write %s: %s", path, strerror(errno));
        return NULL;
    }
    return written;
}

const char *output_write(Toolchain *tools, const char *path, const char *text) { return output_bytes(tools, path, text, strlen(text)); }

bool output_text(Toolchain *tools, const char *path, const char *text)
{
    const char *written = output_write(tools, path, text);
    return written && output_finish(tools, written, path, 0666);
}

/* ---- commands ---- */

void command_add(Command *command, ...)
{
    va_list words;
    va_start(words, command);
    for (const char *word; (word = va_arg(words, const char *));)
        array_push(command->arena, &command->words, word);
    va_end(words);
}

/* Whether the file `name` in the folder that takes `length` bytes at `folder` is this program. */
static bool is_this_program(Arena *arena, const char *folder, size_t length, const char *name)
{
    struct stat self, other;
    const char *path = length ? arena_format(arena, "%.*s/%s", (int)length, folder, name) : name;
    return !stat("/proc/self/exe", &self) && !stat(path, &other) && self.st_dev == other.st_dev && self.st_ino == other.st_ino;
}

/* Whether a word of CC, found along PATH, is this program: `CC=hetucc make` gives it to us, too. */
static bool names_this_program(Arena *arena, const char *word)
{
    if (strchr(word, '/'))
        return is_this_program(arena, "", 0, word);
    const char *path = getenv("PATH");
    for (path = path ? path : ""; *path; path += *path == ':') {
        size_t length = strcspn(path, ":");
        if (is_this_program(arena, length ? path : ".", length ? length : 1, word))
            return true;
        path += length;
    }
    return false;
}

Command command_cc(const Toolchain *tools)
{
    Command command = {.arena = tools->arena};
    const char *words = tools->inside ? NULL : getenv("CC");
    bool ours = false;
    for (words = words ? words : ""; *(words += strspn(words, " \t"));) {
        size_t length = strcspn(words, " \t");
        command_add(&command, arena_substring(tools->arena, words, length), NULL);
        ours |= names_this_program(tools->arena, command.words.at[command.words.count - 1]);
        words += length;
    }
    if (ours)
        command.words.count = 0;
    if (!command.words.count)
        command_add(&command, "cc", NULL);
    return command;
}

/* Prints a command as a shell would read it. */
static void print_command(const Command *command)
{
    for (int i = 0; i < command->words.count; i++) {
        fprintf(stderr, "%s\"", i ? " " : "");
        for (const char *c = command->words.at[i]; *c; c++)
            fprintf(stderr, strchr("\"\\$`", *c) ? "\\%c" : "%c", *c);
        fprintf(stderr, "\"");
    }
    fprintf(stderr, "\n");
}

/* The words with NULL behind, as exec takes them. */
static char **arguments_of(const Command *command)
{
    char **words = arena_array(command->arena, char *, command->words.count + 1);
    for (int i = 0; i < command->words.count; i++)
        words[i] = arena_string(command->arena, command->words.at[i]);
    return words;
}

static int status_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/* Starts a command as child `slot`. What cannot be started once cannot be started for the next file either: then the process ends with a
 * message. */
static void start(const Command *command, int slot)
{
    pid_t child;
    fflush(stdout);
    int error = posix_spawnp(&child, command->words.at[0], NULL, NULL, arguments_of(command), environ);
    if (error) {
        complain("cannot run %s: %s", command->words.at[0], strerror(error));
        end_children(SIGTERM);
        exit(1);
    }
    children[slot] = child;
}

/* Waits for one of our children; its slot. */
static int wait_any(int *status)
{
    for (;;) {
        pid_t ended = waitpid(-1, status, 0);
        if (ended < 0 && errno != EINTR)
            BUG("waiting for the C compiler: %s", strerror(errno));
        for (int slot = 0; slot < MOST_JOBS; slot++)
            if (ended > 0 && children[slot] == ended) {
                children[slot] = 0;
                return slot;
            }
    }
}

void command_run_all(const Toolchain *tools, const Command *commands, int count, int *status)
{
    int job[MOST_JOBS], running = 0, started = 0, ended;
    for (int i = 0; i < count; i++) {
        status[i] = tools->dry_run ? 0 : 1;
        if (tools->dry_run)
            print_command(&commands[i]);
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
            status[job[slot]] = status_of(ended);
        }
    }
}

int command_run(const Toolchain *tools, const Command *command)
{
    int status;
    command_run_all(tools, command, 1, &status);
    return status;
}

_Noreturn void command_become(const Toolchain *tools, const Command *command)
{
    if (tools->dry_run) {
        print_command(command);
        exit(0);
    }
    fflush(NULL);
    toolchain_close();
    execvp(command->words.at[0], arguments_of(command));
    complain("cannot run %s: %s", command->words.at[0], strerror(errno));
    exit(1);
}
