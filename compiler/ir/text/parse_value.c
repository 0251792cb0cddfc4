/* Parses a value's type, names, layout and attributes; print.c writes them. */
#include "ir/text/parse.h"

#include "ir/verify/verify.h"
#include "syntax/lex.h"

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

bool parse_fail(IrParser *parser, const char *expected) {
    return tokens_unexpected(&parser->tokens, expected);
}

/* Returns the object that is registered under `key`; NULL: there is none. */
static const void *find_interned(IrParser *parser, const char *key, size_t length) {
    InternEntry *entry;
    HASH_FIND(hh, parser->interned, key, length, entry);
    return entry ? entry->object : NULL;
}

static const void *add_interned(IrParser *parser, const char *key, size_t length,
                                const void *object) {
    InternEntry *entry = arena_new(parser->arena, InternEntry);
    entry->object = object;
    const char *kept = arena_substring(parser->arena, key, length);
    HASH_ADD_KEYPTR(hh, parser->interned, kept, length, entry);
    return object;
}

/* Returns an interned copy of a string. */
static const char *ir_shared_string(IrParser *parser, const char *string) {
    char *key = arena_format(parser->arena, "\"%s", string);
    const char *known = find_interned(parser, key, strlen(key));
    return known ? known : add_interned(parser, key, strlen(key), key + 1);
}

/* ---- basic elements ---- */

bool parse_int(IrParser *parser, int64_t *value) {
    Tokens *tokens = &parser->tokens;
    bool negative = tokens_take(tokens, "-");
    if (tokens->token->kind != TOKEN_NUMBER) return parse_fail(parser, "a number");
    char *end;
    errno = 0;
    long long number = strtoll(tokens->token->text, &end, 10);
    if (*end || errno == ERANGE) return parse_fail(parser, "an integer of 64 bits");
    *value = negative ? -number : number;
    tokens_next(tokens);
    return true;
}

bool parse_double(IrParser *parser, double *value) {
    Tokens *tokens = &parser->tokens;
    bool negative = tokens_take(tokens, "-");
    if (tokens->token->kind != TOKEN_NUMBER && tokens->token->kind != TOKEN_NAME)
        return parse_fail(parser, "a number");
    char *end;
    double number = strtod(tokens->token->text, &end);
    if (*end) return parse_fail(parser, "a number");
    *value = negative ? -number : number;
    tokens_next(tokens);
    return true;
}

bool parse_string(IrParser *parser, const char **string) {
    Tokens *tokens = &parser->tokens;
    if (tokens->token->kind != TOKEN_STRING) return parse_fail(parser, "a string");
    *string = ir_shared_string(parser, token_unquoted(parser->arena, tokens->token));
    tokens_next(tokens);
    return true;
}

bool parse_name(IrParser *parser, const char **name) {
    Tokens *tokens = &parser->tokens;
    if (tokens->token->kind != TOKEN_NAME) return parse_fail(parser, "a name");
    *name = ir_shared_string(parser, tokens->token->text);
    tokens_next(tokens);
    return true;
}

bool parse_position(IrParser *parser, Position *at) {
    Tokens *tokens = &parser->tokens;
    int64_t line, column;
    *at = (Position){0};
    if (!tokens_take(tokens, "@")) return true;
    at->file = parser->module ? parser->module->source->file : NULL;
    if (tokens->token->kind == TOKEN_STRING) {
        if (!parse_string(parser, &at->file) || !tokens_expect(tokens, ":", "after the file"))
            return false;
        if (!*at->file) at->file = NULL;
    }
    if (!parse_int(parser, &line) || !tokens_expect(tokens, ":", "after the line") ||
        !parse_int(parser, &column))
        return false;
    at->line = (int)line;
    at->column = (int)column;
    if (!line) *at = (Position){0};
    return true;
}

bool parse_dtype(IrParser *parser, DType *dtype) {
    Tokens *tokens = &parser->tokens;
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (tokens_is(tokens, dtype_name((DType)i))) {
            *dtype = (DType)i;
            tokens_next(tokens);
            return true;
        }
    return parse_fail(parser, "an element type");
}

