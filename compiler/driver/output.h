/* Files that hetucc writes, and messages without a place in a source.
 *
 * An output appears under its name only when it is complete:
 *
 *     const char *written = output_begin(tools, "gpt.o");    // "gpt.o.hetucc.8Xa2", say
 *     ... the C compiler writes it ...
 *     output_finish(tools, written, "gpt.o", 0666);          // renames it
 *
 * Temporary files and unfinished outputs are removed when the process ends, also by a signal.
 */
#ifndef DRIVER_OUTPUT_H
#define DRIVER_OUTPUT_H

#include "driver/toolchain.h"

#include <stdio.h>

/* Returns a path in the folder for temporary files, which is removed at the end. A folder must be
 * named before the files in it. */
const char *temporary(Toolchain *tools, const char *name);

/* Reports, after writing failed, whether the folder for temporary files is almost full. */
bool temporary_full(const Toolchain *tools);

/* Returns where to write an output: a new file beside `path`, or `path` itself when it is no plain
 * file. NULL after a message when nothing can be written there. */
const char *output_begin(Toolchain *tools, const char *path);

/* Appends the bytes of a file. Returns false, with errno set, when it cannot be read or is larger
 * than 256 MiB. */
bool file_read(const char *path, Text *bytes);

/* Writes bytes to a path of output_begin; false after a message. */
bool output_fill(const Toolchain *tools, const char *written, const char *path, const char *bytes,
                 size_t size);

/* Writes bytes to a new path of output_begin and returns the path; NULL after a message. */
const char *output_bytes(Toolchain *tools, const char *path, const char *bytes, size_t size);

/* Where programs that hetucc runs write what output_begin gave: a file that no other user can
 * replace meanwhile. output_take brings it to what output_begin gave for a path; false after a
 * message. */
const char *output_private(Toolchain *tools, const char *written);
bool output_take(const Toolchain *tools, const char *made, const char *written, const char *path);

/* Renames the finished file to `path`; `mode` is applied with umask. False after a message. */
bool output_finish(Toolchain *tools, const char *written, const char *path, unsigned mode);

/* Writes a whole file by output_bytes and output_finish. False after a message. */
bool output_text(Toolchain *tools, const char *path, const char *text);

/* Removes temporary files and unfinished outputs. Safe in a signal handler. */
void outputs_clean(void);

/* Removes temporary files and unfinished outputs, so that the arena may be destroyed. */
void outputs_close(void);

/* Prints "hetucc: error: ..." for a mistake without a place in a source. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes complain print warnings instead of errors. */
void complain_softly(void);

#endif
