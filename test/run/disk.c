/* A disk that is slow or full, in front of a checkpoint's files: a library to preload.
 *
 *     DISK_SYNC=3 mpirun -x LD_PRELOAD=disk.so -x DISK_SYNC ... program      every fsync takes 3 s
 *     DISK_FULL=2 mpirun -x LD_PRELOAD=disk.so -x DISK_FULL ... program      rank 2's writes find no space, and the others begin 50 ms later
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int (*real_fsync)(int);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int full = -1, rank;
static double sync_seconds;

__attribute__((constructor)) static void begin(void)
{
    const char *given = getenv("DISK_FULL"), *mine = getenv("OMPI_COMM_WORLD_RANK"), *seconds = getenv("DISK_SYNC");
    *(void **)&real_fsync = dlsym(RTLD_NEXT, "fsync");
    *(void **)&real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    full = given ? atoi(given) : -1;
    rank = mine ? atoi(mine) : 0;
    sync_seconds = seconds ? atof(seconds) : 0;
}

static void rest(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    while (nanosleep(&time, &time) && errno == EINTR)
        ;
}

int fsync(int file)
{
    rest(sync_seconds);
    return real_fsync(file);
}

ssize_t pwrite(int file, const void *from, size_t bytes, off_t at)
{
    if (full == rank) {
        errno = ENOSPC;
        return -1;
    }
    rest(full < 0 ? 0 : 0.05);
    return real_pwrite(file, from, bytes, at);
}
