/* Splits text into tokens, as C does. */
#include "syntax/lex.h"

#include "support/text.h"

#include <ctype.h>
#include <string.h>

static void advance(Lexer *lexer, int count) {
    for (; count > 0; count--) {
        lexer->at.column++;
        if (*lexer->next++ == '\n') lexer->at = (Position){lexer->at.file, lexer->at.line + 1, 1};
    }
}

/* Returns the length of a backslash and the line end after it; 0 when `at` has none. */
static int continuation(const char *at) {
    if (at[0] != '\\') return 0;
    return at[1] == '\n' ? 2 : at[1] == '\r' && at[2] == '\n' ? 3 : 0;
}

static int line_comment(const char *at) {
    int length = 2;
    while (at[length] && at[length] != '\n')
        length += continuation(at + length) ? continuation(at + length) : 1;
    return length;
}

/* Returns the length of a comment that `#` begins; 0 for `#pragma`. No backslash continues it. */
static int hash_comment(const char *at) {
    const char *word = at + 1 + strspn(at + 1, " \t");
    return strncmp(word, "pragma", 6) ? (int)strcspn(at, "\r\n") : 0;
}

/* Returns the length of the comment at the lexer's position; 0: none. Reports a missing end. */
static int comment(const Lexer *lexer) {
    const char *at = lexer->next;
    if (at[0] == '#') return lexer->hashes ? hash_comment(at) : 0;
    if (at[0] != '/' || (at[1] != '/' && at[1] != '*')) return 0;
    if (at[1] == '/') return line_comment(at);
    const char *end = strstr(at + 2, "*/");
    if (!end) diag_error(lexer->diag, lexer->at, "this comment does not end");
    return end ? (int)(end + 2 - at) : (int)strlen(at);
}

static void skip_blanks(Lexer *lexer) {
    for (;;) {
        const char *at = lexer->next;
        int length = *at == '/' || *at == '#' ? comment(lexer) : continuation(at);
        if (!length && isspace((unsigned char)*at) && !(lexer->lines && *at == '\n')) length = 1;
        if (!length) return;
        advance(lexer, length);
    }
}

/* Returns the length of the UTF-8 letter at `at`; 0 for ASCII and invalid bytes. */
static int letter(const char *at) {
    unsigned char lead = (unsigned char)*at;
    int length = lead >= 0xf0 && lead < 0xf5   ? 4
                 : lead >= 0xe0 && lead < 0xf0 ? 3
                 : lead >= 0xc2 && lead < 0xe0 ? 2
                                               : 0;
    for (int i = 1; i < length; i++)
        if (((unsigned char)at[i] & 0xc0) != 0x80) return 0;
    return length;
}

/* Returns how many bytes the letter, digit or underscore at `at` has; 0: it is none of these. */
static int name_byte(const char *at) {
    return isalnum((unsigned char)*at) || *at == '_' ? 1 : letter(at);
}

static int name_length(const char *at) {
    int length = 0;
    for (int more = 1; more; length += more) more = name_byte(at + length);
    return length;
}

static int number_length(const char *at) {
    bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    int length = 0;
    for (int more = 1; more; length += more) {
        more = name_byte(at + length);
        if (!more && ((at[length] == '.' && at[length + 1] != '.') ||
                      ((at[length] == '+' || at[length] == '-') && length &&
                       strchr(hex ? "pP" : "eEpP", at[length - 1]))))
            more = 1;
    }
    return length;
}

static int quoted_length(const char *at) {
    int length = 1;
    while (at[length] && at[length] != at[0] && at[length] != '\n')
        length += at[length] == '\\' && at[length + 1] ? 2 : 1;
    return length + (at[length] == at[0]);
}

static int mark_length(const char *at) {
    static const char *const marks[] = {"..", "<=", ">=", "==", "!=", "&&",
                                        "||", "->", "<<", ">>", "##"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (!strncmp(at, marks[i], 2)) return 2;
    return 1;
}

static TokenKind kind_at(const char *at) {
    if (!*at || *at == '\n') return *at ? TOKEN_LINE : TOKEN_END;
    if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1])))
        return TOKEN_NUMBER;
    if (name_byte(at)) return TOKEN_NAME;
    if (*at == '"' || *at == '\'') return *at == '"' ? TOKEN_STRING : TOKEN_CHARACTER;
    return (unsigned char)*at < 0x80 ? TOKEN_MARK : TOKEN_BAD;
}

static int length_at(const Lexer *lexer, TokenKind kind) {
    const char *at = lexer->next;
    switch (kind) {
    case TOKEN_NAME: return name_length(at);
    case TOKEN_NUMBER: return number_length(at);
    case TOKEN_STRING:
    case TOKEN_CHARACTER: return quoted_length(at);
    case TOKEN_MARK: return mark_length(at);
    case TOKEN_END: return 0;
    default: return 1;
    }
}

Lexer lex_begin(Arena *arena, Diag *diag, Position at, const char *text) {
    static const char mark[] = "\xef\xbb\xbf";
    Lexer lexer = {.arena = arena, .diag = diag, .next = text, .at = at};
    if (at.line == 1 && at.column == 1 && !strncmp(text, mark, strlen(mark)))
        advance(&lexer, (int)strlen(mark));
    return lexer;
}

Token lex_next(Lexer *lexer) {
    skip_blanks(lexer);
    Token token = {.kind = kind_at(lexer->next), .text = "", .at = lexer->at, .start = lexer->next};
    token.length = length_at(lexer, token.kind);
    if (!token_ends(&token))
        token.text = arena_substring(lexer->arena, token.start, (size_t)token.length);
    if (token.kind == TOKEN_BAD)
        diag_error(lexer->diag, token.at, "the byte 0x%02x is not UTF-8 text",
                   (unsigned char)*token.start);
    advance(lexer, token.length);
    return token;
}

void lex_rest(Lexer *lexer, TokenList *list) {
    do array_push(lexer->arena, list, lex_next(lexer));
    while (list->at[list->count - 1].kind != TOKEN_END);
}

bool token_is(const Token *token, const char *text) {
    return token->kind <= TOKEN_MARK && !strcmp(token->text, text);
}

/* Returns whether blanks separate a token from `before`, or the token comes from a macro. */
static bool token_spaced(const Token *before, const Token *token) {
    return token->expanded || before->start + before->length != token->start;
}

const char *token_line(Arena *arena, const Token *first, const Token *end) {
    Text out = {.arena = arena};
    for (const Token *token = first; token < end; token++)
        text_print(&out, token > first && token_spaced(token - 1, token) ? " %s" : "%s",
                   token->text);
    return text_bytes(&out);
}

char *token_unquoted(Arena *arena, const Token *token) {
    char *text = arena_alloc(arena, (size_t)token->length + 1), *to = text;
    for (int i = 1; i < token->length && token->start[i] != '"'; i++) {
        char c = token->start[i];
        if (c == '\\' && i + 1 < token->length) {
            c = token->start[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        }
        *to++ = c;
    }
    return text;
}
