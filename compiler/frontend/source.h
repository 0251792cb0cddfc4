/* Source files as text, and the lines `#pragma hspmd` in them.
 *
 *     12 | #pragma hspmd dims(x: batch, seq)    PragmaLine: tokens dims ( x : batch , seq ) END */
#pragma once

#include "syntax/lex.h"

/* A pragma's line: the tokens after `hspmd`, then the end of the line. */
typedef struct PragmaLine {
    const char *file; // NULL: from `_Pragma`
    int begin, end;   // offsets [begin, end) in the file, from `#` to the end of the line
    TokenList tokens;
} PragmaLine;

typedef struct Source {
    const char *file, *text;
    int length;
    Array(PragmaLine) lines;
    Array(PragmaLine) strays; // other pragmas; their tokens follow `pragma`
    bool has_pragma_operator; // the file uses `_Pragma`
} Source;

/* Reads a whole file. Reports and returns NULL if it is unreadable, no UTF-8, or has null bytes. */
Source *source_read(Arena *arena, Diag *diag, const char *file);

/* Makes a source of a given text. */
Source *source_of_text(Arena *arena, const char *file, const char *text);

/* Sets `lines`, `strays` and `has_pragma_operator`. Finds pragmas under `#if 0`, too. */
void source_scan(Arena *arena, Diag *diag, Source *source);