bool parse_type(IrParser *parser, Type *type) {
    Tokens *tokens = &parser->tokens;
    int64_t extent[IR_MAX_RANK];
    const char *start = tokens->token->start;
    type->rank = 0;
    if (!parse_dtype(parser, &type->dtype) || !tokens_expect(tokens, "[", "after the element type"))
        return false;
    while (!tokens_is(tokens, "]")) {
        if (type->rank == IR_MAX_RANK)
            return parse_fail(parser, "']' after the last extent that a tensor may have");
        if ((type->rank && !tokens_expect(tokens, ",", "between two extents")) ||
            !parse_int(parser, &extent[type->rank]))
            return false;
        if (extent[type->rank++] < 0) return parse_fail(parser, "an extent from 0 on, before this");
    }
    type->extent = extent;
    if (type_elements(*type) > IR_MAX_ELEMENTS)
        return parse_fail(parser, "fewer elements than 2^56, before this");
    size_t length = (size_t)(tokens->token->start - start);
    tokens_next(tokens);
    type->extent = find_interned(parser, start, length);
    if (!type->extent)
        type->extent =
            add_interned(parser, start, length,
                         arena_copy(parser->arena, extent, sizeof *extent * (size_t)type->rank));
    return true;
}

/* ---- values ---- */

bool parse_new_id(IrParser *parser, int *id) {
    Tokens *tokens = &parser->tokens;
    int64_t number;
    Position at = tokens->token->at;
    if (!tokens_expect(tokens, "%", "before the number of a value") || !parse_int(parser, &number))
        return false;
    *id = (int)number;
    if (number < 0 || number >= parser->next_id) {
        diag_error(parser->diag, at, "%%%lld is not below the module's `next %d`",
                   (long long)number, parser->next_id);
        return false;
    }
    if (parser->values.at[*id]) {
        diag_error(parser->diag, at, "%%%d is made twice", *id);
        return false;
    }
    return true;
}

void define_value(IrParser *parser, Value *value, int id) {
    value->id = id;
    parser->values.at[id] = value;
}

bool parse_ref(IrParser *parser, Value **value) {
    Tokens *tokens = &parser->tokens;
    int64_t number;
    Position at = tokens->token->at;
    *value = NULL;
    if (tokens_take(tokens, "-")) return true;
    if (!tokens_expect(tokens, "%", "before the number of a value") || !parse_int(parser, &number))
        return false;
    if (number < 0 || number >= parser->next_id || !parser->values.at[number]) {
        diag_error(parser->diag, at, "%%%lld is not made before this line", (long long)number);
        return false;
    }
    *value = parser->values.at[number];
    return true;
}

bool parse_dim_name(IrParser *parser, DimName *name) {
    int64_t part = 0;
    *name = (DimName){0};
    if (tokens_take(&parser->tokens, "_")) return true;
    if (!parse_name(parser, &name->name) ||
        (tokens_take(&parser->tokens, ":") && !parse_int(parser, &part)))
        return false;
    name->part = (int)part;
    return (part >= 0 && part < IR_MAX_FACTORS) ||
           parse_fail(parser, "the number of a part, before this");
}

/* Reads one dimension of `dims`: a name, or the names of its factors in parentheses. */
static bool parse_dim(IrParser *parser, Dim *dim) {
    Array(DimName) names = {0};
    bool several = tokens_take(&parser->tokens, "(");
    do {
        DimName name;
        if (!parse_dim_name(parser, &name)) return false;
        array_push(parser->arena, &names, name);
    } while (several && !tokens_is(&parser->tokens, ")"));
    dim->count = several || names.at[0].name ? names.count : 0;
    dim->names = names.at;
    return !several || tokens_expect(&parser->tokens, ")", "after the factors' names");
}

static bool parse_dims(IrParser *parser, Value *value) {
    Tokens *tokens = &parser->tokens;
    Dim dims[IR_MAX_RANK] = {0};
    const char *start = tokens->token->start;
    if (!tokens_expect(tokens, "(", "after 'dims'")) return false;
    for (int d = 0; d < value->type.rank; d++)
        if ((d && !tokens_expect(tokens, ",", "between two names")) || !parse_dim(parser, &dims[d]))
            return false;
    size_t length = (size_t)(tokens->token->start - start);
    if (!tokens_expect(tokens, ")", "after the names")) return false;
    value->dims = find_interned(parser, start, length);
    if (!value->dims)
        value->dims =
            add_interned(parser, start, length,
                         arena_copy(parser->arena, dims, sizeof *dims * (size_t)value->type.rank));
    return true;
}

static bool parse_storage(IrParser *parser, Value *value) {
    Tokens *tokens = &parser->tokens;
    int64_t id;
    Position at = tokens->token->at;
    if (!tokens_expect(tokens, "%", "before the number of a value") || !parse_int(parser, &id))
        return false;
    array_push(parser->arena, &parser->storages,
               (StorageFix){.value = value, .storage = (int)id, .at = at});
    return true;
}

