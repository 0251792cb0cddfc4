/* Opens and creates files and private folders without following other users' links. */
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

const char *file_kind(mode_t mode) {
    return S_ISREG(mode)    ? NULL
           : S_ISDIR(mode)  ? "it is a folder, and no file"
           : S_ISFIFO(mode) ? "it is a pipe, and no file"
           : S_ISSOCK(mode) ? "it is a socket, and no file"
           : S_ISLNK(mode)  ? "it is a link, and no file"
                            : "it is a device, and no file";
}

/* Returns the reason for an error of open(). Sockets, and links with O_NOFOLLOW, have own texts. */
static const char *open_reason(const char *path, int error) {
    struct stat about;
    bool other = error == ELOOP ? !lstat(path, &about) : error == ENXIO && !stat(path, &about);
    const char *kind = other ? file_kind(about.st_mode) : NULL;
    return kind ? kind : plain_error(error);
}

/* Opens a plain file for reading and sets *about. Returns -1 with the reason on failure. */
static int open_plain(const char *path, int flags, struct stat *about, const char **why) {
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
    if (file < 0) {
        *why = open_reason(path, errno);
        return -1;
    }
    *why = fstat(file, about) ? plain_error(errno) : file_kind(about->st_mode);
    if (!*why) return file;
    close(file);
    return -1;
}

int file_open_input(const char *path, const char **why) {
    struct stat about;
    return open_plain(path, 0, &about, why);
}

int file_open_own(const char *path, const char **why) {
    struct stat about;
    int file = open_plain(path, O_NOFOLLOW, &about, why);
    if (file >= 0 && about.st_uid != geteuid()) *why = "it is another user's";
    else if (file >= 0 && about.st_mode & (S_IWGRP | S_IWOTH)) *why = "other users may write it";
    if (file < 0 || !*why) return file;
    close(file);
    return -1;
}

/* Returns a stream for an open file; NULL if `file` is -1. */
static FILE *stream_of(int file) {
    FILE *stream = file < 0 ? NULL : fdopen(file, "r");
    if (!stream && file >= 0) close(file);
    return stream;
}

FILE *file_read_input(const char *path, const char **why) {
    const char *own;
    return stream_of(file_open_input(path, why ? why : &own));
}

FILE *file_read_own(const char *path, const char **why) {
    const char *own;
    return stream_of(file_open_own(path, why ? why : &own));
}

/* Returns whether another user can have put the entry with status `about` at a path. */
static bool entry_is_foreign(const char *path, const struct stat *about) {
    char parent[PATH_ROOM];
    struct stat folder;
    const char *slash = strrchr(path, '/');
    snprintf(parent, sizeof parent, "%.*s", slash > path ? (int)(slash - path) : 1,
             slash ? path : ".");
    return about->st_uid != geteuid() && !stat(parent, &folder) && about->st_uid != folder.st_uid &&
           folder.st_mode & S_IWOTH;
}

bool folder_is_trusted(const char *path) {
    struct stat about;
    if (lstat(path, &about) || entry_is_foreign(path, &about)) return false;
    return S_ISDIR(about.st_mode) ||
           (S_ISLNK(about.st_mode) && !stat(path, &about) && S_ISDIR(about.st_mode));
}

/* ---- outputs ---- */

int file_create(const char *path) {
    unlink(path);
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

int file_open_made(const char *path) {
    struct stat about;
    int file = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0 || (!fstat(file, &about) && S_ISREG(about.st_mode) && about.st_nlink <= 1))
        return file;
    close(file);
    errno = EPERM;
    return -1;
}

/* ---- folders that are written into ---- */

/* A walk along a path. For "a/../b" in /home, `whole` becomes "/home/a", "/home", "/home/b". */
typedef struct Way {
    char whole[PATH_ROOM]; // the path so far, without links; "": the root
    char rest[PATH_ROOM];
    int links;
    bool foreign; // the path has an entry that another user has made in a world-writable folder
    bool led;     // the path has a link that another user has made in such a folder
    bool looks;   // nothing is created, and every link is followed
} Way;

/* Returns whether the owner is neither this user nor root. */
static bool is_others(const struct stat *about) {
    return about->st_uid != geteuid() && about->st_uid;
}

/* Puts a link's target in front of the rest of the path. Returns 0, or an errno. */
static int take_link(Way *way, const char *link) {
    char target[PATH_ROOM], behind[PATH_ROOM];
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) return errno;
    target[length] = 0;
    memcpy(behind, way->rest, sizeof behind);
    if (*target == '/') *way->whole = 0;
    return snprintf(way->rest, sizeof way->rest, "%s/%s", target, behind) < PATH_ROOM
               ? 0
               : ENAMETOOLONG;
}

/* Enters `name` in the current folder; creates it as a folder if it is missing. Does not follow
 * links that another user may have put there, unless way->looks. Returns 0, or an errno. */
