/* Files that hetucc writes, and messages without a place in a source.
 *
 * An output appears under its name only when it is complete:
 *
 *     const char *written = output_begin(tools, "gpt.o");    // a path ending in ".gpt.o.8Xa2Qz"
 *     ... the C compiler writes it ...
 *     output_finish(tools, written, "gpt.o", 0666);          // renames it
 *
 * Temporary files and unfinished outputs are removed when the process ends, also by a signal. */
#pragma once

#include "driver/toolchain.h"

#include <stdio.h>

/* Returns a path in the folder for temporary files; a file or folder at the path is removed at the
 * end. A folder's path must be asked for before the paths of its files. */
const char *temporary(Toolchain *tools, const char *name);

/* Returns whether the folder for temporary files is almost full, and reports it if so. */
bool temporary_full(const Toolchain *tools);

/* Returns where to write an output: a new file beside `path`, or `path` itself when it is not a
 * plain file; NULL after a message when the output cannot be written. */
const char *output_begin(Toolchain *tools, const char *path);

/* Appends a file's content to *bytes. Returns false, with errno, if unreadable or above 256 MiB. */
bool file_read(const char *path, Text *bytes);

/* Writes bytes to `written`, which output_begin returned for `path`; false after a message. */
bool output_fill(const Toolchain *tools, const char *written, const char *path, const char *bytes,
                 size_t size);

/* Writes bytes to the path that output_begin returns, and returns it; NULL after a message. */
const char *output_bytes(Toolchain *tools, const char *path, const char *bytes, size_t size);

/* output_private returns the path of a temporary file for a program that hetucc runs; no other user
 * can replace this file. output_take then copies it (`made`) to `written`, which output_begin
 * returned for `path`; false after a message. */
const char *output_private(Toolchain *tools, const char *written);
bool output_take(const Toolchain *tools, const char *made, const char *written, const char *path);

/* Renames `written` to `path`, with `mode` less the umask. Returns false after a message. */
bool output_finish(Toolchain *tools, const char *written, const char *path, unsigned mode);

/* Writes a whole file by output_bytes and output_finish. Returns false after a message. */
bool output_text(Toolchain *tools, const char *path, const char *text);

/* Removes temporary files and unfinished outputs. Safe in a signal handler. */
void outputs_clean(void);

/* Removes temporary files and unfinished outputs, and forgets them: the arena may be destroyed. */
void outputs_close(void);

/* Prints "TOOL: error: ..." for a mistake without a place in a source. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes complain print warnings instead of errors. */
void complain_softly(void);
