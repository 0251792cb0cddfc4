/* Refuses paths that another user could have led elsewhere (symbolic links, /tmp). */
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

static const char LED[] = "another user's link leads there, or one to itself";

static bool is_private(const struct stat *about) {
    return S_ISDIR(about->st_mode) && about->st_uid == geteuid() &&
           !(about->st_mode & (S_IRWXG | S_IRWXO));
}

bool secure_is_private(const char *path) {
    struct stat about;
    return !lstat(path, &about) && is_private(&about);
}

/* Returns why other users could replace files in this one folder; NULL: they cannot. */
static const char *folder_wrong(const char *folder) {
    enum { NOBODY = 65534 }; // the owner that a container shows for unknown users
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

/* Sets `parent` to the folder of a path: "." when the path names no folder. */
static void parent_of(char *parent, size_t room, const char *path) {
    const char *slash = strrchr(path, '/');
    snprintf(parent, room, "%.*s", slash > path ? (int)(slash - path) : 1, slash ? path : ".");
}

static bool is_others(const struct stat *about) {
    return about->st_uid != geteuid() && about->st_uid;
}

bool secure_is_foreign(const char *path) {
    char parent[PATH_MAX];
    struct stat about, folder;
    parent_of(parent, sizeof parent, path);
    bool own = !lstat(path, &about) && !is_others(&about);
    return !own && !stat(parent, &folder) && folder.st_mode & S_IWOTH;
}

/* The state of resolving a path, name by name. */
typedef struct Way {
    char whole[PATH_MAX]; // the resolved part, without links; "": the root
    char rest[PATH_MAX];  // the part that is not resolved yet
    int links;            // number of links met so far
    bool foreign; // another user can have created a resolved name, in a folder where all may write
} Way;

/* Puts the target of a link in front of way->rest. Returns false, with errno set, on failure. */
static bool take_link(Way *way, const char *link) {
    char target[PATH_MAX], behind[PATH_MAX];
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) return false;
    target[length] = 0;
    memcpy(behind, way->rest, sizeof behind);
    if (*target == '/') *way->whole = 0;
    errno = ENAMETOOLONG;
    return snprintf(way->rest, sizeof way->rest, "%s/%s", target, behind) < PATH_MAX;
}

/* Resolves a name in the folder way->whole. Returns false, with errno set, on failure. */
static bool take_name(Way *way, const char *name) {
    enum { MOST_LINKS = 40 };
    char next[PATH_MAX];
    struct stat about;
    errno = ENAMETOOLONG;
    if (snprintf(next, sizeof next, "%s/%s", way->whole, name) >= PATH_MAX) return false;
    way->foreign |= secure_is_foreign(next);
    if (lstat(next, &about)) return false;
    if (S_ISLNK(about.st_mode)) {
        bool led = ++way->links > MOST_LINKS || (way->foreign && is_others(&about));
        errno = ELOOP;
        return !led && take_link(way, next);
    }
    memcpy(way->whole, next, sizeof next);
    return true;
}

/* Resolves a path. Returns false, with errno set, on failure: ELOOP for another user's link. */
static bool take_path(Way *way, const char *path) {
    char here[PATH_MAX] = "", name[PATH_MAX];
    *way = (Way){.whole = ""};
    if (*path != '/' && !getcwd(here, sizeof here)) return false;
    errno = ENAMETOOLONG;
    bool good = snprintf(way->rest, sizeof way->rest, "%s/%s", here, path) < PATH_MAX;
    while (good && *way->rest) {
        size_t skipped = strspn(way->rest, "/"), length = strcspn(way->rest + skipped, "/");
        memcpy(name, way->rest + skipped, length);
        name[length] = 0;
        memmove(way->rest, way->rest + skipped + length, strlen(way->rest + skipped + length) + 1);
        if (!strcmp(name, "..") && *way->whole) *strrchr(way->whole, '/') = 0;
        good = !*name || !strcmp(name, ".") || !strcmp(name, "..") || take_name(way, name);
    }
    return good;
}

