#include "strategy/token.h"

#include <ctype.h>
#include <string.h>

typedef struct Lexer {
    Arena *arena;
    Diag *diag;
    const char *next;
    Position at; // of *next
    TokenList *tokens;
} Lexer;

static void advance(Lexer *lexer, size_t count)
{
    for (; count; count--, lexer->next++) {
        lexer->at.column++;
        if (*lexer->next == '\n')
            lexer->at = (Position){lexer->at.file, lexer->at.line + 1, 1};
    }
}

/* Makes the next `length` bytes a token, and passes over them. */
static void take(Lexer *lexer, TokenKind kind, size_t length)
{
    Token token = {kind, arena_substring(lexer->arena, lexer->next, kind == TOKEN_LINE ? 0 : length), lexer->at};
    array_push(lexer->arena, lexer->tokens, token);
    advance(lexer, length);
}

/* How many bytes a line end behind a backslash takes at `text`; 0 where there is none. */
static size_t splice_length(const char *text)
{
    if (text[0] != '\\')
        return 0;
    return text[1] == '\n' ? 2 : text[1] == '\r' && text[2] == '\n' ? 3 : 0;
}

static void skip_line_comment(Lexer *lexer)
{
    while (*lexer->next && *lexer->next != '\n')
        advance(lexer, splice_length(lexer->next) ? splice_length(lexer->next) : 1);
}

static void skip_block_comment(Lexer *lexer)
{
    Position begin = lexer->at;
    const char *end = strstr(lexer->next + 2, "*/");
    if (!end)
        diag_error(lexer->diag, begin, "this comment does not end");
    advance(lexer, end ? (size_t)(end + 2 - lexer->next) : strlen(lexer->next));
}

/* Passes over blanks, comments and joined lines; returns whether there were any. */
static bool skip_blank(Lexer *lexer)
{
    const char *text = lexer->next;
    if (*text == '/' && text[1] == '/')
        skip_line_comment(lexer);
    else if (*text == '/' && text[1] == '*')
        skip_block_comment(lexer);
    else if (splice_length(text))
        advance(lexer, splice_length(text));
    else if (*text == ' ' || *text == '\t' || *text == '\r' || *text == '\v' || *text == '\f')
        advance(lexer, 1);
    else
        return false;
    return true;
}

/* The length of the UTF-8 sequence at `text`; 0 when it is none. */
static size_t utf8_length(const char *text)
{
    unsigned char lead = (unsigned char)*text;
    size_t length = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xc2 && lead < 0xe0 ? 2 : 0;
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* Reports a character that stands in no token. */
static void take_bad(Lexer *lexer)
{
    unsigned char byte = (unsigned char)*lexer->next;
    size_t length = byte >= 0x80 ? utf8_length(lexer->next) : 1;
    if (!length)
        diag_error(lexer->diag, lexer->at, "the byte 0x%02x is not UTF-8 text", byte);
    else if (byte >= 0x80 || isprint(byte))
        diag_error(lexer->diag, lexer->at, "unexpected character '%.*s' in a strategy", (int)length, lexer->next);
    else
        diag_error(lexer->diag, lexer->at, "unexpected byte 0x%02x in a strategy", byte);
    take(lexer, TOKEN_BAD, length ? length : 1);
}

static bool is_name_byte(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t word_length(const char *text)
{
    size_t length = 0;
    while (is_name_byte(text[length]) || (text[length] == '.' && isdigit((unsigned char)*text)))
        length++;
    return length;
}

static void take_token(Lexer *lexer)
{
    const char *text = lexer->next;
    if (*text == '\n')
        take(lexer, TOKEN_LINE, 1);
    else if (isdigit((unsigned char)*text))
        take(lexer, TOKEN_NUMBER, word_length(text));
    else if (is_name_byte(*text))
        take(lexer, TOKEN_NAME, word_length(text));
    else if ((*text == '<' || *text == '>') && text[1] == *text)
        take(lexer, TOKEN_PUNCT, 2);
    else if (strchr("+-*/%():,=", *text))
        take(lexer, TOKEN_PUNCT, 1);
    else
        take_bad(lexer);
}

/* Passes over the byte order mark that some editors write at the start of a file. */
static void skip_mark(Lexer *lexer)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (lexer->at.line == 1 && lexer->at.column == 1 && !strncmp(lexer->next, mark, strlen(mark)))
        advance(lexer, strlen(mark));
}

void strategy_tokens(Arena *arena, Diag *diag, const StrategyText *texts, int text_count, TokenList *tokens)
{
    Lexer lexer = {.arena = arena, .diag = diag, .tokens = tokens};
    for (int i = 0; i < text_count; i++) {
        lexer.next = texts[i].text;
        lexer.at = texts[i].at;
        skip_mark(&lexer);
        while (*lexer.next)
            if (!skip_blank(&lexer))
                take_token(&lexer);
        take(&lexer, TOKEN_LINE, 0);
    }
    array_push(arena, tokens, ((Token){TOKEN_END, "", lexer.at}));
}
