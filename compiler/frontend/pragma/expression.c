/* Parses C expressions inside pragmas. */
#include "frontend/pragma/pragma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 200 };

typedef struct Parser {
    CUnit *unit;
    Tokens *tokens;
    const Scope *scope;
    int *slots;
    int depth;
} Parser;

static CExpr *node(Parser *p, CExprKind kind, const CType *type, Position at) {
    return cexpr_new(p->unit->arena, kind, type, at);
}

static const CExpr *convert(Parser *p, const CExpr *a, const CType *type) {
    if (a->type == type) return a;
    CExpr *cast = node(p, C_CAST, type, a->at);
    cast->a = a;
    return cast;
}

static const CExpr *conditional(Parser *p);

/* ---- primary expressions ---- */

static CVar *find_variable(const Scope *scope, const char *name) {
    for (; scope; scope = scope->outer)
        if (!strcmp(scope->var->name, name)) return scope->var;
    return NULL;
}

bool expression_names(const CUnit *unit, const Scope *scope, const char *name) {
    CName what = cunit_lookup(unit, name);
    return find_variable(scope, name) || what.var || what.function || what.constant;
}

static const CExpr *unknown_name(Parser *p, const Token *at) {
    Array(const char *) names = {0};
    for (const Scope *s = p->scope; s; s = s->outer)
        array_push(p->unit->arena, &names, s->var->name);
    for (int i = 0; i < p->unit->vars.count; i++)
        array_push(p->unit->arena, &names, p->unit->vars.at[i]->name);
    for (int i = 0; i < p->unit->constants.count; i++)
        array_push(p->unit->arena, &names, p->unit->constants.at[i].name);
    diag_error(p->unit->diag, at->at, "\"%s\" is not declared here", at->text);
    diag_suggest(p->unit->diag, at->at, at->text, names.at, names.count);
    return NULL;
}

static const CExpr *named(Parser *p) {
    const Token *at = p->tokens->token;
    tokens_next(p->tokens);
    CVar *var = find_variable(p->scope, at->text);
    CName what = var ? (CName){.var = var} : cunit_lookup(p->unit, at->text);
    if (what.var) {
        CExpr *expr = node(p, C_VAR, what.var->type, at->at);
        expr->var = what.var;
        return expr;
    }
    if (what.function) {
        CExpr *expr = node(p, C_FUNCTION, what.function->type, at->at);
        expr->function = what.function;
        return expr;
    }
    if (!what.constant) return unknown_name(p, at);
    CExpr *expr = node(p, C_INT, what.constant->type, at->at);
    expr->integer = (uint64_t)what.constant->value;
    return expr;
}

/* Returns the type of an integer constant by its value and suffix. */
static const CType *integer_type(const CTypes *types, uint64_t value, const char *suffix,
                                 bool decimal) {
    bool u = strpbrk(suffix, "uU"), l = strpbrk(suffix, "lL");
    if (!l && !u && value <= INT32_MAX) return types->tint;
    if (!l && (u || !decimal) && value <= UINT32_MAX) return types->tunsigned;
    return !u && value <= INT64_MAX ? types->tlong : types->tulong;
}

static const CExpr *number(Parser *p) {
    const Token *at = p->tokens->token;
    tokens_next(p->tokens);
    bool hex = at->text[0] == '0' && (at->text[1] == 'x' || at->text[1] == 'X');
    char *end;
    errno = 0;
    if (strpbrk(at->text, hex ? ".pP" : ".eE")) {
        CExpr *expr = node(p, C_FLOAT, p->unit->types.tdouble, at->at);
        expr->number = strtod(at->text, &end);
        if ((*end == 'f' || *end == 'F') && !end[1]) {
            expr->type = p->unit->types.tfloat;
            expr->number = strtof(at->text, NULL);
        } else if (*end) {
            goto bad;
        }
        return expr;
    }
    uint64_t value = strtoull(at->text, &end, 0);
    if (errno || strspn(end, "uUlL") != strlen(end)) goto bad;
    CExpr *expr =
        node(p, C_INT, integer_type(&p->unit->types, value, end, at->text[0] != '0'), at->at);
    expr->integer = value;
    return expr;
bad:
    diag_error(p->unit->diag, at->at, "\"%s\" is not a number of C", at->text);
    return NULL;
}

static const CExpr *primary(Parser *p) {
    if (p->tokens->token->kind == TOKEN_NAME) return named(p);
    if (p->tokens->token->kind == TOKEN_NUMBER) return number(p);
    if (tokens_take(p->tokens, "(")) {
        Position open = p->tokens->token[-1].at;
        const CExpr *inner = conditional(p);
        if (inner && tokens_expect(p->tokens, ")", NULL)) return inner;
        if (inner) diag_note(p->unit->diag, open, "to match this \"(\"");
        return NULL;
    }
    tokens_unexpected(p->tokens, "an expression");
    return NULL;
}

