/* Reading what a user names as an input, which need not be a file: nothing is waited for that may
 * never come.
 *
 *     InputText text = reading_text(arena, READ_PIPES, "fast.strategy", 1 << 26);
 *     if (!text.bytes) diag_error(diag, at, "cannot read %s: %s", "fast.strategy", text.why);
 *
 * A file is read as it stands. A pipe is read to its end where somebody writes to it, as a shell's
 * <(COMMAND) does, and kept, so that it can be read again. One that nobody writes to, whose writer
 * is silent for long, a folder, a socket and a device are reasons.
 */
#ifndef SUPPORT_READING_H
#define SUPPORT_READING_H

#include "support/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef enum ReadKinds {
    READ_FILES, // files alone: what is read again later, when it may have changed
    READ_PIPES, // pipes, too
} ReadKinds;

/* The bytes of an input, terminated by a null byte. */
typedef struct InputText {
    const char *bytes; // NULL: the input cannot be read, for the reason `why`
    size_t length;
    const char *why; // valid until the next call
} InputText;

/* Reads an input of at most `most` bytes. */
InputText reading_text(Arena *arena, ReadKinds kinds, const char *path, size_t most);

/* Opens a plain file for reading. Returns its descriptor, or -1 with the reason. */
int reading_open(const char *path, const char **why);

/* What is no plain file: "it is a folder, and no file"; NULL: a plain file. */
const char *reading_kind(mode_t mode);

#endif
