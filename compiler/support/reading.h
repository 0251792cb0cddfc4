/* Reads inputs that a user names: files, and pipes such as <(COMMAND), which have a timeout.
 *
 *     InputText text = reading_text(arena, READ_PIPES, "fast.strategy", 1 << 26);
 *     if (!text.bytes) diag_error(diag, at, "cannot read %s: %s", "fast.strategy", text.why);
 *
 * The bytes of a pipe are kept, so that it can be read again. These inputs are refused: a pipe that
 * has no writer or a silent one, a folder, a socket, and a device other than /dev/null. */
#pragma once

#include "support/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef enum ReadKinds {
    READ_FILES, // files only, for inputs that are read again later and may have changed
    READ_PIPES, // pipes, too, and /dev/null, which is empty
} ReadKinds;

/* The bytes of an input, terminated by a null byte. */
typedef struct InputText {
    const char *bytes; // NULL: the input cannot be read, for the reason `why`
    size_t length;
    const char *why; // valid until the next call
} InputText;

/* Reads an input into `arena`; refuses one of more than `most` bytes. */
InputText reading_text(Arena *arena, ReadKinds kinds, const char *path, size_t most);

/* Opens a plain file for reading. Returns a descriptor to close, or -1 with the reason in *why. */
int reading_open(const char *path, const char **why);

/* Returns whether a file is /dev/null, which counts as an empty input. */
bool reading_is_null(const struct stat *about);

/* Returns why a file of this mode is not plain ("it is a folder, and no file"); NULL: plain. */
const char *reading_kind(mode_t mode);
