#define _GNU_SOURCE
#include "support/secure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_private(const struct stat *about)
{
    return S_ISDIR(about->st_mode) && about->st_uid == geteuid() && !(about->st_mode & (S_IRWXG | S_IRWXO));
}

bool secure_is_private(const char *path)
{
    struct stat about;
    return !lstat(path, &about) && is_private(&about);
}

const char *secure_parent_wrong(const char *parent)
{
    enum { NOBODY = 65534 }; // whom a container shows where it does not know the owner
    struct stat about;
    if (stat(parent, &about))
        return strerror(errno);
    if (!S_ISDIR(about.st_mode))
        return "it is no folder";
    if (about.st_uid != geteuid() && about.st_uid && about.st_uid != NOBODY)
        return "it is another user's, who can change what is made there";
    if (about.st_mode & S_IWOTH && !(about.st_mode & S_ISVTX))
        return "all users may change what is made there (chmod +t)";
    return access(parent, W_OK | X_OK) ? strerror(errno) : NULL;
}

const char *secure_parent(void)
{
    const char *const parents[] = {getenv("TMPDIR"), "/tmp", "/dev/shm"};
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++)
        if (parents[i] && *parents[i] && !secure_parent_wrong(parents[i]))
            return parents[i];
    return NULL;
}

void secure_remove(const char *path)
{
    struct stat about;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *inside = folder < 0 || fstat(folder, &about) || !is_private(&about) ? NULL : fdopendir(folder);
    for (const struct dirent *entry; inside && (entry = readdir(inside));)
        unlinkat(folder, entry->d_name, 0);
    if (inside)
        closedir(inside);
    else if (folder >= 0)
        close(folder);
    if (inside)
        rmdir(path);
}

/* A stream of a file that was opened; NULL where none was. */
static FILE *stream_of(int file)
{
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream && file >= 0)
        close(file);
    return stream;
}

FILE *secure_create(const char *path) { return stream_of(open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)); }

FILE *secure_rewrite(const char *path)
{
    struct stat about;
    int file = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool plain = file >= 0 && !fstat(file, &about) && S_ISREG(about.st_mode) && about.st_nlink <= 1 && !ftruncate(file, 0);
    if (plain || file < 0)
        return stream_of(file);
    close(file);
    errno = EPERM;
    return NULL;
}
