#include "syntax/lex.h"

#include <ctype.h>
#include <string.h>

static void advance(Lexer *lexer, int count)
{
    for (; count > 0; count--) {
        if (*lexer->next++ == '\n') {
            lexer->at.line++;
            lexer->at.column = 1;
        } else {
            lexer->at.column++;
        }
    }
}

/* The bytes of a line's end behind a backslash, backslash included; 0 when `at` is none. */
static int continuation(const char *at)
{
    if (at[0] != '\\')
        return 0;
    return at[1] == '\n' ? 2 : at[1] == '\r' && at[2] == '\n' ? 3 : 0;
}

static int comment(const char *at)
{
    if (at[0] == '/' && at[1] == '/')
        return (int)strcspn(at, "\n");
    if (at[0] != '/' || at[1] != '*')
        return 0;
    const char *end = strstr(at + 2, "*/");
    return end ? (int)(end + 2 - at) : (int)strlen(at);
}

static void skip_blanks(Lexer *lexer)
{
    for (;;) {
        const char *at = lexer->next;
        int length = continuation(at);
        if (!length)
            length = comment(at);
        if (!length && *at && isspace((unsigned char)*at) && !(lexer->lines && *at == '\n'))
            length = 1;
        if (!length)
            return;
        advance(lexer, length);
    }
}

static bool name_begins(char c) { return isalpha((unsigned char)c) || c == '_'; }
static bool name_goes_on(char c) { return isalnum((unsigned char)c) || c == '_'; }

static int name_length(const char *at, bool dotted)
{
    int length = 0;
    while (name_goes_on(at[length]) || (dotted && at[length] == '.' && name_goes_on(at[length + 1])))
        length++;
    return length;
}

/* A number as C writes it; a dot that begins `..` does not belong to it. */
static int number_length(const char *at)
{
    int length = 0;
    while (isalnum((unsigned char)at[length]) || (at[length] == '.' && at[length + 1] != '.') ||
           ((at[length] == '+' || at[length] == '-') && length > 0 && strchr("eEpP", at[length - 1]) &&
            !(at[0] == '0' && strchr("xX", at[1]) && strchr("eE", at[length - 1]))))
        length++;
    return length;
}

static int string_length(const char *at)
{
    int length = 1;
    while (at[length] && at[length] != '"' && at[length] != '\n')
        length += at[length] == '\\' && at[length + 1] ? 2 : 1;
    return length + (at[length] == '"');
}

static int mark_length(const char *at)
{
    static const char *const marks[] = {"..", "<=", ">=", "==", "!=", "&&", "||", "->"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (!strncmp(at, marks[i], 2))
            return 2;
    int length = 1; // a letter of UTF-8 is one mark
    while (((unsigned char)at[0] & 0x80) && ((unsigned char)at[length] & 0xc0) == 0x80)
        length++;
    return length;
}

void lex_next(Lexer *lexer)
{
    skip_blanks(lexer);
    const char *at = lexer->next;
    Token token = {.start = at, .at = lexer->at};
    if (!*at) {
        token.kind = TOKEN_END;
    } else if (*at == '\n') {
        token.kind = TOKEN_LINE;
        token.length = 1;
    } else if (name_begins(*at)) {
        token.kind = TOKEN_NAME;
        token.length = name_length(at, lexer->dotted);
    } else if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1]))) {
        token.kind = TOKEN_NUMBER;
        token.length = number_length(at);
    } else if (*at == '"') {
        token.kind = TOKEN_STRING;
        token.length = string_length(at);
    } else {
        token.kind = TOKEN_MARK;
        token.length = mark_length(at);
    }
    lexer->token = token;
    advance(lexer, token.length);
}

void lex_begin(Lexer *lexer, Arena *arena, Diag *diag, Position at, const char *text, bool lines)
{
    *lexer = (Lexer){.arena = arena, .diag = diag, .next = text, .at = at, .lines = lines};
    lex_next(lexer);
}

bool lex_is(const Lexer *lexer, const char *spelling)
{
    const Token *token = &lexer->token;
    return (token->kind == TOKEN_NAME || token->kind == TOKEN_MARK) && (int)strlen(spelling) == token->length &&
           !memcmp(token->start, spelling, (size_t)token->length);
}

bool lex_take(Lexer *lexer, const char *spelling)
{
    bool is = lex_is(lexer, spelling);
    if (is)
        lex_next(lexer);
    return is;
}

bool lex_expect(Lexer *lexer, const char *spelling, const char *where)
{
    if (lex_take(lexer, spelling))
        return true;
    diag_error(lexer->diag, lexer->token.at, "expected '%s' %s, not %s", spelling, where, lex_shown(lexer));
    return false;
}

/* What a quoted string stands for. */
static char *unquoted(Arena *arena, const Token *token)
{
    char *text = arena_alloc(arena, (size_t)token->length + 1), *to = text;
    for (int i = 1; i < token->length; i++) {
        char c = token->start[i];
        if (c == '"')
            break;
        if (c == '\\' && i + 1 < token->length) {
            c = token->start[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        }
        *to++ = c;
    }
    return text;
}

char *lex_spelling(const Lexer *lexer)
{
    if (lexer->token.kind == TOKEN_STRING)
        return unquoted(lexer->arena, &lexer->token);
    return arena_substring(lexer->arena, lexer->token.start, (size_t)lexer->token.length);
}

const char *lex_shown(const Lexer *lexer)
{
    switch (lexer->token.kind) {
    case TOKEN_END: return "the end";
    case TOKEN_LINE: return "the end of the line";
    default: return arena_format(lexer->arena, "'%.*s'", lexer->token.length, lexer->token.start);
    }
}
