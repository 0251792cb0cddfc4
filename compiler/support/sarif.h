/* SARIF: a log of all messages, in the Static Analysis Results Interchange Format 2.1.0.
 *
 *     sarif_open("hetucc", "0.1.0", NULL);
 *     sarif_add(SARIF_ERROR, &place, "the dimension \"haeds\" is named nowhere in the model");
 *     sarif_add_note(&other, "did you mean \"heads\"?");
 *
 * A process has at most one log. The log is written by sarif_close, or when the process that opened
 * the log exits, and contains the exit status. A process that a signal ends writes no log. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef enum SarifLevel {
    SARIF_ERROR,
    SARIF_WARNING,
    SARIF_REMARK,
    SARIF_TEXT // no diagnostic, such as a table
} SarifLevel;

/* A place in a source; `line` and `column` (in bytes) count from 1, 0: none. */
typedef struct SarifPlace {
    const char *file; // NULL: no file
    int line, column;
    const char *text; // text of the line, `length` bytes; NULL: unknown
    size_t length;
} SarifPlace;

/* Opens a log for the file `path`; NULL: for standard error, which then has only the log. */
void sarif_open(const char *tool, const char *version, const char *path);

/* Return whether there is a log, and whether it is written to standard error. */
bool sarif_is_open(void);
bool sarif_has_stderr(void);

/* Add a result, and a note to the last result. `place` may be NULL. */
void sarif_add(SarifLevel level, const SarifPlace *place, const char *message);
void sarif_add_note(const SarifPlace *place, const char *message);

/* Writes the log with exit status `status` and closes it. Returns true when there is no log, false
 * after a message when the log cannot be written. */
bool sarif_close(int status);
