/* Decides where the rendezvous file is, and which files are trusted. */
#include "transport/meet/rendezvous_file.h"

#include "base/files.h"
#include "base/c_locale.h"

#include <hetu/kernel.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { FORMAT = 2, PATH_SIZE = 1400, HEAD_SIZE = 32 };

static const char MAGIC[8] = "hetu-at";

/* Mark in names of folders and unfinished files: the maker's NODE.PROCESS, to find dead makers. */
#define MARK "%016" PRIx64 ".%d"
#define SCAN_MARK "%16" SCNx64 ".%d"

/* The file that this process wrote. */
static struct {
    pthread_mutex_t lock;   // held to write or remove the file; rendezvous_file_abandon keeps it
    char folder[PATH_SIZE]; // private folder of the file; "": the file is at the user's path
    char file[PATH_SIZE];   // path of the file; "": there is no file
    dev_t device;           // `device` and `inode` tell the file from a later one at its path
    ino_t inode;
} written = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

/* ---- any file ---- */

typedef enum Found {
    FOUND_NONE,   // nothing, or a file that is just being replaced
    FOUND_RECORD, // a rendezvous file of this user
    FOUND_OTHER,  // another file, or a folder, of this user
    FOUND_FOREIGN // another user's file
} Found;

/* Returns what is at a path whose open() failed with `error`. Returns FOUND_NONE if the path may be
 * opened now, since another process may have replaced the file. */
static Found find_unopened(const char *path, int error) {
    struct stat about;
    bool told = error == ELOOP || error == ENXIO || error == EACCES || error == EPERM;
    if (!told || lstat(path, &about)) return FOUND_NONE;
    if (about.st_uid != geteuid()) return FOUND_FOREIGN;
    return S_ISREG(about.st_mode) && about.st_mode & S_IRUSR ? FOUND_NONE : FOUND_OTHER;
}

/* Reads an open file. Returns 1 for a whole record, 0 if the file has another size, -1 if it cannot
 * be read, such as a file of a network file system that was replaced. */
static int read_whole(int file, RendezvousFile *record) {
    char more;
    ssize_t bytes = read(file, record, sizeof *record);
    ssize_t rest = bytes == (ssize_t)sizeof *record ? read(file, &more, 1) : 0;
    return bytes < 0 || rest < 0 ? -1 : bytes == (ssize_t)sizeof *record && !rest;
}

/* Reads a file that only this user may access. Follows no link and does not block on pipes. This
 * user's file with a second hard link (by another user) is FOUND_FOREIGN unless it is a record. */
static Found read_file(const char *path, RendezvousFile *record) {
    struct stat about;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), whole = 0;
    if (file < 0) return find_unopened(path, errno);
    bool known = !fstat(file, &about), own = known && about.st_uid == geteuid();
    if (own && S_ISREG(about.st_mode) && !(about.st_mode & (S_IRWXG | S_IRWXO)))
        whole = read_whole(file, record);
    close(file);
    if (!known || whole < 0) return FOUND_NONE;
    if (whole && !memcmp(record->magic, MAGIC, sizeof MAGIC) && record->format == FORMAT)
        return FOUND_RECORD;
    return own && (S_ISDIR(about.st_mode) || about.st_nlink == 1) ? FOUND_OTHER : FOUND_FOREIGN;
}

/* Returns whether a process ran on this machine and is dead. */
static bool is_dead(uint64_t node, int process) {
    return node == socket_node() && !peers_process_lives(process);
}

bool rendezvous_file_of_dead(const char *mark) {
    uint64_t node;
    int process;
    return sscanf(mark, SCAN_MARK, &node, &process) == 2 && is_dead(node, process);
}

/* Writes the rendezvous file under a random name and renames it to `path`. Returns false and sets
 * errno if the file cannot be made, or the path is taken by something that cannot be replaced. */
static bool write_file(const char *path, const RendezvousFile *record) {
    char fresh[PATH_SIZE + 64];
    snprintf(fresh, sizeof fresh, "%s." MARK ".XXXXXX", path, socket_node(), (int)getpid());
    int file = mkostemp(fresh, O_CLOEXEC);
    if (file < 0) return false;
    struct stat about = {0};
    bool whole = write(file, record, sizeof *record) == (ssize_t)sizeof *record;
    whole = !fstat(file, &about) && whole;
    written.device = about.st_dev;
    written.inode = about.st_ino;
    bool good = !close(file) && whole;
    if (good && !rename(fresh, path)) return true;
    int error = errno ? errno : ENOSPC;
    unlink(fresh);
    errno = error;
    return false;
}