static int take_name(Way *way, const char *name) {
    enum { MOST_LINKS = 40 };
    char next[PATH_ROOM];
    struct stat about, folder;
    if (snprintf(next, sizeof next, "%s/%s", way->whole, name) >= PATH_ROOM) return ENAMETOOLONG;
    if (lstat(next, &about) && (way->looks || errno != ENOENT ||
                                (mkdir(next, 0777) && errno != EEXIST) || lstat(next, &about)))
        return errno;
    if (stat(*way->whole ? way->whole : "/", &folder)) return errno;
    way->foreign |= is_others(&about) && folder.st_mode & S_IWOTH;
    bool link = S_ISLNK(about.st_mode);
    way->led |= link && way->foreign && is_others(&about);
    if (link)
        return ++way->links > MOST_LINKS || (way->led && !way->looks) ? ELOOP
                                                                      : take_link(way, next);
    memcpy(way->whole, next, sizeof next);
    return 0;
}

/* Moves the next component of way->rest to way->whole. Returns 0, or an errno. */
static int take_step(Way *way) {
    char name[PATH_ROOM];
    size_t skipped = strspn(way->rest, "/"), length = strcspn(way->rest + skipped, "/");
    memcpy(name, way->rest + skipped, length);
    name[length] = 0;
    memmove(way->rest, way->rest + skipped + length, strlen(way->rest + skipped + length) + 1);
    if (!strcmp(name, "..") && *way->whole) *strrchr(way->whole, '/') = 0;
    return strcmp(name, "..") && strcmp(name, ".") && *name ? take_name(way, name) : 0;
}

/* Walks along a path, and creates missing folders unless `looks`. Returns 0, or an errno. */
static int take_path(Way *way, const char *path, bool looks) {
    char here[PATH_ROOM];
    int error = 0;
    if (!*path) return ENOENT;
    if (*path != '/' && !getcwd(here, sizeof here)) return errno;
    *way = (Way){.whole = "", .looks = looks};
    if (snprintf(way->rest, sizeof way->rest, "%s/%s", *path == '/' ? "" : here, path) >= PATH_ROOM)
        return ENAMETOOLONG;
    while (!error && *way->rest) error = take_step(way);
    return error;
}

bool file_is_led(const char *path) {
    struct stat program, about;
    Way way;
    bool there = !take_path(&way, path, true) && !stat(*way.whole ? way.whole : "/", &about);
    bool same = there && !stat("/proc/self/exe", &program) && program.st_uid == about.st_uid;
    return !there || (way.foreign && !same);
}

/* Returns whether another user's link leads to the folder of `path`. */
static bool parent_is_led(const char *path) {
    char parent[PATH_ROOM];
    Way way;
    const char *slash = strrchr(path, '/');
    snprintf(parent, sizeof parent, "%.*s", slash > path ? (int)(slash - path) : 1,
             slash ? path : ".");
    take_path(&way, parent, true);
    return way.led;
}

FILE *file_create_beside(const char *path, char **name) {
    mode_t mask = umask(0);
    umask(mask);
    *name = NULL;
    if (parent_is_led(path)) {
        errno = ELOOP;
        return NULL;
    }
    if (asprintf(name, "%s.XXXXXX", path) < 0) {
        *name = NULL;
        return NULL;
    }
    int file = mkostemp(*name, O_CLOEXEC), error = errno;
    FILE *stream = file < 0 || fchmod(file, 0666 & ~mask) ? NULL : fdopen(file, "w");
    if (stream) return stream;
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

int folder_open(OpenFolder *folder, const char *path) {
    char opened[PATH_ROOM];
    Way way;
    int error = take_path(&way, path, false);
    const char *whole = way.whole;
    folder->file = error ? -1 : open(*whole ? whole : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->file < 0) return error ? error : errno;
    snprintf(folder->path, sizeof folder->path, "/proc/self/fd/%d", folder->file);
    ssize_t length = readlink(folder->path, opened, sizeof opened - 1);
    if (length < 0) // /proc is not mounted
        snprintf(folder->path, sizeof folder->path, "%s", path);
    bool other = length >= 0 && (strncmp(opened, *whole ? whole : "/", (size_t)length) ||
                                 (*whole && whole[length]));
    if (other) folder_close(folder);
    return other ? ELOOP : 0;
}

int folder_make(OpenFolder *folder, const OpenFolder *in, const char *name) {
    folder->file = mkdirat(in->file, name, 0777)
                       ? -1
                       : openat(in->file, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder->file < 0) return errno;
    if (access("/proc/self/fd", X_OK))
        snprintf(folder->path, sizeof folder->path, "%.2048s/%.255s", in->path, name);
    else snprintf(folder->path, sizeof folder->path, "/proc/self/fd/%d", folder->file);
    return 0;
}

void folder_close(OpenFolder *folder) {
    if (folder->file >= 0) close(folder->file);
    folder->file = -1;
}

const char *folder_error(int error) {
    return error == ELOOP ? "another user's link leads there, or one to itself"
                          : plain_error(error);
}

void file_size_errors(void) {
    sigset_t size;
    sigemptyset(&size);
    sigaddset(&size, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &size, NULL);
}

/* ---- folders of this user alone ---- */

static bool is_private(const struct stat *about) {
    return S_ISDIR(about->st_mode) && about->st_uid == geteuid() && !(about->st_mode & OTHERS);
}

bool private_is(const char *path) {
    struct stat about;
    return !lstat(path, &about) && is_private(&about);
}

int private_make(char *path, size_t room, const char *parent, const char *head) {
    if (snprintf(path, room, "%s/%s.XXXXXX", parent, head) >= (int)room) return ENAMETOOLONG;
    return mkdtemp(path) ? 0 : errno;
}

/* Removes the contents of an open folder, down to `depth` levels of subfolders, and closes it. */
static void empty(int folder, int depth) {
    DIR *inside = fdopendir(folder);
    for (const struct dirent *entry; inside && (entry = readdir(inside));) {
        bool itself = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
        if (itself || !unlinkat(folder, entry->d_name, 0) || !depth) continue;
        int inner = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0) empty(inner, depth - 1);
        unlinkat(folder, entry->d_name, AT_REMOVEDIR);
    }
    if (inside) closedir(inside);
    else close(folder);
}

