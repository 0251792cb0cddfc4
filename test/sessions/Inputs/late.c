/* Preloaded into ranks: open() of a file that is not there says so only when it has appeared, as
 * for a process that the machine holds up in between. TEST_LATE names the file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NAPS = 5000 }; // of a millisecond

int open(const char *path, int flags, ...) {
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    const char *late = getenv("TEST_LATE");
    va_list more;
    va_start(more, flags);
    int file = real(path, flags, flags & O_CREAT ? va_arg(more, int) : 0);
    va_end(more);
    if (file >= 0 || errno != ENOENT || !late || strcmp(path, late)) return file;
    for (int i = 0; i < NAPS && access(path, F_OK); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    errno = ENOENT;
    return -1;
}
