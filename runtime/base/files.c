#define _GNU_SOURCE
#include "base/files.h"
#include "base/c_locale.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, OTHERS = S_IRWXG | S_IRWXO };

/* ---- inputs ---- */

const char *file_kind(mode_t mode)
{
    return S_ISREG(mode)    ? NULL
           : S_ISDIR(mode)  ? "it is a folder, and no file"
           : S_ISFIFO(mode) ? "it is a pipe, and no file"
           : S_ISSOCK(mode) ? "it is a socket, and no file"
           : S_ISLNK(mode)  ? "it is a link, and no file"
                            : "it is a device, and no file";
}

/* The reason of an error of open(): a socket cannot be opened, and O_NOFOLLOW opens no link. */
static const char *open_reason(const char *path, int error)
{
    struct stat about;
    bool other = (error == ENXIO || error == ELOOP) && !lstat(path, &about);
    const char *kind = other ? file_kind(about.st_mode) : NULL;
    return kind ? kind : plain_error(error);
}

/* Opens a plain file for reading; `about` is what it is. */
static int open_plain(const char *path, int flags, struct stat *about, const char **why)
{
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
    if (file < 0) {
        *why = open_reason(path, errno);
        return -1;
    }
    *why = fstat(file, about) ? plain_error(errno) : file_kind(about->st_mode);
    if (!*why)
        return file;
    close(file);
    return -1;
}

int file_open_input(const char *path, const char **why)
{
    struct stat about;
    return open_plain(path, 0, &about, why);
}

int file_open_own(const char *path, const char **why)
{
    struct stat about;
    int file = open_plain(path, O_NOFOLLOW, &about, why);
    if (file >= 0 && about.st_uid != geteuid())
        *why = "it is another user's";
    else if (file >= 0 && about.st_mode & (S_IWGRP | S_IWOTH))
        *why = "other users may write it";
    if (file < 0 || !*why)
        return file;
    close(file);
    return -1;
}

/* A stream of an open file; NULL where there is none. */
static FILE *stream_of(int file)
{
    FILE *stream = file < 0 ? NULL : fdopen(file, "r");
    if (!stream && file >= 0)
        close(file);
    return stream;
}

FILE *file_read_input(const char *path, const char **why)
{
    const char *own;
    return stream_of(file_open_input(path, why ? why : &own));
}

FILE *file_read_own(const char *path, const char **why)
{
    const char *own;
    return stream_of(file_open_own(path, why ? why : &own));
}

/* ---- outputs ---- */

int file_create(const char *path)
{
    unlink(path);
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

int file_open_made(const char *path)
{
    struct stat about;
    int file = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0 || (!fstat(file, &about) && S_ISREG(about.st_mode) && about.st_nlink <= 1))
        return file;
    close(file);
    errno = EPERM;
    return -1;
}

FILE *file_create_beside(const char *path, char **name)
{
    mode_t mask = umask(0);
    umask(mask);
    if (asprintf(name, "%s.XXXXXX", path) < 0) {
        *name = NULL;
        return NULL;
    }
    int file = mkostemp(*name, O_CLOEXEC), error = errno;
    FILE *stream = file < 0 || fchmod(file, 0666 & ~mask) ? NULL : fdopen(file, "w");
    if (stream)
        return stream;
    if (file >= 0) {
        error = errno;
        close(file);
        unlink(*name);
    }
    free(*name);
    *name = NULL;
    errno = error;
    return NULL;
}

void file_size_errors(void)
{
    sigset_t size;
    sigemptyset(&size);
    sigaddset(&size, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &size, NULL);
}

/* ---- folders of this user alone ---- */

static bool is_private(const struct stat *about)
{
    return S_ISDIR(about->st_mode) && about->st_uid == geteuid() && !(about->st_mode & OTHERS);
}

bool private_is(const char *path)
{
    struct stat about;
    return !lstat(path, &about) && is_private(&about);
}

