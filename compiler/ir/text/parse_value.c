#include "ir/text/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define uthash_malloc(size) arena_alloc(parser->arena, (size))
#define uthash_free(pointer, size) ((void)(pointer))
#include <uthash.h>

typedef struct InternEntry {
    const void *object;
    UT_hash_handle hh;
} InternEntry;

bool parse_fail(IrParser *parser, const char *expected)
{
    diag_error(parser->diag, parser->lexer.token.at, "expected %s, not %s", expected, lex_shown(&parser->lexer));
    return false;
}

/* The object known under `key`; NULL when there is none. */
static const void *find_interned(IrParser *parser, const char *key, size_t length)
{
    InternEntry *entry;
    HASH_FIND(hh, parser->interned, key, length, entry);
    return entry ? entry->object : NULL;
}

static const void *add_interned(IrParser *parser, const char *key, size_t length, const void *object)
{
    InternEntry *entry = arena_new(parser->arena, InternEntry);
    entry->object = object;
    const char *kept = arena_substring(parser->arena, key, length);
    HASH_ADD_KEYPTR(hh, parser->interned, kept, length, entry);
    return object;
}

const char *ir_shared_string(IrParser *parser, const char *string)
{
    char *key = arena_format(parser->arena, "\"%s", string);
    const char *known = find_interned(parser, key, strlen(key));
    return known ? known : add_interned(parser, key, strlen(key), key + 1);
}

/* ---- basic pieces ---- */

bool parse_int(IrParser *parser, int64_t *value)
{
    Lexer *lexer = &parser->lexer;
    bool negative = lex_take(lexer, "-");
    if (lexer->token.kind != TOKEN_NUMBER)
        return parse_fail(parser, "a number");
    char *end;
    errno = 0;
    long long number = strtoll(lexer->token.start, &end, 10);
    if (end != lexer->token.start + lexer->token.length || errno == ERANGE)
        return parse_fail(parser, "an integer of 64 bits");
    *value = negative ? -number : number;
    lex_next(lexer);
    return true;
}

bool parse_double(IrParser *parser, double *value)
{
    Lexer *lexer = &parser->lexer;
    bool negative = lex_take(lexer, "-");
    if (lexer->token.kind != TOKEN_NUMBER && lexer->token.kind != TOKEN_NAME)
        return parse_fail(parser, "a number");
    char *end;
    double number = strtod(lexer->token.start, &end);
    if (end != lexer->token.start + lexer->token.length)
        return parse_fail(parser, "a number");
    *value = negative ? -number : number;
    lex_next(lexer);
    return true;
}

bool parse_string(IrParser *parser, const char **string)
{
    if (parser->lexer.token.kind != TOKEN_STRING)
        return parse_fail(parser, "a string");
    *string = ir_shared_string(parser, lex_spelling(&parser->lexer));
    lex_next(&parser->lexer);
    return true;
}

bool parse_name(IrParser *parser, const char **name)
{
    if (parser->lexer.token.kind != TOKEN_NAME)
        return parse_fail(parser, "a name");
    *name = ir_shared_string(parser, lex_spelling(&parser->lexer));
    lex_next(&parser->lexer);
    return true;
}

bool parse_position(IrParser *parser, Position *at)
{
    int64_t line, column;
    *at = (Position){0};
    if (!lex_take(&parser->lexer, "@"))
        return true;
    at->file = parser->module ? parser->module->source : NULL;
    if (parser->lexer.token.kind == TOKEN_STRING) {
        if (!parse_string(parser, &at->file) || !lex_expect(&parser->lexer, ":", "after the file"))
            return false;
        if (!*at->file)
            at->file = NULL;
    }
    if (!parse_int(parser, &line) || !lex_expect(&parser->lexer, ":", "after the line") || !parse_int(parser, &column))
        return false;
    at->line = (int)line;
    at->column = (int)column;
    if (!line)
        *at = (Position){0};
    return true;
}

