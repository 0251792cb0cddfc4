/* Prints errors with carets; limits them (DIAG_MOST); suggests words (diag_closest). */
#include "support/diag.h"

#include "support/reading.h"
#include "support/sarif.h"
#include "support/tool.h"

#include <limits.h>
#include <string.h>

#define uthash_malloc(size) arena_alloc(diag->arena, (size))
#define uthash_free(pointer, size) ((void)(pointer))
#include <uthash.h>

typedef struct Source Source;
struct Source {
    Source *next;
    const char *file, *text;
};

/* An error that was reported, as "FILE:LINE:COLUMN: MESSAGE"; equal ones are reported once. */
typedef struct Reported {
    const char *text;
    UT_hash_handle hh;
} Reported;

struct Diag {
    Arena *arena;
    FILE *out;
    Source *sources;
    Reported *reported;
    int errors;
    bool muted;                // the last diagnostic was left out, and so are its notes
    bool soft;                 // errors are printed as warnings
    bool logged;               // diagnostics go to the log
    const char *called, *name; // a file, and its name in messages; NULL: no file is renamed
};

Diag *diag_create(Arena *arena, FILE *out) {
    Diag *diag = arena_new(arena, Diag);
    diag->arena = arena;
    diag->out = out;
    return diag;
}

void diag_source(Diag *diag, const char *file, const char *text) {
    Source *source = arena_new(diag->arena, Source);
    *source =
        (Source){.next = diag->sources, .file = arena_string(diag->arena, file), .text = text};
    diag->sources = source;
}

void diag_call(Diag *diag, const char *file, const char *name) {
    diag->called = arena_string(diag->arena, file);
    diag->name = name;
}

/* Returns a file's name in messages; NULL stays NULL. */
static const char *shown(const Diag *diag, const char *file) {
    return file && diag->called && !strcmp(file, diag->called) ? diag->name : file;
}

/* Returns the text of a file; "" when it cannot be read. */
static const char *file_text(Arena *arena, const char *file) {
    enum { MOST = 1 << 26 };
    InputText text = reading_text(arena, READ_PIPES, file, MOST);
    return text.bytes ? text.bytes : "";
}

/* Returns the text of a file, which is read at the first call only; "" when that fails. */
static const char *source_text(Diag *diag, const char *file) {
    for (Source *source = diag->sources; source; source = source->next)
        if (!strcmp(source->file, file)) return source->text;
    const char *text = file_text(diag->arena, file);
    diag_source(diag, file, text);
    return text;
}

