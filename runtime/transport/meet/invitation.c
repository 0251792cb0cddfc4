#define _GNU_SOURCE
#include "transport/meet/invitation.h"

#include <hetu/kernel.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { FORMAT = 2, PATH_SIZE = 1400 };

static const char MAGIC[8] = "hetu-at";

/* What this process wrote. */
static struct {
    char folder[PATH_SIZE]; // "": the user's
    char file[PATH_SIZE];   // "": nothing
} written;

/* ---- any file ---- */

typedef enum Found { FOUND_NONE, FOUND_INVITATION, FOUND_OTHER } Found;

/* Reads a file that this user alone may write. A pipe, which could hold up whoever opens it, and a link are not followed. */
static Found read_file(const char *path, Invitation *invitation)
{
    struct stat about;
    char more;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT || errno == ENOTDIR ? FOUND_NONE : FOUND_OTHER;
    bool good = !fstat(file, &about) && S_ISREG(about.st_mode) && about.st_uid == geteuid() && !(about.st_mode & (S_IRWXG | S_IRWXO));
    good = good && read(file, invitation, sizeof *invitation) == (ssize_t)sizeof *invitation && read(file, &more, 1) == 0;
    close(file);
    return good && !memcmp(invitation->magic, MAGIC, sizeof MAGIC) && invitation->format == FORMAT ? FOUND_INVITATION : FOUND_OTHER;
}

/* Whether the writer of an invitation runs: not when it is gone, waits to be buried, or is stopped. That of another machine does. */
static bool writer_runs(const Invitation *invitation)
{
    char path[64], about[1024] = "";
    if (invitation->node != socket_node())
        return true;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)invitation->process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, about, sizeof about - 1);
    if (file >= 0)
        close(file);
    const char *name_end = length > 0 ? strrchr(about, ')') : NULL;
    return name_end && name_end[1] == ' ' && !strchr("ZXTt", name_end[2]);
}

/* Puts the whole invitation in place at once. */
static void write_file(const char *path, const Invitation *invitation)
{
    char fresh[PATH_SIZE + 32];
    snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid());
    unlink(fresh);
    int file = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0)
        ht_fail("cannot write %s, through which the ranks meet: %s", fresh, strerror(errno));
    bool whole = write(file, invitation, sizeof *invitation) == (ssize_t)sizeof *invitation;
    if (close(file) | !whole || rename(fresh, path)) {
        int error = errno;
        unlink(fresh);
        ht_fail("cannot write %s, through which the ranks meet: %s", path, strerror(error));
    }
}

/* ---- private folders ---- */

static const char *shared_memory(void)
{
    struct stat about;
    return !stat("/dev/shm", &about) && S_ISDIR(about.st_mode) && !access("/dev/shm", W_OK) ? "/dev/shm" : "/tmp";
}

/* Whether a path is a folder that this user alone may enter. */
static bool is_private(const char *path)
{
    struct stat about;
    return !lstat(path, &about) && S_ISDIR(about.st_mode) && about.st_uid == geteuid() && !(about.st_mode & (S_IRWXG | S_IRWXO));
}

/* The file's name in a private folder. */
static void name_file(char *path, const char *folder, const Launch *launch)
{
    snprintf(path, PATH_SIZE, "%.1023s/meeting%s", folder, launch->run);
}

/* Visits the private folders until `visit` returns true; whether it did. */
static bool each_folder(const Launch *launch, bool (*visit)(const Launch *launch, const char *folder, void *argument), void *argument)
{
    char head[64], folder[512];
    bool done = false;
    DIR *top = opendir(shared_memory());
    snprintf(head, sizeof head, "hetu-%d-", (int)geteuid());
    for (const struct dirent *entry; top && !done && (entry = readdir(top));) {
        snprintf(folder, sizeof folder, "%s/%s", shared_memory(), entry->d_name);
        done = !strncmp(entry->d_name, head, strlen(head)) && is_private(folder) && visit(launch, folder, argument);
    }
    if (top)
        closedir(top);
    return done;
}

static bool read_in(const Launch *launch, const char *folder, void *invitation)
{
    char path[PATH_SIZE];
    name_file(path, folder, launch);
    return read_file(path, invitation) == FOUND_INVITATION;
}

/* Removes a folder, and its invitation, when nobody waits there. */
static bool clear_in(const Launch *launch, const char *folder, void *any_run)
{
    Invitation found;
    DIR *inside = opendir(folder);
    char path[PATH_SIZE], wanted[PATH_SIZE];
    name_file(wanted, folder, launch);
    for (const struct dirent *entry; inside && (entry = readdir(inside));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if ((any_run || !strcmp(path, wanted)) && read_file(path, &found) == FOUND_INVITATION && !writer_runs(&found)) {
            unlink(path);
            rmdir(folder);
        }
    }
    if (inside)
        closedir(inside);
    return false;
}

/* A new private folder. Those of runs that were killed are removed first. */
static void make_private(const Launch *launch)
{
    bool any_run = true;
    each_folder(launch, clear_in, &any_run);
    snprintf(written.folder, sizeof written.folder, "%s/hetu-%d-XXXXXX", shared_memory(), (int)geteuid());
    if (!mkdtemp(written.folder)) {
        *written.folder = 0;
        ht_fail("cannot make a folder in %s, where the ranks meet: %s", shared_memory(), strerror(errno));
    }
}

/* ---- the invitation ---- */

_Noreturn static void fail_other(const char *path)
{
    ht_fail(
        "%s, where the ranks are to meet, is there already and is no file of a meeting of this user's; remove it, or set HETU_RENDEZVOUS "
        "to another place",
        path);
}

bool invitation_is_local(const Launch *launch)
{
    static const unsigned long local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC, TMPFS_MAGIC,
                                          RAMFS_MAGIC,      OVERLAYFS_SUPER_MAGIC, F2FS_SUPER_MAGIC};
    char folder[sizeof launch->path];
    struct statfs about;
    if (!*launch->path || launch->one_node)
        return true;
    snprintf(folder, sizeof folder, "%s", launch->path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    if (statfs(slash ? folder : ".", &about))
        return false;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if ((unsigned long)about.f_type == local[i])
            return true;
    return false;
}

void invitation_write(const Launch *launch, const Invitation *invitation)
{
    Invitation whole = *invitation, found;
    char file[PATH_SIZE];
    memcpy(whole.magic, MAGIC, sizeof MAGIC);
    whole.format = FORMAT;
    whole.process = (int32_t)getpid();
    whole.node = socket_node();
    if (*launch->path) {
        if (read_file(launch->path, &found) == FOUND_OTHER)
            fail_other(launch->path);
        snprintf(file, sizeof file, "%s", launch->path);
    } else {
        make_private(launch);
        name_file(file, written.folder, launch);
    }
    memcpy(written.file, file, sizeof file);
    write_file(file, &whole);
}

bool invitation_read(const Launch *launch, Invitation *invitation)
{
    if (!*launch->path)
        return each_folder(launch, read_in, invitation);
    Found found = read_file(launch->path, invitation);
    if (found == FOUND_OTHER)
        fail_other(launch->path);
    return found == FOUND_INVITATION;
}

void invitation_remove(void)
{
    if (*written.file)
        unlink(written.file);
    if (*written.folder)
        rmdir(written.folder);
    *written.file = *written.folder = 0;
}

void invitation_clear(const Launch *launch)
{
    Invitation found;
    if (!*launch->path)
        each_folder(launch, clear_in, NULL);
    else if (read_file(launch->path, &found) == FOUND_INVITATION && !writer_runs(&found))
        unlink(launch->path);
}