bool parse_dtype(IrParser *parser, DType *dtype)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (lex_is(&parser->lexer, dtype_name((DType)i))) {
            *dtype = (DType)i;
            lex_next(&parser->lexer);
            return true;
        }
    return parse_fail(parser, "an element type");
}

/* So that bytes can be counted. */
static const int64_t MOST_ELEMENTS = (int64_t)1 << 56;

bool parse_type(IrParser *parser, Type *type)
{
    int64_t extent[IR_MAX_RANK];
    const char *start = parser->lexer.token.start;
    type->rank = 0;
    if (!parse_dtype(parser, &type->dtype) || !lex_expect(&parser->lexer, "[", "after the element type"))
        return false;
    while (!lex_is(&parser->lexer, "]")) {
        if (type->rank == IR_MAX_RANK)
            return parse_fail(parser, "']' after the last extent that a tensor may have");
        if ((type->rank && !lex_expect(&parser->lexer, ",", "between two extents")) || !parse_int(parser, &extent[type->rank]))
            return false;
        if (extent[type->rank++] < 0)
            return parse_fail(parser, "an extent from 0 on, before this");
    }
    type->extent = extent;
    if (type_elements(*type) > MOST_ELEMENTS)
        return parse_fail(parser, "fewer elements than 2^56, before this");
    size_t length = (size_t)(parser->lexer.token.start - start);
    lex_next(&parser->lexer);
    type->extent = find_interned(parser, start, length);
    if (!type->extent)
        type->extent = add_interned(parser, start, length, arena_copy(parser->arena, extent, sizeof *extent * (size_t)type->rank));
    return true;
}

/* What stands up to `stop` on this line; the current token is the one after it then. NULL when there is no `stop`. */
static const char *raw_until(IrParser *parser, char stop, Position *at)
{
    Lexer *lexer = &parser->lexer;
    const char *start = lexer->next, *end = start + strcspn(start, "\n");
    const char *found = memchr(start, stop, (size_t)(end - start));
    if (!found)
        return NULL;
    *at = lexer->at;
    lexer->at.column += (int)(found + 1 - start);
    lexer->next = found + 1;
    lex_next(lexer);
    return arena_substring(parser->arena, start, (size_t)(found - start));
}

bool parse_layout(IrParser *parser, const Layout **layout)
{
    Position at;
    if (!lex_is(&parser->lexer, "<"))
        return parse_fail(parser, "'<'");
    const char *text = raw_until(parser, '>', &at);
    if (!text)
        return parse_fail(parser, "a layout that ends with '>'");
    *layout = find_interned(parser, text, strlen(text));
    if (!*layout) {
        *layout = layout_parse(parser->arena, parser->diag, at, text);
        if (*layout)
            add_interned(parser, text, strlen(text), *layout);
    }
    return *layout != NULL;
}

/* ---- values ---- */

bool parse_new_id(IrParser *parser, int *id)
{
    int64_t number;
    Position at = parser->lexer.token.at;
    if (!lex_expect(&parser->lexer, "%", "before the number of a value") || !parse_int(parser, &number))
        return false;
    *id = (int)number;
    if (number < 0 || number >= parser->next_id) {
        diag_error(parser->diag, at, "%%%lld is not below the module's `next %d`", (long long)number, parser->next_id);
        return false;
    }
    if (parser->values.at[*id]) {
        diag_error(parser->diag, at, "%%%d is made twice", *id);
        return false;
    }
    return true;
}

void define_value(IrParser *parser, Value *value, int id)
{
    value->id = id;
    parser->values.at[id] = value;
}

bool parse_ref(IrParser *parser, Value **value)
{
    int64_t number;
    Position at = parser->lexer.token.at;
    *value = NULL;
    if (lex_take(&parser->lexer, "-"))
        return true;
    if (!lex_expect(&parser->lexer, "%", "before the number of a value") || !parse_int(parser, &number))
        return false;
    if (number < 0 || number >= parser->next_id || !parser->values.at[number]) {
        diag_error(parser->diag, at, "%%%lld is not made before this line", (long long)number);
        return false;
    }
    *value = parser->values.at[number];
    return true;
}

