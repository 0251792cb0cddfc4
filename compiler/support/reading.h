/* Reading what a user names as an input, which need not be a file: nothing is waited for that may
 * never come.
 *
 *     const char *why, *text = reading_text(arena, READ_PIPES, "fast.strategy", 1 << 26, NULL,
 *         &why);
 *     if (!text)
 *         diag_error(diag, (Position){0}, "cannot read %s: %s", "fast.strategy", why);
 *
 * A file is read as it stands. A pipe is read to its end where somebody writes to it, as a shell's
 * <(COMMAND) does, and kept, so that it can be read again. One that nobody writes to, whose writer
 * is silent for long, a folder, a socket and a device but /dev/null are reasons.
 */
#ifndef SUPPORT_READING_H
#define SUPPORT_READING_H

#include "support/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef enum ReadKinds {
    READ_FILES, // files alone: what is read again later, when it may have changed
    READ_PIPES, // pipes, too, and /dev/null, which is empty
} ReadKinds;

/* The bytes of an input, terminated by a null byte; their number goes to *length, which may be
 * NULL. NULL with the reason where it cannot be read or has more than `most` bytes; the reason is
 * kept until the next call. */
const char *reading_text(Arena *arena, ReadKinds kinds, const char *path, size_t most,
                         size_t *length, const char **why);

/* Opens a plain file for reading. Returns its descriptor, or -1 with the reason. */
int reading_open(const char *path, const char **why);

/* Whether it is /dev/null, an empty input. */
bool reading_is_null(const struct stat *about);

/* What is no plain file: "it is a folder, and no file"; NULL: a plain file. */
const char *reading_kind(mode_t mode);

#endif
