#include "frontend/source.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The length of the UTF-8 sequence at `at`, or 0 when there is none. */
static int utf8_length(const unsigned char *at, const unsigned char *end)
{
    int length = *at < 0x80 ? 1 : *at >= 0xC2 && *at < 0xE0 ? 2 : (*at & 0xF0) == 0xE0 ? 3 : *at >= 0xF0 && *at < 0xF5 ? 4 : 0;
    if (end - at < length)
        return 0;
    for (int i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xF0 && at[1] < 0x90);
    bool outside = (at[0] == 0xED && at[1] >= 0xA0) || (at[0] == 0xF4 && at[1] >= 0x90);
    return length > 1 && (overlong || outside) ? 0 : length;
}

/* The position of an offset that is not before another, which is at `at`. */
static Position position_behind(const Source *source, Position at, int from, int offset)
{
    for (int i = from; i < offset && i < source->length; i++) {
        at.column++;
        if (source->text[i] == '\n')
            at = (Position){source->file, at.line + 1, 1};
    }
    return at;
}

Position source_position(const Source *source, int offset) { return position_behind(source, (Position){source->file, 1, 1}, 0, offset); }

/* Reports the first byte that is no text. */
static bool check_text(Diag *diag, const Source *source)
{
    const unsigned char *text = (const unsigned char *)source->text, *end = text + source->length;
    for (const unsigned char *at = text; at < end;) {
        int length = *at ? utf8_length(at, end) : 0;
        if (!length) {
            Position where = source_position(source, (int)(at - text));
            if (!*at) {
                diag_error(diag, where, "the source has a null byte; it is no text file");
                return false;
            }
            diag_error(diag, where, "the source is not UTF-8 text: byte 0x%02X", *at);
            diag_note(diag, (Position){0}, "convert it, for example with: iconv -f ISO-8859-1 -t UTF-8 %s", source->file);
            return false;
        }
        at += length;
    }
    return true;
}

/* More than any source has; what has no end, as /dev/zero, is not read for ever. */
enum { MOST_BYTES = 1 << 26 };

static void too_large(Diag *diag, const char *file) { diag_error(diag, (Position){0}, "cannot read %s: it has more than %d bytes", file, MOST_BYTES); }

static bool check_file(Diag *diag, const char *file)
{
    struct stat status;
    if (stat(file, &status))
        diag_error(diag, (Position){0}, "cannot read %s: %s", file, strerror(errno));
    else if (S_ISDIR(status.st_mode))
        diag_error(diag, (Position){0}, "cannot read %s: it is a directory, not a C source", file);
    else if (status.st_size > MOST_BYTES)
        too_large(diag, file);
    else
        return true;
    return false;
}

/* The bytes of a stream up to one more than the most, with a terminating zero. */
static char *read_stream(Arena *arena, FILE *stream, int *length)
{
    size_t size = 0, room = 1 << 16;
    char *text = malloc(room);
    while (text && (size += fread(text + size, 1, room - size, stream)) == room && size <= MOST_BYTES)
        text = realloc(text, room *= 2);
    if (!text)
        return NULL;
    char *kept = arena_alloc(arena, size + 1);
    memcpy(kept, text, size);
    free(text);
    *length = (int)size;
    return kept;
}

Source *source_read(Arena *arena, Diag *diag, const char *file)
{
    if (!check_file(diag, file))
        return NULL;
    FILE *stream = fopen(file, "rb");
    if (!stream) {
        diag_error(diag, (Position){0}, "cannot read %s: %s", file, strerror(errno));
        return NULL;
    }
    Source *source = arena_new(arena, Source);
    source->file = file;
    source->text = read_stream(arena, stream, &source->length);
    bool failed = ferror(stream) || !source->text;
    fclose(stream);
    if (failed) {
        diag_error(diag, (Position){0}, "cannot read %s", file);
        return NULL;
    }
    if (source->length > MOST_BYTES) {
        too_large(diag, file);
        return NULL;
    }
    return check_text(diag, source) ? source : NULL;
}

/* ---- scanning ---- */

typedef struct Scanner {
    Arena *arena;
    Source *source;
    const char *text;
    int at;
    int counted; // where the last pragma's text began, and its place
    Position place;
    bool line_start; // only blanks and comments since the line began
} Scanner;

static int skip_quoted(const char *text, int at)
{
    char quote = text[at++];
    while (text[at] && text[at] != quote && text[at] != '\n')
        at += text[at] == '\\' && text[at + 1] ? 2 : 1;
    return text[at] == quote ? at + 1 : at;
}

/* The offset behind the comment at `at`. */
static int skip_comment(const char *text, int at)
{
    if (text[at + 1] == '*') {
        const char *end = strstr(text + at + 2, "*/");
        return end ? (int)(end - text) + 2 : at + (int)strlen(text + at);
    }
    while (text[at] && text[at] != '\n')
        at += text[at] == '\\' && text[at + 1] ? 2 : 1;
    return at;
}

