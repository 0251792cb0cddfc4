/* Finds, and ends, stopped processes of this run. */

#include "transport/meet/rendezvous.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_ENVIRONMENT = 1 << 18, // bytes that are read of a process's environment
    NAP = 1000000,              // nanoseconds between two looks whether a process is dead
    MOST_NAPS = 500,
    EXITING = 4 // kernel's PF_EXITING: the process runs none of its own code any more
};

/* Reads a file of /proc/PID and appends a null byte. Returns the number of bytes, or -1. */
static ssize_t read_about(const char *pid, const char *name, char *to, size_t size) {
    char path[64];
    ssize_t length = 0, got = 1;
    snprintf(path, sizeof path, "/proc/%.20s/%s", pid, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && got > 0 && length < (ssize_t)size - 1)
        length += (got = read(file, to + length, size - 1 - (size_t)length)) > 0 ? got : 0;
    if (file >= 0) close(file);
    to[length] = 0;
    return file < 0 || got < 0 ? -1 : length;
}

/* State and kernel flags of a process, from /proc/PID/stat. */
typedef struct Condition {
    char state; // a letter ('T': stopped, 'Z': zombie); 0: there is no such process
    unsigned flags;
} Condition;

/* Returns the condition of a process: state and flags follow the last ')', the end of its name. */
static Condition condition_of(const char *pid) {
    char about[1024];
    Condition found = {0};
    const char *name_end =
        read_about(pid, "stat", about, sizeof about) > 0 ? strrchr(about, ')') : NULL;
    if (!name_end ||
        sscanf(name_end + 1, " %c %*d %*d %*d %*d %*d %u", &found.state, &found.flags) != 2)
        return (Condition){0};
    return found;
}

static bool is_stopped(const char *pid) {
    char state = condition_of(pid).state;
    return state == 'T' || state == 't';
}

bool peers_process_lives(int process) {
    char pid[16];
    snprintf(pid, sizeof pid, "%d", process);
    Condition found = condition_of(pid);
    return found.state && found.state != 'Z' && found.state != 'X' && !(found.flags & EXITING);
}

/* Calls `visit` for each stopped process of this run. */
static void each_stopped(void (*visit)(int rank, int process, void *argument), void *argument) {
    int rank;
    char *environment = malloc(MOST_ENVIRONMENT);
    DIR *processes = opendir("/proc");
    for (const struct dirent *entry; environment && processes && (entry = readdir(processes));) {
        const char *pid = entry->d_name;
        if (*pid < '0' || *pid > '9' || !is_stopped(pid)) continue;
        ssize_t length = read_about(pid, "environ", environment, MOST_ENVIRONMENT);
        if (length > 0 && launch_shares(environment, (size_t)length, &rank))
            visit(rank, atoi(pid), argument);
    }
    if (processes) closedir(processes);
    free(environment);
}

typedef struct List {
    char *text;
    size_t size;
    int count;
} List;

static void add_to_list(int rank, int process, void *argument) {
    List *list = argument;
    size_t at = strlen(list->text);
    snprintf(list->text + at, list->size - at, "%srank %d (process %d)", list->count++ ? ", " : "",
             rank, process);
}

int peers_stopped(char *text, size_t size) {
    List list = {text, size, 0};
    *text = 0;
    each_stopped(add_to_list, &list);
    return list.count;
}

/* Kills a process, and waits until it is dead, since its memory and files are free only then. */
static void end_process(int rank, int process, void *argument) {
    (void)rank, (void)argument;
    kill(process, SIGKILL);
    for (int nap = 0; nap < MOST_NAPS && peers_process_lives(process); nap++)
        nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
}

void peers_end_stopped(void) { each_stopped(end_process, NULL); }