/* ---- private folders ---- */

/* Parents of private folders, in the order in which write_private tries them. */
static const char *const parents[] = {"/dev/shm", "/tmp"};

enum { PARENTS = sizeof parents / sizeof *parents };

/* Writes the beginning of the names of this user's private folders to `head`: "hetu-1000-". */
static void name_head(char *head, size_t size) { snprintf(head, size, "hetu-%d-", (int)geteuid()); }

/* Writes the path of the rendezvous file in a private folder to `path`. */
static void name_file(char *path, const char *folder, const Launch *launch) {
    snprintf(path, PATH_SIZE, "%.1023s/meeting%s", folder, launch->run);
}

static bool is_before(const struct timespec *one, const struct timespec *other) {
    return one->tv_sec != other->tv_sec ? one->tv_sec < other->tv_sec
                                        : one->tv_nsec < other->tv_nsec;
}

/* Reads this run's newest rendezvous file in the private folders PARENT/HEAD...; false: no file. */
static bool read_private(const Launch *launch, const char *parent, const char *head,
                         RendezvousFile *record) {
    char folder[PATH_SIZE], path[PATH_SIZE];
    struct timespec newest = {0};
    bool done = false;
    DIR *top = opendir(parent);
    for (const struct dirent *entry; top && (entry = readdir(top));) {
        RendezvousFile found;
        struct stat about;
        snprintf(folder, sizeof folder, "%.1023s/%s", parent, entry->d_name);
        name_file(path, folder, launch);
        if (strncmp(entry->d_name, head, strlen(head)) || !private_is(folder) ||
            stat(path, &about) || (done && is_before(&about.st_mtim, &newest)) ||
            read_file(path, &found) != FOUND_RECORD)
            continue;
        *record = found;
        newest = about.st_mtim;
        done = true;
    }
    if (top) closedir(top);
    return done;
}

/* Writes the rendezvous file to a new private folder PARENT/HEAD...; returns 0, or an errno. */
static int write_inside(const char *parent, const char *head, const Launch *launch,
                        const RendezvousFile *record) {
    char marked[PATH_SIZE];
    snprintf(marked, sizeof marked, "%s" MARK, head, socket_node(), (int)getpid());
    int error = private_make(written.folder, sizeof written.folder, parent, marked);
    if (!error) {
        name_file(written.file, written.folder, launch);
        error = write_file(written.file, record) ? 0 : errno;
        if (error) rmdir(written.folder);
    }
    if (error) *written.file = *written.folder = 0;
    return error;
}

/* ---- files of dead processes ---- */

/* Writes the folder of the user's path to `folder`; returns the name of the file in it. */
static const char *split_path(const Launch *launch, char *folder, size_t size) {
    const char *slash = strrchr(launch->path, '/');
    snprintf(folder, size, "%.*s", slash > launch->path ? (int)(slash - launch->path) : 1,
             slash ? launch->path : ".");
    return slash ? slash + 1 : launch->path;
}

/* Writes where private folders beside the user's path NAME are: in `folder`, with names that begin
 * with `head`, "NAME+". The ranks meet in one if another user's file is at the path. */
static void split_beside(const Launch *launch, char *folder, char *head, size_t size) {
    snprintf(head, size, "%s+", split_path(launch, folder, size - 1));
}

/* Removes dead processes' files and folders where this run's rendezvous file may be. */
static void clear(const Launch *launch) {
    RendezvousFile found;
    char folder[sizeof launch->path], head[sizeof launch->path + 1];
    if (*launch->path) {
        snprintf(head, sizeof head, "%s.", split_path(launch, folder, sizeof folder));
        private_sweep(folder, head, rendezvous_file_of_dead);
        split_beside(launch, folder, head, sizeof head);
        private_sweep(folder, head, rendezvous_file_of_dead);
        if (read_file(launch->path, &found) == FOUND_RECORD && is_dead(found.node, found.process))
            unlink(launch->path);
    } else {
        name_head(head, sizeof head);
        for (int p = 0; p < PARENTS; p++) private_sweep(parents[p], head, rendezvous_file_of_dead);
    }
}

