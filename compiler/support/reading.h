/* Reads inputs that a user names: files, and pipes such as a shell's <(COMMAND). Never blocks on an
 * input that may not come.
 *
 *     InputText text = reading_text(arena, READ_PIPES, "fast.strategy", 1 << 26);
 *     if (!text.bytes) diag_error(diag, at, "cannot read %s: %s", "fast.strategy", text.why);
 *
 * A pipe is read to its end and kept, so that it can be read again. Refused: a pipe without a
 * writer, or whose writer is silent for long; a folder, a socket, a device other than /dev/null. */
#ifndef SUPPORT_READING_H
#define SUPPORT_READING_H

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

/* Reads an input of at most `most` bytes. */
InputText reading_text(Arena *arena, ReadKinds kinds, const char *path, size_t most);

/* Opens a plain file for reading. Returns its descriptor, or -1 with the reason. */
int reading_open(const char *path, const char **why);

/* Whether it is /dev/null, an empty input. */
bool reading_is_null(const struct stat *about);

/* Returns why a mode is no plain file's: "it is a folder, and no file"; NULL: it is. */
const char *reading_kind(mode_t mode);

#endif