/* Reads a subview, %WHOLE DIMENSION START; fix_storages sets it in the value. */
static bool parse_within(IrParser *parser, Value *value) {
    Tokens *tokens = &parser->tokens;
    int64_t id, dim, start;
    Position at = tokens->token->at;
    if (!tokens_expect(tokens, "%", "before the number of a value") || !parse_int(parser, &id) ||
        !parse_int(parser, &dim) || !parse_int(parser, &start))
        return false;
    StorageFix fix = {value, (int)id, true, {.dim = (int)dim, .start = start}, at};
    array_push(parser->arena, &parser->storages, fix);
    return true;
}

static bool parse_micro(IrParser *parser, Value *value) {
    int64_t dim = 0;
    bool sum = tokens_take(&parser->tokens, "sum");
    if (!sum && (!tokens_expect(&parser->tokens, "rows", "or sum") || !parse_int(parser, &dim)))
        return false;
    value->micro = (Micro){sum ? MICRO_SUM : MICRO_ROWS, (int)dim};
    return true;
}

/* Reads a chunk, DIMENSION START EXTENT. */
static bool parse_chunk(IrParser *parser, Value *value) {
    int64_t dim, start, extent;
    if (!parse_int(parser, &dim) || !parse_int(parser, &start) || !parse_int(parser, &extent))
        return false;
    if (dim < 0 || dim >= value->type.rank || start < 0 || extent < 0 ||
        start > extent - value->type.extent[dim])
        return parse_fail(parser, "rows of a larger tensor along a dimension, before this");
    Chunk chunk = {(int)dim, start, extent};
    value->chunk = arena_copy(parser->arena, &chunk, sizeof chunk);
    return true;
}

/* Reads the `<` in front of a layout. Returns the `>` that ends the layout; NULL after an error. */
static const Token *open_layout(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    const Token *end = tokens->token;
    while (!token_ends(end) && !token_is(end, ">")) end++;
    if (!tokens_is(tokens, "<") || token_ends(end)) {
        parse_fail(parser, tokens_is(tokens, "<") ? "a layout that ends with '>'" : "'<'");
        return NULL;
    }
    tokens_next(tokens);
    return end;
}

const Layout *parse_layout(IrParser *parser, Type type) {
    Tokens *tokens = &parser->tokens;
    const Token *end = open_layout(parser), *first = tokens->token;
    if (!end) return NULL;
    parser->layout_at = first->at;
    size_t length = (size_t)(end->start - first->start);
    const Layout *layout = find_interned(parser, first->start, length), *known = layout;
    if (known) tokens->token = end;
    else if (!(layout = layout_parse(tokens, ">"))) return NULL;
    if (!layout_check(parser->diag, first->at, layout, type_shape(type))) return NULL;
    if (!known)
        layout = add_interned(parser, first->start, length,
                              layout_intern(module_interned(parser->module), layout));
    return tokens_expect(tokens, ">", "after the layout") ? layout : NULL;
}

/* Reads <LAYOUT> @POSITION after `shard`: the layout that the source gives. */
static bool parse_written(IrParser *parser, Value *value) {
    const UserLayout *written =
        open_layout(parser) ? user_layout_parse(&parser->tokens, ">") : NULL;
    if (!written || !tokens_expect(&parser->tokens, ">", "after the layout")) return false;
    UserLayout *own = arena_copy(parser->arena, written, sizeof *written);
    value->user_layout = own;
    return !tokens_is(&parser->tokens, "@") || parse_position(parser, &own->at);
}

/* Reads one attribute of a value. Sets *done if the current token begins no attribute. */
static bool parse_mark(IrParser *parser, Value *value, bool *done) {
    Tokens *tokens = &parser->tokens;
    if (tokens->token->kind == TOKEN_STRING) return parse_string(parser, &value->name);
    if (tokens_take(tokens, "dims")) return parse_dims(parser, value);
    if (tokens_take(tokens, "shard")) return parse_written(parser, value);
    if (tokens_take(tokens, "layout"))
        return (value->layout = parse_layout(parser, value->type)) != NULL;
    if (tokens_take(tokens, "micro")) return parse_micro(parser, value);
    if (tokens_take(tokens, "chunk")) return parse_chunk(parser, value);
    if (tokens_take(tokens, "storage")) return parse_storage(parser, value);
    if (tokens_take(tokens, "subview")) return parse_within(parser, value);
    if (tokens_is(tokens, "@")) return parse_position(parser, &value->at);
    *done = true;
    return true;
}

bool parse_value(IrParser *parser, Value *value) {
    Type type;
    if (!parse_type(parser, &type)) return false;
    if (!value->type.extent) value->type = type;
    for (bool done = false; !done;)
        if (!parse_mark(parser, value, &done)) return false;
    if (!type_equal(type, value->type))
        return parse_fail(parser, "the type that the rule gives, before this");
    return !value->layout ||
           ir_verify_layout(parser->module, value, value->layout, parser->layout_at);
}