bool secure_is_led(const char *path) {
    Way way;
    return !take_path(&way, path) && errno == ELOOP;
}

int secure_enter(const char *folder, char *inside, size_t room, const char **why) {
    char opened[PATH_MAX];
    Way way;
    bool good = take_path(&way, folder);
    const char *whole = *way.whole ? way.whole : "/";
    int file = good ? open(whole, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    *why = file >= 0 ? NULL : errno == ELOOP ? LED : strerror(errno);
    if (file < 0) return -1;
    snprintf(inside, room, "/proc/self/fd/%d", file);
    ssize_t length = readlink(inside, opened, sizeof opened - 1);
    if (length < 0) snprintf(inside, room, "%s", whole); // there is no /proc
    opened[length < 0 ? 0 : length] = 0;
    if (length < 0 || !strcmp(opened, whole)) return file;
    *why = LED;
    close(file);
    return -1;
}

bool secure_permit(const char *path, unsigned mode) {
    struct stat about;
    int file = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    errno = file < 0 ? errno : EPERM;
    bool good = file >= 0 && !fstat(file, &about) && S_ISREG(about.st_mode) &&
                about.st_nlink <= 1 && !fchmod(file, (mode_t)mode);
    if (file >= 0) close(file);
    return good;
}

void secure_remove(const char *path) {
    struct stat about;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *inside =
        folder < 0 || fstat(folder, &about) || !is_private(&about) ? NULL : fdopendir(folder);
    for (const struct dirent *entry; inside && (entry = readdir(inside));)
        unlinkat(folder, entry->d_name, 0);
    if (inside) closedir(inside);
    else if (folder >= 0) close(folder);
    if (inside) rmdir(path);
}

/* Returns a stream for a descriptor; NULL for -1. */
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

/* Opens an existing output that is not a plain file; waits up to a second for a pipe's reader.
 * Returns a descriptor, or -1 with errno set. */
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
    static int kept = -1; // keeps a pipe open, so that its reader sees no end of file too early
    struct stat about;
    char parent[PATH_MAX];
    parent_of(parent, sizeof parent, path);
    if (secure_is_led(parent)) return LED;
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

/* Writes all bytes and closes the file. Returns false, with errno set, on failure. */
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

/* Writes a new file in the folder `inside`, then renames it to `name`; false with errno set. */
static bool replace(const char *inside, const char *name, const char *bytes, size_t size) {
    char path[PATH_MAX], fresh[PATH_MAX];
    mode_t mask = umask(0);
    umask(mask);
    if (snprintf(path, sizeof path, "%s/%s", inside, name) >= (int)sizeof path ||
        snprintf(fresh, sizeof fresh, "%.4080s.XXXXXX", path) >= (int)sizeof fresh) {
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

/* Replaces a file with all signals blocked, also SIGXFSZ (file too large); false with *why set. */
static bool replace_whole(const char *path, const char *bytes, size_t size, const char **why) {
    sigset_t all, had, large;
    char parent[PATH_MAX], inside[PATH_MAX];
    const char *slash = strrchr(path, '/');
    parent_of(parent, sizeof parent, path);
    int folder = secure_enter(parent, inside, sizeof inside, why);
    if (folder < 0) return false;
    sigfillset(&all);
    sigemptyset(&large);
    sigaddset(&large, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &all, &had);
    bool good = replace(inside, slash ? slash + 1 : path, bytes, size);
    int error = errno;
    sigtimedwait(&large, NULL, &(struct timespec){0});
    sigprocmask(SIG_SETMASK, &had, NULL);
    close(folder);
    *why = good ? NULL : strerror(error);
    return good;
}

bool secure_write(const char *path, const char *bytes, size_t size, const char **why) {
    struct stat about;
    bool other = !stat(path, &about) && (!S_ISREG(about.st_mode) || secure_is_descriptor(path));
    if ((*why = secure_output_wrong(path))) return false;
    if (!other) return replace_whole(path, bytes, size, why);
    int file = open_other(path);
    bool good = file >= 0 && put(file, bytes, size);
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
