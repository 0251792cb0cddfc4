#define _GNU_SOURCE
#include "support/secure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool is_private(const struct stat *about) {
    return S_ISDIR(about->st_mode) && about->st_uid == geteuid() &&
           !(about->st_mode & (S_IRWXG | S_IRWXO));
}

bool secure_is_private(const char *path) {
    struct stat about;
    return !lstat(path, &about) && is_private(&about);
}

/* Why others could put something in place of what this user makes in a folder, or of a folder in
 * it; NULL: they cannot. */
static const char *folder_wrong(const char *folder) {
    enum { NOBODY = 65534 }; // whom a container shows where it does not know the owner
    struct stat about;
    if (stat(folder, &about)) return strerror(errno);
    if (!S_ISDIR(about.st_mode)) return "it is no folder";
    if (about.st_uid != geteuid() && about.st_uid && about.st_uid != NOBODY)
        return "it is another user's, who can change what is made there";
    return about.st_mode & S_IWOTH && !(about.st_mode & S_ISVTX)
               ? "all users may change what is made there (chmod +t)"
               : NULL;
}

const char *secure_parent_wrong(const char *parent) {
    static char text[PATH_MAX + 128];
    char whole[PATH_MAX], *slash = whole;
    if (!realpath(parent, whole)) return strerror(errno);
    const char *wrong = folder_wrong("/"), *in = "/";
    while (!wrong && (slash = strchr(slash + 1, '/'))) {
        *slash = 0;
        wrong = folder_wrong(in = whole);
        *slash = wrong ? 0 : '/';
    }
    if (wrong) {
        snprintf(text, sizeof text, "of %s, which it lies in: %s", in, wrong);
        return text;
    }
    wrong = folder_wrong(whole);
    return wrong ? wrong : access(whole, W_OK | X_OK) ? strerror(errno) : NULL;
}

const char *secure_parent(void) {
    static char whole[PATH_MAX];
    const char *const parents[] = {getenv("TMPDIR"), "/tmp", "/dev/shm"};
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++)
        if (parents[i] && *parents[i] && !secure_parent_wrong(parents[i]) &&
            realpath(parents[i], whole))
            return whole;
    return NULL;
}

bool secure_is_foreign(const char *path) {
    char parent[PATH_MAX];
    struct stat about, folder;
    const char *slash = strrchr(path, '/');
    snprintf(parent, sizeof parent, "%.*s", slash > path ? (int)(slash - path) : 1,
             slash ? path : ".");
    return !lstat(path, &about) && about.st_uid != geteuid() && about.st_uid &&
           !stat(parent, &folder) && folder.st_mode & S_IWOTH;
}

void secure_remove(const char *path) {
    struct stat about;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *inside =
        folder < 0 || fstat(folder, &about) || !is_private(&about) ? NULL : fdopendir(folder);
    for (const struct dirent *entry; inside && (entry = readdir(inside));)
        unlinkat(folder, entry->d_name, 0);
    if (inside)
        closedir(inside);
    else if (folder >= 0)
        close(folder);
    if (inside) rmdir(path);
}

/* A stream of a file that was opened; NULL where none was. */
static FILE *stream_of(int file) {
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream && file >= 0) close(file);
    return stream;
}

FILE *secure_create(const char *path) {
    return stream_of(open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
}

/* ---- outputs ---- */

bool secure_is_descriptor(const char *path) {
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    return !strncmp(path, "/proc/", 6) || !strncmp(path, "/dev/fd/", 8) ||
           !strncmp(target, "/proc/self/fd/", 14);
}

/* Opens what is no plain file for writing, without making it one; -1, and errno. */
static int open_other(const char *path) {
    enum { TRIES = 100 };
    struct stat about;
    int file = -1;
    for (int try = 0;
         try < TRIES && (file = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0 &&
         errno == ENXIO;
         try++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (file >= 0 &&
        (fstat(file, &about) || (S_ISREG(about.st_mode) && !secure_is_descriptor(path)))) {
        close(file);
        errno = EPERM;
        return -1;
    }
    if (file >= 0) fcntl(file, F_SETFL, 0);
    return file;
}

const char *secure_output_wrong(const char *path) {
    static int kept = -1; // so that whoever reads a pipe sees no end before it is written
    struct stat about;
    if (stat(path, &about) || S_ISREG(about.st_mode)) return NULL;
    if (S_ISDIR(about.st_mode)) return "it is a folder";
    if (S_ISSOCK(about.st_mode)) return "it is a socket";
    if (secure_is_foreign(path)) return "it is another user's";
    if (!S_ISFIFO(about.st_mode)) return NULL;
    int file = open_other(path);
    if (file >= 0) kept = file;
    return kept >= 0 && file >= 0 ? NULL
           : errno == ENXIO       ? "it is a pipe that nobody reads"
                                  : strerror(errno);
}

/* Writes all of it, and closes the file. */
static bool put(int file, const char *bytes, size_t size) {
    for (ssize_t part; size; size -= (size_t)part, bytes += part) {
        part = write(file, bytes, size);
        if (part <= 0 && errno != EINTR) {
            int error = errno;
            close(file);
            errno = error;
            return false;
        }
        part = part < 0 ? 0 : part;
    }
    return !close(file);
}

/* Writes a new file beside the path, which takes its name when it is whole. */
static bool replace(const char *path, const char *bytes, size_t size) {
    char fresh[PATH_MAX];
    mode_t mask = umask(0);
    umask(mask);
    if (snprintf(fresh, sizeof fresh, "%s.XXXXXX", path) >= (int)sizeof fresh) {
        errno = ENAMETOOLONG;
        return false;
    }
    int file = mkostemp(fresh, O_CLOEXEC);
    if (file < 0) return false;
    bool good = !fchmod(file, 0666 & ~mask) && put(file, bytes, size) && !rename(fresh, path);
    int error = errno;
    if (!good) unlink(fresh);
    errno = error;
    return good;
}

/* The same while no signal ends the process, that of a file that becomes too large among them. */
static bool replace_whole(const char *path, const char *bytes, size_t size) {
    sigset_t all, had, large;
    sigfillset(&all);
    sigemptyset(&large);
    sigaddset(&large, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &all, &had);
    bool good = replace(path, bytes, size);
    int error = errno;
    sigtimedwait(&large, NULL, &(struct timespec){0});
    sigprocmask(SIG_SETMASK, &had, NULL);
    errno = error;
    return good;
}

bool secure_write(const char *path, const char *bytes, size_t size, const char **why) {
    struct stat about;
    bool other = !stat(path, &about) && (!S_ISREG(about.st_mode) || secure_is_descriptor(path));
    if ((*why = secure_output_wrong(path))) return false;
    int file = other ? open_other(path) : -1;
    bool good = other ? file >= 0 && put(file, bytes, size) : replace_whole(path, bytes, size);
    *why = good ? NULL : strerror(errno);
    return good;
}

FILE *secure_rewrite(const char *path) {
    struct stat about;
    int file = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool plain = file >= 0 && !fstat(file, &about) && S_ISREG(about.st_mode) &&
                 about.st_nlink <= 1 && !ftruncate(file, 0);
    if (plain || file < 0) return stream_of(file);
    close(file);
    errno = EPERM;
    return NULL;
}
