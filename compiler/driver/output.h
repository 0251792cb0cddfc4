/* Files that hetucc writes: temporary ones, and outputs that appear only when they are complete.
 * Temporary files and unfinished outputs are removed when the process ends, by a signal, too. */
#ifndef DRIVER_OUTPUT_H
#define DRIVER_OUTPUT_H

#include "driver/toolchain.h"

#include <stdio.h>

/* A path in the folder for temporary files, removed at the end; a folder after what was named
 * later. */
const char *temporary(Toolchain *tools, const char *name);

/* After something in the folder for temporary files failed: whether that folder is all but full; a
 * message says so. */
bool temporary_full(const Toolchain *tools);

/* Where to write what shall become `path`: a new file beside it, or `path` itself where that is no
 * plain file. NULL after a message when nothing can be written there. */
const char *output_begin(Toolchain *tools, const char *path);

/* Appends what a file holds; false, and errno, when it cannot be read or has more than 256 MiB. */
bool file_read(const char *path, Text *bytes);

/* Writes bytes to what output_begin gave for a path; false after a message. */
bool output_fill(const Toolchain *tools, const char *written, const char *path, const char *bytes,
                 size_t size);

/* Writes bytes where output_begin says; output_finish is left to the caller. NULL after a
 * message. */
const char *output_bytes(Toolchain *tools, const char *path, const char *bytes, size_t size);

/* Where programs that hetucc runs write what output_begin gave: a file that no other user can
 * replace meanwhile. output_take brings it to what output_begin gave for a path; false after a
 * message. */
const char *output_private(Toolchain *tools, const char *written);
bool output_take(const Toolchain *tools, const char *made, const char *written, const char *path);

/* The finished file takes its name; `mode` is its permissions before umask. False after a
 * message. */
bool output_finish(Toolchain *tools, const char *written, const char *path, unsigned mode);

/* Writes a whole file through output_bytes and output_finish. False after a message. */
bool output_text(Toolchain *tools, const char *path, const char *text);

/* Removes temporary files and unfinished outputs, as a signal handler may. */
void outputs_clean(void);

/* Does so now, and forgets them: the arena may be destroyed after that. */
void outputs_close(void);

#endif