/* One name of dims: NAME, _ for none, or (several factors). */
static bool parse_dim(IrParser *parser, const char **name)
{
    Lexer *lexer = &parser->lexer;
    *name = NULL;
    if (!lex_take(lexer, "(")) {
        if (lex_take(lexer, "_"))
            return true;
        return parse_name(parser, name);
    }
    Text text = {.arena = parser->arena};
    while (!lex_is(lexer, ")") && lexer->token.kind != TOKEN_LINE && lexer->token.kind != TOKEN_END) {
        text_string(&text, text.length ? " " : "");
        text_append(&text, lexer->token.start, (size_t)lexer->token.length);
        lex_next(lexer);
    }
    *name = ir_shared_string(parser, text_bytes(&text));
    return lex_expect(lexer, ")", "after the factors' names");
}

static bool parse_dims(IrParser *parser, Value *value)
{
    const char *names[IR_MAX_RANK] = {0};
    const char *start = parser->lexer.token.start;
    if (!lex_expect(&parser->lexer, "(", "after 'dims'"))
        return false;
    for (int d = 0; d < value->type.rank; d++)
        if ((d && !lex_expect(&parser->lexer, ",", "between two names")) || !parse_dim(parser, &names[d]))
            return false;
    size_t length = (size_t)(parser->lexer.token.start - start);
    if (!lex_expect(&parser->lexer, ")", "after the names"))
        return false;
    value->dims = find_interned(parser, start, length);
    if (!value->dims)
        value->dims = add_interned(parser, start, length, arena_copy(parser->arena, names, sizeof *names * (size_t)(value->type.rank + 1)));
    return true;
}

static bool parse_storage(IrParser *parser, Value *value)
{
    int64_t id;
    Position at = parser->lexer.token.at;
    if (!lex_expect(&parser->lexer, "%", "before the number of a value") || !parse_int(parser, &id))
        return false;
    array_push(parser->arena, &parser->storages, (StorageFix){value, (int)id, at});
    return true;
}

static bool parse_micro(IrParser *parser, Value *value)
{
    int64_t number = MICRO_SUM;
    if (!lex_take(&parser->lexer, "sum") && !parse_int(parser, &number))
        return false;
    value->micro = (int)number;
    return true;
}

/* A layout that fits the value. */
static bool parse_value_layout(IrParser *parser, const Value *value, const Layout **layout)
{
    Position at = parser->lexer.at;
    return parse_layout(parser, layout) && layout_check(parser->diag, at, *layout, type_shape(value->type));
}

/* One mark of a value; *done when the current token begins none. */
static bool parse_mark(IrParser *parser, Value *value, bool *done)
{
    Lexer *lexer = &parser->lexer;
    if (lexer->token.kind == TOKEN_STRING)
        return parse_string(parser, &value->name);
    if (lex_take(lexer, "dims"))
        return parse_dims(parser, value);
    if (lex_take(lexer, "shard"))
        return parse_string(parser, &value->shard_text) && parse_position(parser, &value->shard_at);
    if (lex_take(lexer, "resolved"))
        return parse_value_layout(parser, value, &value->shard);
    if (lex_take(lexer, "layout"))
        return parse_value_layout(parser, value, &value->layout);
    if (lex_take(lexer, "micro"))
        return parse_micro(parser, value);
    if (lex_take(lexer, "storage"))
        return parse_storage(parser, value);
    if (lex_is(lexer, "@"))
        return parse_position(parser, &value->at);
    *done = true;
    return true;
}

bool parse_value(IrParser *parser, Value *value)
{
    Type type;
    if (!parse_type(parser, &type))
        return false;
    if (!value->type.extent)
        value->type = type;
    for (bool done = false; !done;)
        if (!parse_mark(parser, value, &done))
            return false;
    return type_equal(type, value->type) || parse_fail(parser, "the type that the rule gives, before this");
}
