/* Reads files and pipes, with timeouts. */
#include "support/reading.h"

#include "support/text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Timeouts in seconds: until a writer opens a named pipe (COMING), between two writes to it
 * (SILENT), and between two writes to a shell's pipe (SHELL_SILENT). */
enum { COMING = 1, SILENT = 10, SHELL_SILENT = 600 };

/* A pipe that was read: its path, and its bytes with a null byte added. */
typedef struct Kept Kept;
struct Kept {
    Kept *next;
    char *path, *bytes;
    size_t length;
};

static Kept *kept;

static char reason[256];

const char *reading_kind(mode_t mode) {
    return S_ISREG(mode)    ? NULL
           : S_ISDIR(mode)  ? "it is a folder, and no file"
           : S_ISFIFO(mode) ? "it is a pipe, and no file"
           : S_ISSOCK(mode) ? "it is a socket, and no file"
                            : "it is a device, and no file";
}

bool reading_is_null(const struct stat *about) {
    return S_ISCHR(about->st_mode) && about->st_rdev == makedev(1, 3);
}

/* Opens a file without waiting for a writer and without making a terminal the controlling one; sets
 * *about. Returns a descriptor, or -1 with the reason in *why. */
static int open_any(const char *path, struct stat *about, const char **why) {
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), error = errno;
    if (file >= 0 && !fstat(file, about)) return file;
    bool socket = file < 0 && error == ENXIO && !stat(path, about);
    *why = socket ? reading_kind(about->st_mode) : strerror(file < 0 ? error : errno);
    if (file >= 0) close(file);
    return -1;
}

int reading_open(const char *path, const char **why) {
    struct stat about;
    int file = open_any(path, &about, why);
    if (file < 0 || !(*why = reading_kind(about.st_mode))) return file;
    close(file);
    return -1;
}

/* Waits until a pipe has bytes to read or ends; returns false after `seconds` seconds. */
static bool await(int pipe, int seconds) {
    struct pollfd entry = {.fd = pipe, .events = POLLIN};
    int found;
    while ((found = poll(&entry, 1, seconds * 1000)) < 0 && errno == EINTR);
    return found > 0;
}

/* Appends a pipe's bytes to *text, up to its end or over `most`; false with the reason in *why. */
static bool read_pipe(int pipe, Text *text, size_t most, const char **why) {
    char piece[4096];
    struct statfs system;
    bool shell = !fstatfs(pipe, &system) && system.f_type == PIPEFS_MAGIC, came = shell;
    int patience = shell ? SHELL_SILENT : SILENT;
    while (text->length <= most) {
        ssize_t bytes = read(pipe, piece, sizeof piece);
        int error = bytes < 0 ? errno : 0;
        if (bytes > 0) {
            text_append(text, piece, (size_t)bytes);
        } else if (!bytes && (text->length || came)) {
            return true;
        } else if (!bytes) { // no writer has opened the pipe yet
            came = true;
            if (!await(pipe, COMING)) {
                *why = "it is a pipe that nobody writes to";
                return false;
            }
        } else if (error == EAGAIN && !await(pipe, patience)) {
            snprintf(reason, sizeof reason, "it is a pipe through which nothing has come for %d s",
                     patience);
            *why = reason;
            return false;
        } else if (error != EAGAIN && error != EINTR) {
            *why = strerror(error);
            return false;
        }
    }
    return true;
}

static const Kept *find_kept(const char *path) {
    for (const Kept *entry = kept; entry; entry = entry->next)
        if (!strcmp(entry->path, path)) return entry;
    return NULL;
}

/* Keeps the bytes of a pipe until the process ends. */
static void keep(const char *path, const Text *text) {
    Kept *entry = malloc(sizeof *entry);
    char *bytes = malloc(text->length + 1), *name = strdup(path);
    if (!entry || !bytes || !name) abort();
    memcpy(bytes, text_bytes(text), text->length + 1);
    *entry = (Kept){kept, name, bytes, text->length};
    kept = entry;
}

static bool read_file(int file, Text *text, size_t most, const char **why) {
    char piece[1 << 14];
    ssize_t bytes = 1;
    while (bytes && text->length <= most) {
        bytes = read(file, piece, sizeof piece);
        if (bytes < 0 && errno != EINTR) {
            *why = strerror(errno);
            return false;
        }
        if (bytes > 0) text_append(text, piece, (size_t)bytes);
    }
    return true;
}

static bool read_any(ReadKinds kinds, const char *path, Text *text, size_t most, const char **why) {
    struct stat about;
    int file = open_any(path, &about, why);
    if (file < 0) return false;
    bool pipe = kinds == READ_PIPES && S_ISFIFO(about.st_mode);
    bool null = kinds == READ_PIPES && reading_is_null(&about);
    *why = pipe || null ? NULL : reading_kind(about.st_mode);
    bool good = !*why && (pipe ? read_pipe : read_file)(file, text, most, why);
    close(file);
    if (good && text->length > most) {
        snprintf(reason, sizeof reason, "it has more than %zu bytes", most);
        *why = reason;
        return false;
    }
    if (good && pipe) keep(path, text);
    return good;
}

InputText reading_text(Arena *arena, ReadKinds kinds, const char *path, size_t most) {
    const char *why;
    Text text = {.arena = arena};
    const Kept *entry = kinds == READ_PIPES ? find_kept(path) : NULL;
    if (entry) text_append(&text, entry->bytes, entry->length);
    else if (!read_any(kinds, path, &text, most, &why)) return (InputText){.why = why};
    return (InputText){text_bytes(&text), text.length, NULL};
}
