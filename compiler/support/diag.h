/* Diagnostics: errors, warnings, remarks and notes with file, line, column and a caret, as C
 * compilers print them.
 *
 *     gpt.c:12:26: error: the dimension "haeds" is named nowhere in the model
 *       12 | #pragma hspmd dims(q: batch, seq, haeds, _)
 *          |                                   ^
 *     gpt.c:10:9: note: did you mean "heads"?
 *
 * Whoever detects an error reports it; callers only ask diag_errors. Errors are collected (several
 * are reported in one run); after DIAG_MOST of them the rest is counted only, and an error equal in
 * place and text to an earlier one is dropped. The text of a line comes from the file, or from a
 * buffer given to diag_source.
 */
#ifndef SUPPORT_DIAG_H
#define SUPPORT_DIAG_H

#include <stdbool.h>
#include <stdio.h>

typedef struct Arena Arena;

/* A place in a source: line and column count from 1; file NULL where there is none. */
typedef struct Position {
    const char *file;
    int line, column;
} Position;

enum { DIAG_MOST = 20 };

typedef struct Diag Diag;

/* Diagnostics that print to `out`, stderr as a rule; they live in `arena`. */
Diag *diag_create(Arena *arena, FILE *out);

/* Lines of `file` are taken from `text` (kept by reference) instead of the file system. */
void diag_source(Diag *diag, const char *file, const char *text);

/* Has messages call a file by another name: "<stdin>". */
void diag_call(Diag *diag, const char *file, const char *name);

void diag_error(Diag *diag, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_warning(Diag *diag, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_remark(Diag *diag, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A note belongs to the diagnostic before it and is dropped with it. */
void diag_note(Diag *diag, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Has all that is reported go to the log of support/sarif.h, and no longer to `out` where that is
 * standard error and the log's. */
void diag_log(Diag *diag);

/* Has errors be printed as warnings: what is refused leaves a program that runs as it is. They
 * count as errors. */
void diag_soften(Diag *diag);

/* A text of several lines that is no finding, a table say, as it stands. */
void diag_text(Diag *diag, const char *text);

/* How many errors were reported so far. */
int diag_errors(const Diag *diag);

/* Prints how many errors were left out after the first DIAG_MOST; nothing when there were none. */
void diag_finish(Diag *diag);

/* The name in `names` (NULL entries are passed over) that is closest to `word` by edit distance,
 * when it is close enough to suggest; else NULL. */
const char *diag_closest(const char *word, const char *const *names, int count);

/* The note "did you mean" at `at`, with the name that is closest; false when none is. */
bool diag_suggest(Diag *diag, Position at, const char *word, const char *const *names, int count);

/* A bug of ours: prints file, line and the message, and ends the process with status 2. */
_Noreturn void diag_bug(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define BUG(...) diag_bug(__FILE__, __LINE__, __VA_ARGS__)

#endif
