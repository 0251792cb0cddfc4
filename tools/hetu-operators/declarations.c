/* Operators as a header declares them: a pragma with a rule, and behind it the prototype of a C function. */
#include "operators.h"

#include "syntax/lex.h"

#include <string.h>

/* The place in the header that is read. */
typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *file, *at;
    int line;
} Reader;

/* The line at `at`, with those that backslashes join to it; goes on behind it. */
static const char *take_line(Reader *reader)
{
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

static bool param_kind(const char *type, ParamKind *kind)
{
    static const struct {
        const char *type;
        ParamKind kind;
    } kinds[] = {{"ht_tensor", PARAM_TENSOR}, {"ht_tensors", PARAM_TENSORS}, {"ht_dims", PARAM_SHAPE}, {"ht_dtype", PARAM_DTYPE},
                 {"int", PARAM_INT},          {"bool", PARAM_INT},           {"int64_t", PARAM_INT},   {"long", PARAM_INT},
                 {"float", PARAM_FLOAT},      {"double", PARAM_FLOAT}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(type, kinds[i].type)) {
            *kind = kinds[i].kind;
            return true;
        }
    return false;
}

/* `TYPE NAME`; false after an error. */
static bool read_param(Reader *reader, Lexer *lexer, OpParam *param)
{
    Position at = lexer->token.at;
    char *type = lex_spelling(lexer);
    if (!param_kind(type, &param->kind)) {
        diag_error(reader->diag, at, "'%s' is no type of an operator's parameter", type);
        return false;
    }
    lex_next(lexer);
    param->name = lex_spelling(lexer);
    lex_next(lexer);
    return true;
}

/* TYPE NAME(PARAMETERS); from what stands behind a rule. False after an error, and for a function with a body. */
static bool read_prototype(Reader *reader, Declaration *declaration)
{
    Lexer lexer;
    Array(OpParam) params = {0};
    lex_begin(&lexer, reader->arena, reader->diag, (Position){reader->file, reader->line, 1}, reader->at, false);
    declaration->def.at = lexer.token.at;
    declaration->result = lex_spelling(&lexer);
    lex_next(&lexer);
    declaration->def.name = lex_spelling(&lexer);
    lex_next(&lexer);
    const char *start = lexer.next;
    if (!lex_expect(&lexer, "(", "after the operator's name"))
        return false;
    for (bool more = !lex_is(&lexer, "void"); more; more = lex_take(&lexer, ",")) {
        OpParam param;
        if (!read_param(reader, &lexer, &param))
            return false;
        array_push(reader->arena, &params, param);
        declaration->def.attr_count += param.kind != PARAM_TENSOR && param.kind != PARAM_TENSORS;
    }
    lex_take(&lexer, "void");
    declaration->params = arena_substring(reader->arena, start, (size_t)(lexer.token.start - start));
    declaration->def.params = params.at;
    declaration->def.param_count = params.count;
    return lex_expect(&lexer, ")", "after the parameters") && lex_is(&lexer, ";");
}

Declarations declarations_read(Arena *arena, Diag *diag, const char *file, const char *text)
{
    static const char BEGIN[] = "#pragma hspmd op ";
    Reader reader = {arena, diag, file, text, 1};
    Declarations all = {0};
    while (*reader.at) {
        Position at = {file, reader.line, (int)sizeof BEGIN};
        const char *line = take_line(&reader);
        Declaration declaration = {0};
        if (strncmp(line, BEGIN, strlen(BEGIN)) || !read_prototype(&reader, &declaration))
            continue;
        declaration.def.rule = rule_parse(arena, diag, at, line + strlen(BEGIN), declaration.def.params, declaration.def.param_count);
        if (declaration.def.rule)
            array_push(arena, &all, declaration);
    }
    return all;
}
