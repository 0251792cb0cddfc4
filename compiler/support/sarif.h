/* SARIF: what a program says, for programs that read it: a log in the Static Analysis Results
 * Interchange Format 2.1.0.
 *
 *     sarif_open("hetucc", "0.1.0", NULL);
 *     sarif_add(SARIF_ERROR, &place, "the dimension \"haeds\" is named nowhere in the model");
 *     sarif_add_note(&other, "did you mean \"heads\"?");
 *
 * A process has one log at most. It is written when the process that opened it ends with exit, or
 * by sarif_close, with the exit status as that of its one invocation; a process that a signal ends
 * leaves none.
 */
#ifndef SUPPORT_SARIF_H
#define SUPPORT_SARIF_H

#include <stdbool.h>
#include <stddef.h>

typedef enum SarifLevel {
    SARIF_ERROR,
    SARIF_WARNING,
    SARIF_REMARK,
    SARIF_TEXT
} SarifLevel; // SARIF_TEXT: no finding, but a table, say

/* A place in a source; `line` and `column` (in bytes) count from 1, 0: none. */
typedef struct SarifPlace {
    const char *file; // NULL: there is none
    int line, column;
    const char *text; // of the line, `length` bytes; NULL: not known
    size_t length;
} SarifPlace;

/* Opens the log, which goes to the file `path`, or where that is NULL to standard error, which is
 * then the log's alone. */
void sarif_open(const char *tool, const char *version, const char *path);

/* Whether there is a log, and whether standard error is the log's. */
bool sarif_is_open(void);
bool sarif_has_stderr(void);

/* Adds a result; a note to the last result. `place` may be NULL. */
void sarif_add(SarifLevel level, const SarifPlace *place, const char *message);
void sarif_add_note(const SarifPlace *place, const char *message);

/* Writes the log, which is closed then; `status` is the exit status. Nothing where there is none.
 * Returns false after a message: it could not be written. */
bool sarif_close(int status);

#endif
