/* Reads sources as UTF-8, and finds lines of pragmas. */
#include "frontend/source.h"

#include "support/reading.h"
#include "support/text.h"

#include <string.h>
#include <sys/stat.h>

/* Returns the number of bytes of the UTF-8 sequence at `at`; 0 when the bytes are not UTF-8. */
static int utf8_length(const unsigned char *at, const unsigned char *end) {
    int length = *at < 0x80                  ? 1
                 : *at >= 0xC2 && *at < 0xE0 ? 2
                 : (*at & 0xF0) == 0xE0      ? 3
                 : *at >= 0xF0 && *at < 0xF5 ? 4
                                             : 0;
    if (end - at < length) return 0;
    for (int i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    bool overlong = (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xF0 && at[1] < 0x90);
    bool outside = (at[0] == 0xED && at[1] >= 0xA0) || (at[0] == 0xF4 && at[1] >= 0x90);
    return length > 1 && (overlong || outside) ? 0 : length;
}

static Position position_of(const Source *source, int offset) {
    Position at = {source->file, 1, 1};
    for (int i = 0; i < offset && i < source->length; i++) {
        at.column++;
        if (source->text[i] == '\n') at = (Position){source->file, at.line + 1, 1};
    }
    return at;
}

/* Returns whether a source is UTF-8 text without null bytes; reports the first byte that is not. */
static bool check_text(Arena *arena, Diag *diag, const Source *source) {
    const unsigned char *text = (const unsigned char *)source->text, *end = text + source->length;
    for (const unsigned char *at = text; at < end;) {
        int length = *at ? utf8_length(at, end) : 0;
        if (!length) {
            Position where = position_of(source, (int)(at - text));
            if (!*at)
                return diag_error(diag, where, "the source has a null byte; it is no text file"),
                       false;
            diag_error(diag, where, "the source is not UTF-8 text: byte 0x%02X", *at);
            Text command = {.arena = arena};
            text_string(&command, "iconv -f ISO-8859-1 -t UTF-8 ");
            text_shell(&command, source->file);
            diag_note(diag, (Position){0}, "convert it, for example with: %s",
                      text_bytes(&command));
            return false;
        }
        at += length;
    }
    return true;
}

/* Bytes that no source exceeds. This limit ends the reading of endless files such as /dev/zero. */
enum { MOST_BYTES = 1 << 26 };

Source *source_read(Arena *arena, Diag *diag, const char *file) {
    struct stat status;
    bool folder = !stat(file, &status) && S_ISDIR(status.st_mode);
    InputText text = {.why = "it is a directory, not a C source"};
    if (!folder) text = reading_text(arena, READ_PIPES, file, MOST_BYTES);
    if (!text.bytes) {
        diag_error(diag, (Position){0}, "cannot read %s: %s", file, text.why);
        return NULL;
    }
    Source *source = arena_new(arena, Source);
    *source = (Source){.file = file, .text = text.bytes, .length = (int)text.length};
    return check_text(arena, diag, source) ? source : NULL;
}

Source *source_of_text(Arena *arena, const char *file, const char *text) {
    Source *source = arena_new(arena, Source);
    *source = (Source){.file = file, .text = text, .length = (int)strlen(text)};
    return source;
}

/* Reads the directive after `hash`; adds a pragma to `lines` or `strays`. Returns the end token. */
static Token scan_directive(Lexer *lexer, Source *source, const Token *hash) {
    TokenList line = {0};
    do {
        array_push(lexer->arena, &line, lex_next(lexer));
        source->has_pragma_operator |= token_is(&line.at[line.count - 1], "_Pragma");
    } while (!token_ends(&line.at[line.count - 1]));
    Token end = line.at[line.count - 1];
    if (!token_is(&line.at[0], "pragma")) return end;
    bool ours = token_is(&line.at[1], "hspmd");
    int passed = ours ? 2 : 1;
    PragmaLine found = {.file = source->file,
                        .begin = (int)(hash->start - source->text),
                        .end = (int)(end.start - source->text)};
    found.tokens.at = line.at + passed;
    found.tokens.count = line.count - passed;
    if (ours) array_push(lexer->arena, &source->lines, found);
    else array_push(lexer->arena, &source->strays, found);
    return end;
}

void source_scan(Arena *arena, Diag *diag, Source *source) {
    Lexer lexer = lex_begin(arena, diag, (Position){source->file, 1, 1}, source->text);
    Token token = {.kind = TOKEN_LINE};
    lexer.lines = true;
    while (token.kind != TOKEN_END) {
        bool begins = token.kind == TOKEN_LINE;
        token = lex_next(&lexer);
        source->has_pragma_operator |= token_is(&token, "_Pragma");
        if (begins && token_is(&token, "#")) token = scan_directive(&lexer, source, &token);
    }
}