/* ---- postfix and unary ---- */

static const CExpr *indexed(Parser *p, const CExpr *a, Position at) {
    const CExpr *index = conditional(p);
    if (!index || !tokens_expect(p->tokens, "]", NULL)) return NULL;
    if ((a->type->kind != CT_ARRAY && a->type->kind != CT_POINTER) ||
        !ctype_is_integer(index->type))
        return diag_error(p->unit->diag, at,
                          "an index needs an array or a pointer, and an integer"),
               NULL;
    CExpr *expr = node(p, C_INDEX, a->type->base, a->at);
    expr->a = a;
    expr->b = index;
    return expr;
}

static const CExpr *member(Parser *p, const CExpr *a, bool arrow, Position at) {
    const CType *type = arrow ? a->type->base : a->type;
    CField field;
    if ((arrow && a->type->kind != CT_POINTER) || type->kind != CT_STRUCT)
        return diag_error(p->unit->diag, at, "\"%s\" needs a %s", arrow ? "->" : ".",
                          arrow ? "pointer to a struct" : "struct"),
               NULL;
    if (p->tokens->token->kind != TOKEN_NAME || !ctype_field(type, p->tokens->token->text, &field))
        return tokens_error(p->tokens, "%s has no member %s", type->name, tokens_shown(p->tokens)),
               NULL;
    CExpr *expr = node(p, C_MEMBER, field.type, a->at);
    expr->a = a;
    expr->member.arrow = arrow;
    expr->member.name = p->tokens->token->text;
    expr->member.field = arena_copy(p->unit->arena, &field, sizeof field);
    tokens_next(p->tokens);
    return expr;
}

static const CExpr *called(Parser *p, const CExpr *callee, Position at) {
    const CType *type = callee->type->kind == CT_POINTER ? callee->type->base : callee->type;
    if (callee->kind != C_FUNCTION || type->kind != CT_FUNCTION)
        return diag_error(p->unit->diag, at, "only functions can be called"), NULL;
    CExpr *call = node(p, C_CALL, type->base, callee->at);
    const CFunction *function = callee->function;
    call->a = callee;
    call->slot = (*p->slots)++;
    while (!tokens_is(p->tokens, ")")) {
        const CExpr *arg = conditional(p);
        if (!arg) return NULL;
        if (call->args.count < function->params.count && ctype_is_arithmetic(arg->type))
            arg = convert(p, arg, function->params.at[call->args.count]->type);
        array_push(p->unit->arena, &call->args, arg);
        if (!tokens_take(p->tokens, ",")) break;
    }
    if (!tokens_expect(p->tokens, ")", NULL)) return NULL;
    if (call->args.count != function->params.count)
        return diag_error(p->unit->diag, at, "%s takes %d arguments, not %d", function->name,
                          function->params.count, call->args.count),
               NULL;
    return call;
}

static const CExpr *postfix(Parser *p) {
    const CExpr *expr = primary(p);
    while (expr) {
        Position at = p->tokens->token->at;
        if (tokens_take(p->tokens, "[")) expr = indexed(p, expr, at);
        else if (tokens_take(p->tokens, ".")) expr = member(p, expr, false, at);
        else if (tokens_take(p->tokens, "->")) expr = member(p, expr, true, at);
        else if (tokens_take(p->tokens, "(")) expr = called(p, expr, at);
        else break;
    }
    return expr;
}

static const CExpr *unary_node(Parser *p, COperation op, const CExpr *a, Position at) {
    const CType *type = op == OP_DEREFERENCE   ? a->type->base
                        : op == OP_LOGICAL_NOT ? p->unit->types.tint
                                               : ctype_promoted(&p->unit->types, a->type);
    bool pointer = a->type->kind == CT_POINTER || a->type->kind == CT_ARRAY;
    if (op == OP_DEREFERENCE
            ? !pointer
            : !ctype_is_arithmetic(a->type) || (op == OP_NOT && !ctype_is_integer(a->type)))
        return diag_error(p->unit->diag, at, "this operator does not apply to %s", a->type->name),
               NULL;
    CExpr *expr = node(p, C_UNARY, type, at);
    expr->op = op;
    expr->a = op == OP_DEREFERENCE || op == OP_LOGICAL_NOT ? a : convert(p, a, type);
    return expr;
}

static const CExpr *unary(Parser *p) {
    static const struct {
        const char *text;
        COperation op;
    } table[] = {{"+", OP_PLUS},
                 {"-", OP_MINUS},
                 {"!", OP_LOGICAL_NOT},
                 {"~", OP_NOT},
                 {"*", OP_DEREFERENCE}};
    if (p->depth > MOST_DEPTH)
        return tokens_error(p->tokens, "this expression is nested too deeply"), NULL;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        Position at = p->tokens->token->at;
        if (!tokens_take(p->tokens, table[i].text)) continue;
        p->depth++;
        const CExpr *a = unary(p);
        p->depth--;
        return a ? unary_node(p, table[i].op, a, at) : NULL;
    }
    return postfix(p);
}