int private_make(char *path, size_t room, const char *parent, const char *head)
{
    if (snprintf(path, room, "%s/%s.XXXXXX", parent, head) >= (int)room)
        return ENAMETOOLONG;
    return mkdtemp(path) ? 0 : errno;
}

/* Removes what is in an open folder of this user's, down to so many folders in folders, and closes it. */
static void empty(int folder, int depth)
{
    DIR *inside = fdopendir(folder);
    for (const struct dirent *entry; inside && (entry = readdir(inside));) {
        bool itself = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
        if (itself || !unlinkat(folder, entry->d_name, 0) || !depth)
            continue;
        int inner = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0)
            empty(inner, depth - 1);
        unlinkat(folder, entry->d_name, AT_REMOVEDIR);
    }
    if (inside)
        closedir(inside);
    else
        close(folder);
}

void private_remove(const char *path)
{
    enum { DEPTH = 4 };
    struct stat about;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool own = folder >= 0 && !fstat(folder, &about) && is_private(&about);
    if (own)
        empty(folder, DEPTH);
    else if (folder >= 0)
        close(folder);
    if (own)
        rmdir(path);
    else
        unlink(path);
}

bool private_is_safe(const char *parent)
{
    enum { NOBODY = 65534 }; // whom a container shows where it does not know the owner
    struct stat about;
    if (stat(parent, &about) || !S_ISDIR(about.st_mode) || access(parent, W_OK | X_OK))
        return false;
    bool trusted = about.st_uid == geteuid() || about.st_uid == 0 || about.st_uid == NOBODY;
    return trusted && (!(about.st_mode & S_IWOTH) || about.st_mode & S_ISVTX);
}

void private_sweep(const char *parent, const char *head, bool (*dead)(const char *mark))
{
    char path[PATH_ROOM];
    DIR *top = opendir(parent);
    for (const struct dirent *entry; top && (entry = readdir(top));)
        if (!strncmp(entry->d_name, head, strlen(head)) && dead(entry->d_name + strlen(head)) &&
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < (int)sizeof path)
            private_remove(path);
    if (top)
        closedir(top);
}

/* ---- this process's private folder ---- */

static struct {
    pid_t process;        // which made it: a child has no part in it
    char path[PATH_ROOM]; // "": there is none
} own;

/* The first folder for temporary files in which no other user can put something in place of what is made there; NULL: there is none. */
static const char *safe_parent(void)
{
    const char *const parents[] = {getenv("TMPDIR"), "/tmp", "/dev/shm"};
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++)
        if (parents[i] && *parents[i] && private_is_safe(parents[i]))
            return parents[i];
    return NULL;
}

/* Makes the folder. Returns 0, or an errno. */
static int make_own(const char *parent, uint64_t node, bool (*dead)(const char *mark))
{
    char head[64];
    size_t length = (size_t)snprintf(head, sizeof head, "hetu-%d-", (int)geteuid());
    private_sweep(parent, head, dead);
    snprintf(head + length, sizeof head - length, "%016" PRIx64 ".%d", node, (int)getpid());
    int error = private_make(own.path, sizeof own.path, parent, head);
    own.process = getpid();
    if (error)
        own.path[0] = 0;
    return error;
}

char *private_path(const char *name, uint64_t node, bool (*dead)(const char *mark), const char **why)
{
    char *path = NULL;
    const char *parent = safe_parent();
    bool made = *own.path && own.process == getpid();
    int error = made ? 0 : parent ? make_own(parent, node, dead) : EACCES;
    if (!error && asprintf(&path, "%s/%s", own.path, name) < 0)
        error = ENOMEM;
    *why = !made && !parent ? "neither TMPDIR nor /tmp is a folder in which other users cannot change what is made (chmod +t)"
           : error          ? plain_error(error)
                            : NULL;
    return error ? NULL : path;
}

void private_close(void)
{
    if (*own.path && own.process == getpid())
        private_remove(own.path);
    own.path[0] = 0;
}
