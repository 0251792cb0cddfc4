/* Reads the operators that a header declares: a pragma with a rule, followed by the prototype of a
 * C function. */
#include "operators.h"

#include "syntax/lex.h"
#include "syntax/tokens.h"

#include <string.h>

/* Reads a header line by line; `at` and `line` are the text and the number of the next line. */
typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *file, *at;
    int line;
} Reader;

/* Returns the next line, joined with lines that backslashes continue; moves to the line after. */
static const char *take_line(Reader *reader) {
    const char *start = reader->at, *end = start;
    bool joined = true;
    while (joined) {
        end += strcspn(end, "\n");
        joined = *end && end > start && end[-1] == '\\';
        reader->line++;
        end += *end == '\n';
    }
    reader->at = end;
    return arena_substring(reader->arena, start, (size_t)(end - start));
}

static bool param_kind(const char *type, ParamKind *kind) {
    static const struct {
        const char *type;
        ParamKind kind;
    } kinds[] = {{"ht_tensor", PARAM_TENSOR}, {"ht_tensors", PARAM_TENSORS},
                 {"ht_dims", PARAM_SHAPE},    {"ht_dtype", PARAM_DTYPE},
                 {"int", PARAM_INT},          {"bool", PARAM_INT},
                 {"int64_t", PARAM_INT},      {"long", PARAM_INT},
                 {"float", PARAM_FLOAT},      {"double", PARAM_FLOAT}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(type, kinds[i].type)) {
            *kind = kinds[i].kind;
            return true;
        }
    return false;
}

/* Reads `TYPE NAME`; false after an error. */
static bool read_param(Tokens *tokens, OpParam *param) {
    if (tokens->token->kind != TOKEN_NAME || !param_kind(tokens->token->text, &param->kind))
        return tokens_unexpected(tokens, "the type of an operator's parameter");
    tokens_next(tokens);
    param->name = tokens_name(tokens, "the name of a parameter");
    return param->name != NULL;
}

/* Reads the prototype `TYPE NAME(PARAMETERS);` after a rule. Returns false after an error, and for
 * a function with a body. */
static bool read_prototype(const Reader *reader, Declaration *declaration) {
    size_t length = strcspn(reader->at, ";{");
    Tokens tokens =
        tokens_of(reader->arena, reader->diag, (Position){reader->file, reader->line, 1},
                  arena_substring(reader->arena, reader->at, length));
    Array(OpParam) params = {0};
    declaration->def.at = tokens.token->at;
    declaration->result = tokens_name(&tokens, "the type of an operator's result");
    declaration->def.name =
        declaration->result ? tokens_name(&tokens, "the name of an operator") : NULL;
    if (!declaration->def.name || !tokens_expect(&tokens, "(", "after the operator's name"))
        return false;
    const Token *first = tokens.token;
    for (bool more = !tokens_take(&tokens, "void"); more; more = tokens_take(&tokens, ",")) {
        OpParam param;
        if (!read_param(&tokens, &param)) return false;
        array_push(reader->arena, &params, param);
        declaration->def.attr_count += param.kind != PARAM_TENSOR && param.kind != PARAM_TENSORS;
    }
    declaration->params = token_line(reader->arena, first, tokens.token);
    declaration->def.params = params.at;
    declaration->def.param_count = params.count;
    return tokens_expect(&tokens, ")", "after the parameters") && reader->at[length] == ';';
}

Declarations declarations_read(Arena *arena, Diag *diag, const char *file, const char *text) {
    static const char BEGIN[] = "#pragma hspmd op ";
    Reader reader = {arena, diag, file, text, 1};
    Declarations all = {0};
    while (*reader.at) {
        Position at = {file, reader.line, (int)sizeof BEGIN};
        const char *line = take_line(&reader);
        Declaration declaration = {0};
        if (strncmp(line, BEGIN, strlen(BEGIN)) || !read_prototype(&reader, &declaration)) continue;
        Tokens tokens = tokens_of(arena, diag, at, line + strlen(BEGIN));
        declaration.def.rule =
            rule_parse(&tokens, declaration.def.params, declaration.def.param_count);
        if (declaration.def.rule) array_push(arena, &all, declaration);
    }
    return all;
}
