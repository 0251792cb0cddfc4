/* Diagnostics: errors, warnings, remarks and notes with file, line, column and a caret.
 *
 *     gpt.c:12:26: error: the dimension "haeds" is named nowhere in the model
 *       12 | #pragma hspmd dims(q: batch, seq, haeds, _)
 *          |                                   ^
 *     gpt.c:10:9: note: did you mean "heads"?
 *
 * The function that detects an error reports it; callers only ask diag_errors. A run reports
 * several errors. Errors beyond DIAG_MOST are only counted. An error with the place and text of an
 * earlier one is dropped. Source lines come from files, or from diag_source. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

typedef struct Arena Arena;

/* A place in a source. Lines and columns count from 1; file NULL: no place. */
typedef struct Position {
    const char *file;
    int line, column;
} Position;

enum { DIAG_MOST = 20 };

typedef struct Diag Diag;

/* Creates diagnostics that are printed to `out`, normally stderr; they live in `arena`. */
Diag *diag_create(Arena *arena, FILE *out);

/* Makes messages quote the lines of `file` from `text`, kept by reference, instead of from disk. */
void diag_source(Diag *diag, const char *file, const char *text);

/* Sets the name of a file in messages, such as "<stdin>". Only one file has such a name. */
void diag_call(Diag *diag, const char *file, const char *name);

void diag_error(Diag *diag, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_warning(Diag *diag, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_remark(Diag *diag, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds a note to the last diagnostic; drops the note when that diagnostic was dropped. */
void diag_note(Diag *diag, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* From now on, also adds diagnostics to the log of support/sarif.h. Stops printing them to `out`
 * when both `out` and the log are standard error. */
void diag_log(Diag *diag);

/* Prints errors as warnings from now on (--known); diag_errors still counts them. */
void diag_soften(Diag *diag);

/* Prints a text of several lines that is not a diagnostic, such as a table. */
void diag_text(Diag *diag, const char *text);

/* Returns how many errors there were: equal ones count once, those beyond DIAG_MOST count, too. */
int diag_errors(const Diag *diag);

/* Prints how many errors were left out after the first DIAG_MOST, if any were. */
void diag_finish(Diag *diag);

/* Returns the name in `names` with the smallest edit distance to `word`; NULL when none is close
 * enough to suggest. NULL entries are skipped. */
const char *diag_closest(const char *word, const char *const *names, int count);

/* Adds the note "did you mean" at `at` with the closest name; false when no name is close. */
bool diag_suggest(Diag *diag, Position at, const char *word, const char *const *names, int count);

/* Reports a bug of hetucc with its source line, on standard error or in the log; exits with 2. */
_Noreturn void report_bug(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define BUG(...) report_bug(__FILE__, __LINE__, __VA_ARGS__)
