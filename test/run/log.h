/* What programs that are started again write: lines of a log that goes on behind those of the steps that were saved, and what they do now. */
#ifndef TEST_RUN_LOG_H
#define TEST_RUN_LOG_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Opens the log behind the lines of so many steps. */
static inline FILE *open_log(const char *path, int64_t steps)
{
    FILE *log = fopen(path, steps ? "r+" : "w");
    char line[256];
    if (!log)
        exit(3);
    for (int64_t i = 0; i < steps; i++)
        if (!fgets(line, sizeof line, log))
            exit(4);
    if (fseek(log, 0, SEEK_CUR) || ftruncate(fileno(log), ftell(log)))
        exit(5);
    return log;
}

static inline void say(const char *what, int64_t step)
{
    printf("%s %lld\n", what, (long long)step);
    fflush(stdout);
}

#endif