/* ---- the rendezvous file ---- */

_Noreturn static void fail_other(const char *path) {
    ht_fail("%s, where the ranks are to meet, is there already and is no file of a meeting of this "
            "user's; remove it, or set HETU_RENDEZVOUS "
            "to another place",
            path);
}

bool rendezvous_file_is_local(const Launch *launch) {
    static const unsigned long local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                          TMPFS_MAGIC,      RAMFS_MAGIC,     OVERLAYFS_SUPER_MAGIC,
                                          F2FS_SUPER_MAGIC};
    char folder[sizeof launch->path];
    struct statfs about;
    if (!*launch->path || launch->one_node) return true;
    if (launch->spread) return false; // hosts may share a disk, and the file system does not say so
    split_path(launch, folder, sizeof folder);
    if (statfs(folder, &about)) return false;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if ((unsigned long)about.f_type == local[i]) return true;
    return false;
}

/* Writes the file to the user's path. Returns false if it cannot, or another user has a file. */
static bool write_chosen(const Launch *launch, const RendezvousFile *record) {
    RendezvousFile found;
    Found there = read_file(launch->path, &found);
    if (there == FOUND_OTHER) fail_other(launch->path);
    snprintf(written.file, sizeof written.file, "%s", launch->path);
    if (there != FOUND_FOREIGN && write_file(launch->path, record)) return true;
    *written.file = 0;
    return false;
}

static void write_private(const Launch *launch, const RendezvousFile *record) {
    char folder[sizeof launch->path + 1], head[sizeof launch->path + 1];
    int error = ENOENT;
    name_head(head, sizeof head);
    if (*launch->path) {
        split_beside(launch, folder, head, sizeof head);
        error = write_inside(folder, head, launch, record);
    }
    for (int p = 0; p < PARENTS && error && !*launch->path; p++)
        error = write_inside(parents[p], head, launch, record);
    if (error)
        ht_fail("cannot write a file in %s, through which the ranks meet: %s; HETU_RENDEZVOUS "
                "names another place",
                *launch->path ? folder : "/dev/shm or /tmp", plain_error(error));
}

void rendezvous_file_write(const Launch *launch, const RendezvousFile *record) {
    RendezvousFile whole = *record;
    memcpy(whole.magic, MAGIC, sizeof MAGIC);
    whole.format = FORMAT;
    whole.process = (int32_t)getpid();
    whole.node = socket_node();
    pthread_mutex_lock(&written.lock);
    clear(launch);
    if (!*launch->path || !write_chosen(launch, &whole)) write_private(launch, &whole);
    pthread_mutex_unlock(&written.lock);
}

bool rendezvous_file_read(const Launch *launch, RendezvousFile *record) {
    char folder[sizeof launch->path + 1], head[sizeof launch->path + 1];
    name_head(head, sizeof head);
    bool found_private = false;
    for (int p = 0; p < PARENTS && !*launch->path && !found_private; p++)
        found_private = read_private(launch, parents[p], head, record);
    if (!*launch->path) return found_private;
    Found found = read_file(launch->path, record);
    if (found == FOUND_OTHER) fail_other(launch->path);
    split_beside(launch, folder, head, sizeof head);
    return found == FOUND_RECORD || read_private(launch, folder, head, record);
}

void rendezvous_file_keep(const Launch *launch, const RendezvousFile *record) {
    struct stat about;
    pthread_mutex_lock(&written.lock);
    if (*written.file && lstat(written.file, &about) && (errno == ENOENT || errno == ENOTDIR)) {
        rendezvous_file_remove();
        rendezvous_file_write(launch, record);
    }
    pthread_mutex_unlock(&written.lock);
}

/* Returns whether the file at the path is what this process wrote, not replaced by a later run. */
static bool is_written(void) {
    struct stat about;
    return *written.file && !lstat(written.file, &about) && about.st_dev == written.device &&
           about.st_ino == written.inode;
}

void rendezvous_file_remove(void) {
    pthread_mutex_lock(&written.lock);
    if (is_written()) unlink(written.file);
    if (*written.folder) rmdir(written.folder);
    *written.file = *written.folder = 0;
    pthread_mutex_unlock(&written.lock);
}

void rendezvous_file_abandon(const Launch *launch) {
    pthread_mutex_lock(&written.lock);
    rendezvous_file_remove();
    clear(launch);
}
