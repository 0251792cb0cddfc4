/* Source files as text: reading them, and finding the lines `#pragma hspmd` in them. */
#ifndef FRONTEND_SOURCE_H
#define FRONTEND_SOURCE_H

#include "support/array.h"
#include "support/diag.h"

/* The line of one pragma: what follows `hspmd`, continuation lines included, with comments and backslashes blanked. */
typedef struct PragmaLine {
    int begin, end;   // offsets in the file, from `#` to the end of the last line
    const char *text; // after "hspmd"; line ends of continuations are kept
    const char *raw;  // the same as written
    Position at;      // of text
} PragmaLine;

typedef struct Source {
    const char *file, *text;
    int length;
    Array(PragmaLine) lines;
    Array(PragmaLine) strays; // other pragmas; text begins behind `pragma`
    bool has_pragma_operator; // `_Pragma` stands somewhere
} Source;

/* Reads a file whole. NULL after an error was reported: it is missing, a directory, empty, not UTF-8, or has null bytes. */
Source *source_read(Arena *arena, Diag *diag, const char *file);

/* Finds the pragmas of a file, whether or not they stand under `#if 0`. */
void source_scan(Arena *arena, Source *source);

/* The position of an offset, counted in bytes from the start of the file. */
Position source_position(const Source *source, int offset);

#endif