void private_remove(const char *path) {
    enum { DEPTH = 4 };
    struct stat about;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool own = folder >= 0 && !fstat(folder, &about) && is_private(&about);
    if (own) empty(folder, DEPTH);
    else if (folder >= 0) close(folder);
    if (own) rmdir(path);
    else unlink(path);
}

/* Returns whether only this user and root can replace entries that this user makes in a folder. */
static bool keeps_own(const char *folder) {
    enum { NOBODY = 65534 }; // owner that a container shows for unknown users
    struct stat about;
    if (stat(folder, &about) || !S_ISDIR(about.st_mode)) return false;
    bool trusted = about.st_uid == geteuid() || about.st_uid == 0 || about.st_uid == NOBODY;
    return trusted && (!(about.st_mode & S_IWOTH) || about.st_mode & S_ISVTX);
}

char *private_parent(const char *parent) {
    char *whole = realpath(parent, NULL);
    bool safe = whole && keeps_own("/") && !access(whole, W_OK | X_OK);
    for (char *slash = whole; safe && (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        safe = keeps_own(whole);
        *slash = '/';
    }
    if (safe && keeps_own(whole)) return whole;
    free(whole);
    return NULL;
}

void private_sweep(const char *parent, const char *head, bool (*dead)(const char *mark)) {
    char path[PATH_ROOM];
    DIR *top = opendir(parent);
    for (const struct dirent *entry; top && (entry = readdir(top));)
        if (!strncmp(entry->d_name, head, strlen(head)) && dead(entry->d_name + strlen(head)) &&
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < (int)sizeof path)
            private_remove(path);
    if (top) closedir(top);
}

/* ---- this process's private folder ---- */

static struct {
    pid_t process;        // process that made the folder; a forked child does not own the folder
    char path[PATH_ROOM]; // "": there is no folder
} own;

/* Removes dead processes' folders in `parent`, and creates own.path. Returns 0 or an errno. */
static int make_own(const char *parent, uint64_t node, bool (*dead)(const char *mark)) {
    char head[64];
    size_t length = (size_t)snprintf(head, sizeof head, "hetu-%d-", (int)geteuid());
    private_sweep(parent, head, dead);
    snprintf(head + length, sizeof head - length, "%016" PRIx64 ".%d", node, (int)getpid());
    int error = private_make(own.path, sizeof own.path, parent, head);
    own.process = getpid();
    if (error) own.path[0] = 0;
    return error;
}

/* Creates the folder in the first of TMPDIR, /tmp and /dev/shm where no other user can replace it.
 * Returns why there is none; NULL: it was created. */
static const char *make_anywhere(uint64_t node, bool (*dead)(const char *mark)) {
    const char *const parents[] = {getenv("TMPDIR"), "/tmp", "/dev/shm"};
    const char *why = "neither TMPDIR nor /tmp is a folder in which other users cannot change what "
                      "is made (chmod +t)";
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
        char *parent = parents[i] && *parents[i] ? private_parent(parents[i]) : NULL;
        int error = parent ? make_own(parent, node, dead) : EACCES;
        why = !error ? NULL : parent ? plain_error(error) : why;
        free(parent);
        if (!error) return NULL;
    }
    return why;
}

char *private_path(const char *name, uint64_t node, bool (*dead)(const char *mark),
                   const char **why) {
    char *path = NULL;
    *why = *own.path && own.process == getpid() ? NULL : make_anywhere(node, dead);
    if (!*why && asprintf(&path, "%s/%s", own.path, name) < 0) {
        *why = plain_error(ENOMEM);
        return NULL;
    }
    return path;
}

void private_close(void) {
    if (*own.path && own.process == getpid()) private_remove(own.path);
    own.path[0] = 0;
}