/* Returns whether a byte continues a letter of UTF-8, and so takes no column. */
static bool continues_letter(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

/* Narrows [*begin, *end), a whole line, to about 200 bytes around a column counted from 1. */
static void cut_line(const char *line, int column, int *begin, int *end) {
    enum { MOST = 200, BEFORE = 80 };
    int length = *end;
    if (length <= MOST) return;
    *begin = column > BEFORE ? column - BEFORE : 0;
    *begin = *begin > length - MOST ? length - MOST : *begin;
    *end = *begin + MOST;
    while (*begin > 0 && continues_letter(line[*begin])) --*begin;
    while (*end < length && continues_letter(line[*end])) ++*end;
}

/* Returns the source line of `at`; NULL when the line is missing or is the file's empty end. */
static const char *line_of(Diag *diag, Position at) {
    const char *line = source_text(diag, at.file);
    for (int i = 1; i < at.line && line; i++) line = (line = strchr(line, '\n')) ? line + 1 : NULL;
    return line && *line ? line : NULL;
}

/* Prints the source line of `at` with a caret under its column; of a long line only the part around
 * the caret. Prints nothing when the line is missing. */
static void print_caret(Diag *diag, Position at) {
    const char *line = line_of(diag, at);
    if (!line) return;
    int length = (int)strcspn(line, "\r\n"), begin = 0, end = length;
    cut_line(line, at.column, &begin, &end);
    const char *left = begin ? "..." : "", *right = end < length ? "..." : "";
    fprintf(diag->out, "%5d | %s%.*s%s\n      | %*s", at.line, left, end - begin, line + begin,
            right, (int)strlen(left), "");
    for (int i = begin; i + 1 < at.column && i < end; i++)
        if (!continues_letter(line[i])) fputc(line[i] == '\t' ? '\t' : ' ', diag->out);
    fprintf(diag->out, "%s^%s\n", tool_color(diag->out, "caret"), tool_color_end(diag->out));
}

/* Adds a diagnostic to the log; adds a note to the last diagnostic in the log. */
static void add_to_log(Diag *diag, Position at, const char *kind, const char *message) {
    SarifPlace place = {.file = shown(diag, at.file), .line = at.line, .column = at.column};
    if (at.file && at.line > 0 && (place.text = line_of(diag, at)))
        place.length = strcspn(place.text, "\r\n");
    if (!strcmp(kind, "note")) sarif_add_note(&place, message);
    else
        sarif_add(!strcmp(kind, "error")     ? SARIF_ERROR
                  : !strcmp(kind, "warning") ? SARIF_WARNING
                                             : SARIF_REMARK,
                  &place, message);
}

/* Returns whether diagnostics go to the log alone. */
static bool only_logged(const Diag *diag) {
    return diag->logged && diag->out == stderr && sarif_has_stderr();
}

static void print(Diag *diag, Position at, const char *kind, const char *format,
                  va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    if (diag->logged) add_to_log(diag, at, kind, arena_vformat(diag->arena, format, again));
    va_end(again);
    if (only_logged(diag)) return;
    const char *end = tool_color_end(diag->out);
    fputs(tool_color(diag->out, "place"), diag->out);
    if (at.file) fprintf(diag->out, "%s:%d:%d:", shown(diag, at.file), at.line, at.column);
    else fprintf(diag->out, "%s:", tool_name());
    fprintf(diag->out, "%s %s%s:%s ", end, tool_color(diag->out, kind), kind, end);
    vfprintf(diag->out, format, arguments);
    fputc('\n', diag->out);
    if (at.file && at.line > 0) print_caret(diag, at);
}

#define PRINT(kind)                                                                                \
    va_list arguments;                                                                             \
    va_start(arguments, format);                                                                   \
    print(diag, at, kind, format, arguments);                                                      \
    va_end(arguments)

/* Returns whether this error was reported before; if not, remembers the error. */
static bool was_reported(Diag *diag, Position at, const char *format, va_list arguments) {
    const char *message = arena_vformat(diag->arena, format, arguments);
    const char *text = arena_format(diag->arena, "%s:%d:%d: %s", at.file ? at.file : "", at.line,
                                    at.column, message);
    Reported *reported;
    HASH_FIND_STR(diag->reported, text, reported);
    if (reported) return true;
    reported = arena_new(diag->arena, Reported);
    reported->text = text;
    HASH_ADD_KEYPTR(hh, diag->reported, text, strlen(text), reported);
    return false;
}

void diag_error(Diag *diag, Position at, const char *format, ...) {
    va_list first;
    va_start(first, format);
    bool again = was_reported(diag, at, format, first);
    va_end(first);
    diag->errors += !again;
    diag->muted = again || diag->errors > DIAG_MOST;
    if (diag->muted) return;
    PRINT(diag->soft ? "warning" : "error");
}

void diag_warning(Diag *diag, Position at, const char *format, ...) {
    diag->muted = false;
    PRINT("warning");
}

void diag_remark(Diag *diag, Position at, const char *format, ...) {
    diag->muted = false;
    PRINT("remark");
}

void diag_note(Diag *diag, Position at, const char *format, ...) {
    if (diag->muted) return;
    PRINT("note");
}

void diag_soften(Diag *diag) { diag->soft = true; }

void diag_log(Diag *diag) { diag->logged = true; }

void diag_text(Diag *diag, const char *text) {
    if (diag->logged) sarif_add(SARIF_TEXT, NULL, text);
    if (!only_logged(diag)) fputs(text, diag->out);
}

int diag_errors(const Diag *diag) { return diag->errors; }

void diag_finish(Diag *diag) {
    if (diag->errors > DIAG_MOST)
        diag_text(diag, arena_format(diag->arena, "%s: %d more errors are not shown\n", tool_name(),
                                     diag->errors - DIAG_MOST));
}

/* Returns the Levenshtein distance of two words of fewer than 64 bytes; INT_MAX for longer ones. */
static int distance(const char *a, const char *b) {
    enum { MOST = 64 };
    if (strlen(a) >= MOST || strlen(b) >= MOST) return INT_MAX;
    int row[MOST + 1], m = (int)strlen(a), n = (int)strlen(b);
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; i <= m; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

const char *diag_closest(const char *word, const char *const *names, int count) {
    const char *closest = NULL;
    int best = (int)strlen(word) / 3 + 1;
    for (int i = 0; i < count; i++)
        if (names[i] && *names[i] && strcmp(word, names[i]) && distance(word, names[i]) <= best &&
            (!closest || distance(word, names[i]) < best)) {
            closest = names[i];
            best = distance(word, names[i]);
        }
    return closest;
}

bool diag_suggest(Diag *diag, Position at, const char *word, const char *const *names, int count) {
    const char *closest = diag_closest(word, names, count);
    if (closest) diag_note(diag, at, "did you mean \"%s\"?", closest);
    return closest;
}
