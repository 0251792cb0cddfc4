/* Preloaded into ranks: rank 0 sends itself a signal when it has made so many changes to folders; TEST_HALT is "CHANGES SIGNAL". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count_change(void)
{
    static int changes;
    int last, number;
    const char *chosen = getenv("HETU_RANK"), *rank = chosen ? chosen : getenv("RANK"), *halt = getenv("TEST_HALT");
    if (rank && halt && !strcmp(rank, "0") && sscanf(halt, "%d %d", &last, &number) == 2 && ++changes == last)
        raise(number);
}

/* A function of the C library that changes a folder. */
#define CHANGE(TYPE, NAME, PARAMETERS, ARGUMENTS)                                                                                          \
    TYPE NAME PARAMETERS                                                                                                                   \
    {                                                                                                                                      \
        TYPE(*real) PARAMETERS = (TYPE(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME);                                                              \
        TYPE result = real ARGUMENTS;                                                                                                      \
        count_change();                                                                                                                    \
        return result;                                                                                                                     \
    }

CHANGE(char *, mkdtemp, (char *path), (path))
CHANGE(int, rename, (const char *from, const char *to), (from, to))
CHANGE(int, unlink, (const char *path), (path))
CHANGE(int, rmdir, (const char *path), (path))

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    int file = real(path, flags, mode);
    if (flags & O_CREAT)
        count_change();
    return file;
}
