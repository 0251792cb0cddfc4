/* Source files as text: reading them, and finding the lines `#pragma hspmd` in them. */
#ifndef FRONTEND_SOURCE_H
#define FRONTEND_SOURCE_H

#include "syntax/lex.h"

/* The line of one pragma: the tokens behind `hspmd`, the last of them the line's end. */
typedef struct PragmaLine {
    const char *file; // NULL: from `_Pragma`
    int begin, end;   // offsets in the file, from `#` to the end of the line
    TokenList tokens;
} PragmaLine;

typedef struct Source {
    const char *file, *text;
    int length;
    Array(PragmaLine) lines;
    Array(PragmaLine) strays; // other pragmas; the tokens behind `pragma`
    bool has_pragma_operator; // `_Pragma` stands somewhere
} Source;

/* Reads a file whole. NULL after an error was reported: it is missing, a directory, empty, not
 * UTF-8, or has null bytes. */
Source *source_read(Arena *arena, Diag *diag, const char *file);

/* A file whose text is there already. */
Source *source_of_text(Arena *arena, const char *file, const char *text);

/* Finds the pragmas of a file, whether or not they stand under `#if 0`. */
void source_scan(Arena *arena, Diag *diag, Source *source);

#endif
