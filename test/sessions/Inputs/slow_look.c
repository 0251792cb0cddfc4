/* Lets time pass after each look at a place, as a busy machine may: lstat() and stat() of
 * ".../meeting" return after a pause. Preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { PAUSE = 300000 }; // nanoseconds

typedef int Look(const char *path, struct stat *about);

static int look_late(const char *name, const char *path, struct stat *about) {
    static const char place[] = "/meeting";
    size_t length = strlen(path);
    int result = ((Look *)dlsym(RTLD_NEXT, name))(path, about);
    if (length >= sizeof place - 1 && !strcmp(path + length - (sizeof place - 1), place))
        nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
    return result;
}

int lstat(const char *path, struct stat *about) { return look_late("lstat", path, about); }
int stat(const char *path, struct stat *about) { return look_late("stat", path, about); }