static bool is_comment(const char *text, int at) { return text[at] == '/' && (text[at + 1] == '/' || text[at + 1] == '*'); }

static int continuation(const char *text, int at)
{
    if (text[at] != '\\')
        return 0;
    return text[at + 1] == '\n' ? 2 : text[at + 1] == '\r' && text[at + 2] == '\n' ? 3 : 0;
}

/* Skips blanks, comments and continuations inside a line. */
static int skip_blanks(const char *text, int at)
{
    for (;;) {
        if (text[at] == ' ' || text[at] == '\t' || text[at] == '\r')
            at++;
        else if (is_comment(text, at) && text[at + 1] == '*')
            at = skip_comment(text, at);
        else if (continuation(text, at))
            at += continuation(text, at);
        else
            return at;
    }
}

/* Skips the word at `at`, or returns -1 when another stands there. */
static int skip_word(const char *text, int at, const char *word)
{
    size_t length = strlen(word);
    if (at < 0 || strncmp(text + at, word, length) || isalnum((unsigned char)text[at + (int)length]) || text[at + (int)length] == '_')
        return -1;
    return skip_blanks(text, at + (int)length);
}

/* The end of the logical line that goes on at `at`. */
static int line_end(const char *text, int at)
{
    while (text[at] && text[at] != '\n') {
        if (continuation(text, at))
            at += continuation(text, at);
        else if (text[at] == '"' || text[at] == '\'')
            at = skip_quoted(text, at);
        else if (is_comment(text, at))
            at = skip_comment(text, at);
        else
            at++;
    }
    return at;
}

/* The text from `from` to `to` without comments and backslashes, every other byte in its place. */
static char *blanked(Arena *arena, const char *text, int from, int to)
{
    char *copy = arena_substring(arena, text + from, (size_t)(to - from));
    for (int at = from; at < to;) {
        int next = at + 1;
        if (text[at] == '"' || text[at] == '\'') {
            at = skip_quoted(text, at);
            continue;
        }
        if (is_comment(text, at))
            next = skip_comment(text, at);
        else if (continuation(text, at))
            next = at + continuation(text, at);
        for (int i = at; i < next && i < to; i++)
            if (next > at + 1 && copy[i - from] != '\n')
                copy[i - from] = ' ';
        at = next;
    }
    for (int i = to - from; i-- > 0 && isspace((unsigned char)copy[i]);)
        copy[i] = 0;
    return copy;
}

/* The line from `begin` to `end` with what stands from `text` on. */
static PragmaLine make_line(Scanner *s, int begin, int text, int end)
{
    PragmaLine line = {.begin = begin, .end = end};
    text = text < end ? text : end;
    line.at = s->place = position_behind(s->source, s->place, s->counted, text);
    s->counted = text;
    line.text = blanked(s->arena, s->text, text, end);
    line.raw = arena_substring(s->arena, s->text + text, (size_t)(end - text));
    return line;
}

/* Reads the directive at `#`; goes on at the end of its line where it is a pragma. */
static void scan_directive(Scanner *s)
{
    int begin = s->at, end = line_end(s->text, begin);
    int word = skip_word(s->text, skip_blanks(s->text, begin + 1), "pragma");
    int text = skip_word(s->text, word, "hspmd");
    s->at = word >= 0 ? end : s->at + 1;
    if (text >= 0)
        array_push(s->arena, &s->source->lines, make_line(s, begin, text, end));
    else if (word >= 0)
        array_push(s->arena, &s->source->strays, make_line(s, begin, word, end));
}

static void scan_word(Scanner *s)
{
    int begin = s->at;
    while (isalnum((unsigned char)s->text[s->at]) || s->text[s->at] == '_')
        s->at++;
    if (s->at - begin == 7 && !strncmp(s->text + begin, "_Pragma", 7))
        s->source->has_pragma_operator = true;
}

static void scan_one(Scanner *s)
{
    char c = s->text[s->at];
    if (is_comment(s->text, s->at)) {
        s->at = skip_comment(s->text, s->at);
        return;
    }
    bool start = s->line_start;
    s->line_start = c == '\n' || (start && isspace((unsigned char)c));
    if (c == '#' && start)
        scan_directive(s);
    else if (c == '"' || c == '\'')
        s->at = skip_quoted(s->text, s->at);
    else if (isalnum((unsigned char)c) || c == '_')
        scan_word(s);
    else
        s->at += continuation(s->text, s->at) ? continuation(s->text, s->at) : 1;
}

void source_scan(Arena *arena, Source *source)
{
    Scanner s = {.arena = arena, .source = source, .text = source->text, .place = {source->file, 1, 1}, .line_start = true};
    while (s.at < source->length)
        scan_one(&s);
}
