#define _GNU_SOURCE
#include "comm/peers.h"

#include "comm/launcher.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ENVIRONMENT = 1 << 18 }; // bytes

/* The bytes of a file of /proc/PID, terminated by a null byte; how many, or -1. */
static ssize_t read_about(const char *pid, const char *name, char *to, size_t size)
{
    char path[64];
    ssize_t length = 0, got = 1;
    snprintf(path, sizeof path, "/proc/%.20s/%s", pid, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && got > 0 && length < (ssize_t)size - 1)
        length += (got = read(file, to + length, size - 1 - (size_t)length)) > 0 ? got : 0;
    if (file >= 0)
        close(file);
    to[length] = 0;
    return file < 0 || got < 0 ? -1 : length;
}

/* Whether a process is stopped: the letter behind its name, which may hold anything, in /proc/PID/stat. */
static bool is_stopped(const char *pid)
{
    char about[1024];
    const char *name_end = read_about(pid, "stat", about, sizeof about) > 0 ? strrchr(about, ')') : NULL;
    return name_end && name_end[1] == ' ' && (name_end[2] == 'T' || name_end[2] == 't');
}

int peers_end_stopped(char *list, size_t size)
{
    int count = 0, rank;
    char *environment = malloc(MOST_ENVIRONMENT);
    DIR *processes = opendir("/proc");
    *list = 0;
    for (const struct dirent *entry; environment && processes && (entry = readdir(processes));) {
        const char *pid = entry->d_name;
        if (*pid < '0' || *pid > '9' || !is_stopped(pid))
            continue;
        ssize_t length = read_about(pid, "environ", environment, MOST_ENVIRONMENT);
        if (length <= 0 || !launch_shares(environment, (size_t)length, &rank))
            continue;
        size_t at = strlen(list);
        snprintf(list + at, size - at, "%srank %d (process %s)", count++ ? ", " : "", rank, pid);
        kill(atoi(pid), SIGKILL);
    }
    if (processes)
        closedir(processes);
    free(environment);
    return count;
}