/* ---- binary ---- */

typedef struct BinaryOperator {
    const char *text;
    COperation op;
    int precedence;
} BinaryOperator;

static const BinaryOperator binary_operators[] = {
    {"||", OP_LOGICAL_OR, 1}, {"&&", OP_LOGICAL_AND, 2}, {"|", OP_OR, 3},  {"^", OP_XOR, 4},
    {"&", OP_AND, 5},         {"==", OP_EQ, 6},          {"!=", OP_NE, 6}, {"<", OP_LT, 7},
    {"<=", OP_LE, 7},         {">", OP_GT, 7},           {">=", OP_GE, 7}, {"<<", OP_SHL, 8},
    {">>", OP_SHR, 8},        {"+", OP_ADD, 9},          {"-", OP_SUB, 9}, {"*", OP_MUL, 10},
    {"/", OP_DIV, 10},        {"%", OP_REM, 10},
};

static const BinaryOperator *binary_operator(const Parser *p) {
    for (size_t i = 0; i < sizeof binary_operators / sizeof *binary_operators; i++)
        if (tokens_is(p->tokens, binary_operators[i].text)) return &binary_operators[i];
    return NULL;
}

static bool needs_integers(COperation op) {
    return op == OP_REM || op == OP_SHL || op == OP_SHR || op == OP_AND || op == OP_OR ||
           op == OP_XOR;
}

static const CExpr *binary_node(Parser *p, const BinaryOperator *op, const CExpr *a, const CExpr *b,
                                Position at) {
    const CTypes *types = &p->unit->types;
    bool fits = ctype_is_arithmetic(a->type) && ctype_is_arithmetic(b->type);
    if (!fits ||
        (needs_integers(op->op) && !(ctype_is_integer(a->type) && ctype_is_integer(b->type))))
        return diag_error(p->unit->diag, at, "\"%s\" does not apply to %s and %s", op->text,
                          a->type->name, b->type->name),
               NULL;
    bool logical = op->op == OP_LOGICAL_AND || op->op == OP_LOGICAL_OR,
         shift = op->op == OP_SHL || op->op == OP_SHR;
    bool compares = op->op >= OP_LT && op->op <= OP_NE;
    const CType *common =
        shift ? ctype_promoted(types, a->type) : ctype_common(types, a->type, b->type);
    CExpr *expr = node(p, C_BINARY, logical || compares ? types->tint : common, at);
    expr->op = op->op;
    expr->a = logical ? a : convert(p, a, common);
    expr->b = logical ? b : convert(p, b, shift ? ctype_promoted(types, b->type) : common);
    return expr;
}

static const CExpr *binary(Parser *p, int lowest) {
    const CExpr *a = unary(p);
    const BinaryOperator *op;
    while (a && (op = binary_operator(p)) && op->precedence >= lowest) {
        Position at = p->tokens->token->at;
        tokens_next(p->tokens);
        const CExpr *b = binary(p, op->precedence + 1);
        a = b ? binary_node(p, op, a, b, at) : NULL;
    }
    return a;
}

static const CExpr *conditional(Parser *p) {
    if (++p->depth > MOST_DEPTH)
        return tokens_error(p->tokens, "this expression is nested too deeply"), NULL;
    const CExpr *a = binary(p, 1);
    Position at = p->tokens->token->at;
    if (a && tokens_take(p->tokens, "?")) {
        const CExpr *b = conditional(p);
        const CExpr *c = b && tokens_expect(p->tokens, ":", NULL) ? conditional(p) : NULL;
        bool arithmetic = c && ctype_is_arithmetic(b->type) && ctype_is_arithmetic(c->type);
        if (c && !arithmetic && b->type != c->type)
            diag_error(p->unit->diag, at, "the two results of \"?\" have different types");
        CExpr *expr = NULL;
        if (c && (arithmetic || b->type == c->type)) {
            const CType *type =
                arithmetic ? ctype_common(&p->unit->types, b->type, c->type) : b->type;
            expr = node(p, C_SELECT, type, at);
            expr->a = a;
            expr->b = convert(p, b, type);
            expr->c = convert(p, c, type);
        }
        a = expr;
    }
    p->depth--;
    return a;
}

const CExpr *expression_read(CUnit *unit, Tokens *tokens, const Scope *scope, int *slots) {
    Parser p = {.unit = unit, .tokens = tokens, .scope = scope, .slots = slots};
    return conditional(&p);
}
