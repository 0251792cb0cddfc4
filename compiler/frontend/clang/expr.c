/* Reads expressions of clang as expressions of the C tree.
 *
 * libclang does not expose all kinds of expressions. Each case here knows the children of its kind;
 * a construct that libclang leaves ambiguous is refused. */
#include "frontend/clang/reader.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static CExpr *node(Reader *r, CXCursor cursor, CExprKind kind) {
    const CType *type = clang_type(r, clang_getCursorType(cursor));
    return cexpr_new(r->arena, kind, type, clang_position(r, clang_getCursorLocation(cursor)));
}

/* Returns the children that are expressions. */
static Cursors operands(Reader *r, CXCursor cursor) {
    Cursors all = clang_children(r, cursor), list = {0};
    for (int i = 0; i < all.count; i++)
        if (clang_isExpression(clang_getCursorKind(all.at[i])))
            array_push(r->arena, &list, all.at[i]);
    return list;
}

/* Makes a C_REFUSED that keeps the operands, which may change variables. */
static CExpr *refused(Reader *r, CXCursor cursor, const char *what) {
    CExpr *expr = node(r, cursor, C_REFUSED);
    expr->text.bytes = what;
    Cursors list = operands(r, cursor);
    for (int i = 0; i < list.count; i++)
        array_push(r->arena, &expr->args, clang_expr(r, list.at[i]));
    return expr;
}

/* Marks an expression as an operand of an operator. */
static const CExpr *as_operand(const CExpr *expr) {
    ((CExpr *)expr)->inner = true;
    return expr;
}

/* Makes a node with the first `count` of the operands a, b and c. Refuses an expression with
 * another number of operands; `what` is its name in the message. */
static CExpr *with_operands(Reader *r, CXCursor cursor, CExprKind kind, int count,
                            const char *what) {
    Cursors list = operands(r, cursor);
    if (list.count != count) return refused(r, cursor, what);
    CExpr *expr = node(r, cursor, kind);
    const CExpr **const operand[] = {&expr->a, &expr->b, &expr->c};
    for (int i = 0; i < count; i++) *operand[i] = clang_expr(r, list.at[i]);
    return expr;
}

/* Gives an expression that is not an lvalue a pointer type instead of an array type. libclang shows
 * the array type with which a parameter was declared. */
static CExpr *decayed(Reader *r, CExpr *expr) {
    const CType *from = expr->a ? expr->a->type : NULL;
    if (expr->type->kind == CT_ARRAY)
        expr->type =
            from && from->kind == CT_POINTER ? from : clang_pointer_to(r, expr->type->base, false);
    return expr;
}

/* ---- literals ---- */

/* Returns the character of an escape. *at is after the backslash, and moves past the escape. */
static char unescape(const char **at) {
    static const char letters[] = "abfnrtv\\\"'?", values[] = "\a\b\f\n\r\t\v\\\"'?";
    const char *letter = strchr(letters, **at);
    if (letter && **at) {
        (*at)++;
        return values[letter - letters];
    }
    int value = 0, digits = 0;
    bool hex = **at == 'x';
    *at += hex;
    for (; isxdigit((unsigned char)**at) && (hex || (digits < 3 && **at < '8')); (*at)++, digits++)
        value = value * (hex ? 16 : 8) +
                (isdigit((unsigned char)**at) ? **at - '0' : (**at | 32) - 'a' + 10);
    return (char)value;
}

char *clang_unquoted(Reader *r, const char *quoted, int64_t *length) {
    char *text = arena_alloc(r->arena, strlen(quoted) + 1), *to = text;
    const char *at = quoted + (*quoted == '"');
    while (*at && *at != '"')
        if (*at == '\\') {
            at++;
            *to++ = unescape(&at);
        } else {
            *to++ = *at++;
        }
    *length = to - text + 1;
    return text;
}

/* Returns whether the preprocessor made or joined a literal: the source has another text there. */
static bool is_made(Reader *r, CXCursor cursor, const char *text) {
    CXFile file;
    unsigned at;
    clang_getSpellingLocation(clang_getCursorLocation(cursor), &file, NULL, NULL, &at);
    const Source *source = file ? clang_source(r, clang_file(r, file)) : NULL;
    return file ? source && strncmp(source->text + at, text, strlen(text)) : true;
}

/* Returns whether a literal has a line number from __LINE__ that differs between compilers. */
static bool is_open_line(Reader *r, CXCursor cursor, const char *text) {
    for (bool made = is_made(r, cursor, text); made && *text;
         text += strspn(text, "0123456789") + !isdigit((unsigned char)*text))
        if (isdigit((unsigned char)*text) && clang_line_is_open(r, cursor, atoi(text))) return true;
    return false;
}

static const CExpr *string_literal(Reader *r, CXCursor cursor) {
    const char *quoted = clang_string(r, clang_getCursorSpelling(cursor));
    if (*quoted != '"' && strncmp(quoted, "u8\"", 3)) return refused(r, cursor, "a wide string");
    if (is_open_line(r, cursor, quoted))
        return refused(r, cursor, "__LINE__ in a macro call over several lines");
    const char *own = clang_spelled_otherwise(r, cursor, quoted);
    if (own)
        return refused(
            r, cursor,
            arena_format(r->arena, "the text of %s, which the C compiler spells otherwise,", own));
    CXType element = clang_getArrayElementType(clang_getCursorType(cursor));
    if (*quoted != '"' && element.kind == CXType_UChar) // as of C23
        return refused(r, cursor, "a u8 string, whose type compilers differ in,");
    CExpr *expr = node(r, cursor, C_STRING);
    expr->slot = r->unit->string_count++;
    expr->text.bytes = clang_unquoted(r, quoted + strcspn(quoted, "\""), &expr->text.length);
    if (expr->type->kind == CT_ARRAY && expr->type->count < expr->text.length)
        expr->text.length = expr->type->count;
    return expr;
}

/* ---- constants of enums ---- */

static const char ambiguous[] = "a constant of an enum wider than int, whose type gcc 13 changed,";

static bool fits_int(CXCursor constant) {
    long long value = clang_getEnumConstantDeclValue(constant);
    CXType type = clang_getEnumDeclIntegerType(clang_getCursorSemanticParent(constant));
    unsigned long long wide = clang_getEnumConstantDeclUnsignedValue(constant);
    return type.kind == CXType_UInt || type.kind == CXType_ULong || type.kind == CXType_ULongLong
               ? wide <= INT_MAX
               : value >= INT_MIN && value <= INT_MAX;
}

static enum CXChildVisitResult find_wide(CXCursor cursor, CXCursor parent, CXClientData data) {
    (void)parent;
    if (clang_getCursorKind(cursor) == CXCursor_EnumConstantDecl && !fits_int(cursor))
        *(bool *)data = true;
    return CXChildVisit_Continue;
}

/* Returns whether C compilers differ in the type of an enum constant: it fits in int, but another
 * constant of the enum does not. Its type is int before C23 and gcc 13, then that of the enum. */
static bool is_ambiguous(CXCursor constant) {
    bool wide = false;
    if (fits_int(constant))
        clang_visitChildren(clang_getCursorSemanticParent(constant), find_wide, &wide);
    return wide;
}

static enum CXChildVisitResult find_ambiguous(CXCursor cursor, CXCursor parent, CXClientData data) {
    (void)parent;
    CXCursor decl = clang_getCursorReferenced(cursor);
    if (clang_getCursorKind(decl) == CXCursor_EnumConstantDecl && is_ambiguous(decl))
        *(bool *)data = true;
    return CXChildVisit_Recurse;
}

/* Makes a literal of an expression that clang evaluates, such as sizeof; else a C_REFUSED. */
static const CExpr *evaluated(Reader *r, CXCursor cursor, const char *otherwise) {
    bool differs = false;
    clang_visitChildren(cursor, find_ambiguous, &differs);
    if (differs) return refused(r, cursor, ambiguous);
    CXEvalResult result = clang_Cursor_Evaluate(cursor);
    CXEvalResultKind kind = result ? clang_EvalResult_getKind(result) : CXEval_UnExposed;
    CExpr *expr = node(r, cursor, kind == CXEval_Float ? C_FLOAT : C_INT);
    if (kind == CXEval_Int)
        expr->integer = clang_EvalResult_isUnsignedInt(result)
                            ? clang_EvalResult_getAsUnsigned(result)
                            : (uint64_t)clang_EvalResult_getAsLongLong(result);
    else if (kind == CXEval_Float) expr->number = clang_EvalResult_getAsDouble(result);
    else expr = refused(r, cursor, otherwise);
    if (result) clang_EvalResult_dispose(result);
    return expr;
}

static const CExpr *integer_literal(Reader *r, CXCursor cursor) {
    const CExpr *expr = evaluated(r, cursor, "this number");
    const char *digits = arena_format(r->arena, "%llu", (unsigned long long)expr->integer);
    return is_open_line(r, cursor, digits)
               ? refused(r, cursor, "__LINE__ in a macro call over several lines")
               : expr;
}

/* ---- operators ---- */

static COperation binary_operation(enum CXBinaryOperatorKind kind) {
    static const COperation table[] = {
        [CXBinaryOperator_Mul] = OP_MUL,
        [CXBinaryOperator_Div] = OP_DIV,
        [CXBinaryOperator_Rem] = OP_REM,
        [CXBinaryOperator_Add] = OP_ADD,
        [CXBinaryOperator_Sub] = OP_SUB,
        [CXBinaryOperator_Shl] = OP_SHL,
        [CXBinaryOperator_Shr] = OP_SHR,
        [CXBinaryOperator_LT] = OP_LT,
        [CXBinaryOperator_GT] = OP_GT,
        [CXBinaryOperator_LE] = OP_LE,
        [CXBinaryOperator_GE] = OP_GE,
        [CXBinaryOperator_EQ] = OP_EQ,
        [CXBinaryOperator_NE] = OP_NE,
        [CXBinaryOperator_And] = OP_AND,
        [CXBinaryOperator_Xor] = OP_XOR,
        [CXBinaryOperator_Or] = OP_OR,
        [CXBinaryOperator_LAnd] = OP_LOGICAL_AND,
        [CXBinaryOperator_LOr] = OP_LOGICAL_OR,
        [CXBinaryOperator_MulAssign] = OP_MUL,
        [CXBinaryOperator_DivAssign] = OP_DIV,
        [CXBinaryOperator_RemAssign] = OP_REM,
        [CXBinaryOperator_AddAssign] = OP_ADD,
        [CXBinaryOperator_SubAssign] = OP_SUB,
        [CXBinaryOperator_ShlAssign] = OP_SHL,
        [CXBinaryOperator_ShrAssign] = OP_SHR,
        [CXBinaryOperator_AndAssign] = OP_AND,
        [CXBinaryOperator_XorAssign] = OP_XOR,
        [CXBinaryOperator_OrAssign] = OP_OR,
        [CXBinaryOperator_Comma] = OP_COMMA,
    };
    return (size_t)kind < sizeof table / sizeof *table ? table[kind] : OP_NONE;
}

/* Gives `a, b` a pointer type when b is an array. */
static CExpr *comma(Reader *r, CExpr *expr) {
    if (expr->type->kind == CT_ARRAY)
        expr->type = expr->b->type->kind == CT_POINTER
                         ? expr->b->type
                         : clang_pointer_to(r, expr->type->base, false);
    return expr;
}

static const CExpr *binary(Reader *r, CXCursor cursor) {
    enum CXBinaryOperatorKind kind = clang_getCursorBinaryOperatorKind(cursor);
    bool assigns = kind >= CXBinaryOperator_Assign && kind <= CXBinaryOperator_OrAssign;
    CExpr *expr = with_operands(r, cursor, assigns ? C_ASSIGN : C_BINARY, 2, "this operator");
    if (expr->kind == C_REFUSED) return expr;
    expr->op = binary_operation(kind);
    if (!expr->op && kind != CXBinaryOperator_Assign) return refused(r, cursor, "this operator");
    if (expr->op == OP_COMMA) return comma(r, expr);
    if (expr->op) {
        as_operand(expr->a);
        as_operand(expr->b);
    }
    return decayed(r, expr);
}

static const CExpr *unary(Reader *r, CXCursor cursor) {
    static const COperation table[] = {
        [CXUnaryOperator_PostInc] = OP_POST_INC, [CXUnaryOperator_PostDec] = OP_POST_DEC,
        [CXUnaryOperator_PreInc] = OP_PRE_INC,   [CXUnaryOperator_PreDec] = OP_PRE_DEC,
        [CXUnaryOperator_AddrOf] = OP_ADDRESS,   [CXUnaryOperator_Deref] = OP_DEREFERENCE,
        [CXUnaryOperator_Plus] = OP_PLUS,        [CXUnaryOperator_Minus] = OP_MINUS,
        [CXUnaryOperator_Not] = OP_NOT,          [CXUnaryOperator_LNot] = OP_LOGICAL_NOT,
    };
    enum CXUnaryOperatorKind kind = clang_getCursorUnaryOperatorKind(cursor);
    Cursors list = operands(r, cursor);
    if (list.count == 1 && kind == CXUnaryOperator_Extension) return clang_expr(r, list.at[0]);
    if (list.count != 1 || (size_t)kind >= sizeof table / sizeof *table || !table[kind])
        return refused(r, cursor, "this operator");
    CExpr *expr = node(r, cursor, C_UNARY);
    expr->op = table[kind];
    expr->a = as_operand(clang_expr(r, list.at[0]));
    return expr->op == OP_DEREFERENCE ? expr : decayed(r, expr);
}

/* Reads a ? b : c, which is not an lvalue. An array type becomes a pointer to its element type. */
static const CExpr *conditional(Reader *r, CXCursor cursor) {
    CExpr *expr = with_operands(r, cursor, C_SELECT, 3, "this conditional expression");
    for (int i = 0; expr->kind == C_SELECT && i < 3; i++)
        as_operand(i == 0 ? expr->a : i == 1 ? expr->b : expr->c);
    if (expr->kind == C_SELECT && expr->type->kind == CT_ARRAY)
        expr->type = expr->b->type->kind == CT_POINTER
                         ? expr->b->type
                         : clang_pointer_to(r, expr->type->base, false);
    return expr;
}

/* ---- names, members, calls ---- */

static const CExpr *reference(Reader *r, CXCursor cursor) {
    CXCursor decl = clang_getCursorReferenced(cursor);
    enum CXCursorKind kind = clang_getCursorKind(decl);
    if (kind == CXCursor_EnumConstantDecl) {
        if (is_ambiguous(decl)) return refused(r, cursor, ambiguous);
        CExpr *expr = node(r, cursor, C_INT);
        expr->integer = (uint64_t)clang_getEnumConstantDeclValue(decl);
        return expr;
    }
    CExpr *expr = node(r, cursor, kind == CXCursor_FunctionDecl ? C_FUNCTION : C_VAR);
    if (kind == CXCursor_FunctionDecl) expr->function = clang_function(r, decl);
    else if (kind == CXCursor_VarDecl || kind == CXCursor_ParmDecl)
        expr->var = clang_variable(r, decl);
    else return refused(r, cursor, "this name");
    if (kind == CXCursor_ParmDecl)
        expr->type = expr->var->type; // libclang shows the array that a parameter was declared as
    return expr;
}

static const CExpr *member(Reader *r, CXCursor cursor) {
    CExpr *expr = with_operands(r, cursor, C_MEMBER, 1, "this member");
    CField field;
    if (expr->kind == C_REFUSED) return expr;
    expr->member.name = clang_string(r, clang_getCursorSpelling(cursor));
    expr->member.arrow = expr->a->type->kind == CT_POINTER;
    const CType *record = expr->member.arrow ? expr->a->type->base : expr->a->type;
    if (!ctype_declared_field(record, clang_identity(clang_getCursorReferenced(cursor)), &field))
        return refused(r, cursor, "this member");
    expr->member.field = arena_copy(r->arena, &field, sizeof field);
    return expr;
}

static const CExpr *subscript(Reader *r, CXCursor cursor) {
    CExpr *expr = with_operands(r, cursor, C_INDEX, 2, "this index");
    if (expr->a && ctype_is_integer(expr->a->type)) {
        const CExpr *index = expr->a;
        expr->a = expr->b;
        expr->b = index;
    }
    return expr;
}

static const CExpr *call(Reader *r, CXCursor cursor) {
    Cursors list = operands(r, cursor);
    if (list.count != clang_Cursor_getNumArguments(cursor) + 1)
        return refused(r, cursor, "this call");
    CExpr *expr = node(r, cursor, C_CALL);
    expr->a = clang_expr(r, list.at[0]);
    expr->slot = r->body.slots++;
    // Read only the text of a failed assertion; its line number may differ between compilers.
    bool fails = !strcmp(clang_string(r, clang_getCursorSpelling(cursor)), "__assert_fail");
    for (int i = 1; i < (fails ? 2 : list.count); i++)
        array_push(r->arena, &expr->args, clang_expr(r, list.at[i]));
    return expr;
}

/* ---- conversions, and expressions that libclang does not expose ---- */

/* Reads a conversion. If it seems to turn a pointer into an array or function, returns the pointer:
 * libclang shows the type with which a parameter was declared. */
static const CExpr *cast(Reader *r, CXCursor cursor, CXCursor inner) {
    const CExpr *a = clang_expr(r, inner);
    CExpr *expr = node(r, cursor, C_CAST);
    bool written = expr->type->kind == CT_ARRAY || expr->type->kind == CT_FUNCTION;
    if (a->type == expr->type || (a->type->kind == CT_POINTER && written)) return a;
    expr->a = expr->type->kind == CT_VOID ? a : as_operand(a);
    expr->at = a->at;
    return expr;
}

/* Returns whether an expression begins where `first` does and ends where `last` does. */
static bool starts_and_ends(CXCursor cursor, CXCursor first, CXCursor last) {
    CXSourceRange whole = clang_getCursorExtent(cursor), a = clang_getCursorExtent(first),
                  b = clang_getCursorExtent(last);
    return clang_equalLocations(clang_getRangeStart(whole), clang_getRangeStart(a)) &&
           clang_equalLocations(clang_getRangeEnd(whole), clang_getRangeEnd(b));
}

/* Returns whether an expression adds no text to `inner`, like an implicit conversion. */
static bool covers(CXCursor cursor, CXCursor inner) {
    return clang_equalRanges(clang_getCursorExtent(cursor), clang_getCursorExtent(inner));
}

/* Reads an expression that libclang does not expose: a conversion, `a ?: b`, offsetof, ... */
static const CExpr *unexposed(Reader *r, CXCursor cursor) {
    Cursors all = clang_children(r, cursor), list = operands(r, cursor);
    if (all.count && clang_getCursorKind(all.at[0]) == CXCursor_TypeRef)
        return evaluated(r, cursor, "this expression");
    if (list.count == 1 && covers(cursor, list.at[0])) return cast(r, cursor, list.at[0]);
    if (list.count != 4 || !starts_and_ends(cursor, list.at[0], list.at[3]))
        return refused(r, cursor, "this expression");
    CExpr *expr = node(r, cursor, C_SELECT);
    expr->a = clang_expr(r, list.at[0]);
    expr->c = clang_expr(r, list.at[3]);
    return decayed(r, expr);
}

/* ---- initializers ---- */

/* Returns 1 if `...` follows an array designator's first bound, else 0; -1: a macro hides it. */
static int is_range(Reader *r, CXCursor first, CXCursor second) {
    Extent a = clang_extent(r, first), b = clang_extent(r, second);
    const Source *source = clang_source(r, a.file);
    if (!source || a.file != b.file || a.end > b.begin || a.end <= a.begin) return -1;
    for (int i = a.end; i + 2 < source->length && i < b.begin; i++)
        if (!strncmp(source->text + i, "...", 3)) return 1;
    return 0;
}

static const CExpr *designated(Reader *r, CXCursor cursor) {
    Cursors list = clang_children(r, cursor);
    CExpr *expr = node(r, cursor, C_DESIGNATED);
    for (int i = 0; i + 1 < list.count; i++) {
        CDesignator designator = {0};
        if (clang_getCursorKind(list.at[i]) == CXCursor_MemberRef) {
            designator.field = clang_string(r, clang_getCursorSpelling(list.at[i]));
            designator.decl = clang_identity(clang_getCursorReferenced(list.at[i]));
        } else {
            designator.first = designator.last = clang_expr(r, list.at[i]);
            bool another =
                i + 2 < list.count && clang_getCursorKind(list.at[i + 1]) != CXCursor_MemberRef;
            int range = another ? is_range(r, list.at[i], list.at[i + 1]) : 0;
            if (range < 0) return refused(r, cursor, "this designator inside a macro");
            if (range) designator.last = clang_expr(r, list.at[++i]);
        }
        array_push(r->arena, &expr->designators, designator);
    }
    expr->a = clang_expr(r, list.at[list.count - 1]);
    expr->at = expr->a->at;
    return expr;
}

static const CExpr *init_list(Reader *r, CXCursor cursor) {
    Cursors list = clang_children(r, cursor);
    CExpr *expr = node(r, cursor, C_INIT);
    for (int i = 0; i < list.count; i++) {
        bool has_designator = clang_getCursorKind(list.at[i]) == CXCursor_UnexposedExpr &&
                              clang_getCursorType(list.at[i]).kind == CXType_Void;
        array_push(r->arena, &expr->args,
                   has_designator ? designated(r, list.at[i]) : clang_expr(r, list.at[i]));
    }
    return expr;
}

static const CExpr *parenthesised(Reader *r, CXCursor cursor) {
    Cursors list = operands(r, cursor);
    return list.count == 1 ? clang_expr(r, list.at[0]) : refused(r, cursor, "this expression");
}

static const CExpr *last_operand(Reader *r, CXCursor cursor, CExprKind kind) {
    Cursors list = operands(r, cursor);
    if (!list.count) return refused(r, cursor, "this expression");
    if (kind == C_CAST) return cast(r, cursor, list.at[list.count - 1]);
    CExpr *expr = node(r, cursor, kind);
    expr->a = clang_expr(r, list.at[list.count - 1]);
    expr->slot = r->body.slots++;
    return expr;
}

static const CExpr *statement_expression(Reader *r, CXCursor cursor) {
    Cursors list = clang_children(r, cursor);
    if (list.count != 1) return refused(r, cursor, "this statement expression");
    CExpr *expr = node(r, cursor, C_STATEMENT);
    expr->slot = r->body.slots++;
    expr->statement = clang_stmt(r, list.at[0]);
    return expr;
}

/* Reads sizeof and alignof. sizeof of a variable-length array is evaluated later, by OP_SIZEOF. */
static const CExpr *size_of(Reader *r, CXCursor cursor) {
    Cursors list = operands(r, cursor);
    CXCursor inner = list.count == 1 ? list.at[0] : cursor;
    while (list.count == 1 && clang_getCursorKind(inner) == CXCursor_ParenExpr) {
        list = operands(r, inner);
        inner = list.count == 1 ? list.at[0] : inner;
    }
    bool named = list.count == 1 && clang_getCursorKind(inner) == CXCursor_DeclRefExpr;
    if (!named || clang_getCanonicalType(clang_getCursorType(inner)).kind != CXType_VariableArray)
        return evaluated(r, cursor, "sizeof of a type or an element of variable length");
    CExpr *expr = node(r, cursor, C_UNARY);
    expr->op = OP_SIZEOF;
    expr->a = clang_expr(r, inner);
    return expr;
}

/* ---- _Generic ---- */

static enum CXChildVisitResult find_bit_field(CXCursor cursor, CXCursor parent, CXClientData data) {
    (void)parent;
    if (clang_getCursorKind(cursor) == CXCursor_MemberRefExpr &&
        clang_Cursor_isBitField(clang_getCursorReferenced(cursor)))
        *(bool *)data = true;
    return CXChildVisit_Recurse;
}

/* Returns whether an expression has only numbers, casts, binary operators, and unary +, -, ~, !. */
static bool is_number(const CExpr *expr) {
    bool wraps = expr->kind == C_CAST ||
                 (expr->kind == C_UNARY && expr->op >= OP_PLUS && expr->op <= OP_LOGICAL_NOT);
    if (expr->kind == C_BINARY) return is_number(expr->a) && is_number(expr->b);
    return expr->kind == C_INT || expr->kind == C_FLOAT || (wraps && is_number(expr->a));
}

/* Returns the association that a _Generic selects. libclang tells only the result's type. Where
 * several associations have this type, clang evaluates numbers; anything else is refused.
 *
 *     _Generic(x, float: sinf, default: sin)(x)    sinf has another type than sin
 *     _Generic(x, float: 1, default: 2)            1 or 2
 *     _Generic(x, float: p, default: q)            refused where p and q have one type
 */
static const CExpr *selection(Reader *r, CXCursor cursor) {
    static const char several[] = "a _Generic with several associations of the type that it takes";
    Cursors list = operands(r, cursor);
    CXType type = clang_getCursorType(cursor);
    const CExpr *chosen = NULL;
    bool bits = false, numbers = true;
    int count = 0;
    if (list.count) find_bit_field(list.at[0], cursor, &bits);
    if (list.count) clang_visitChildren(list.at[0], find_bit_field, &bits);
    if (bits)
        return refused(r, cursor, "a _Generic of a bit-field, whose type compilers differ in,");
    for (int i = 1; i < list.count; i++) {
        if (!clang_equalTypes(clang_getCursorType(list.at[i]), type)) continue;
        chosen = clang_expr(r, list.at[i]);
        numbers &= is_number(chosen);
        count++;
    }
    if (count == 1) return chosen;
    return count && numbers ? evaluated(r, cursor, several) : refused(r, cursor, several);
}

const CExpr *clang_expr(Reader *r, CXCursor cursor) {
    switch (clang_getCursorKind(cursor)) {
    case CXCursor_IntegerLiteral: return integer_literal(r, cursor);
    case CXCursor_FloatingLiteral:
    case CXCursor_CXXBoolLiteralExpr:
    case CXCursor_CharacterLiteral: return evaluated(r, cursor, "this number");
    case CXCursor_UnaryExpr: return size_of(r, cursor);
    case CXCursor_StringLiteral: return string_literal(r, cursor);
    case CXCursor_DeclRefExpr: return reference(r, cursor);
    case CXCursor_MemberRefExpr: return member(r, cursor);
    case CXCursor_CallExpr: return call(r, cursor);
    case CXCursor_ArraySubscriptExpr: return subscript(r, cursor);
    case CXCursor_BinaryOperator:
    case CXCursor_CompoundAssignOperator: return binary(r, cursor);
    case CXCursor_UnaryOperator: return unary(r, cursor);
    case CXCursor_ConditionalOperator: return conditional(r, cursor);
    case CXCursor_CStyleCastExpr: return last_operand(r, cursor, C_CAST);
    case CXCursor_CompoundLiteralExpr: return last_operand(r, cursor, C_LITERAL);
    case CXCursor_InitListExpr: return init_list(r, cursor);
    case CXCursor_StmtExpr: return statement_expression(r, cursor);
    case CXCursor_UnexposedExpr: return unexposed(r, cursor);
    case CXCursor_ParenExpr: return parenthesised(r, cursor);
    case CXCursor_GenericSelectionExpr: return selection(r, cursor);
    default: return refused(r, cursor, "this expression");
    }
}

const CExpr *clang_initializer(Reader *r, CXCursor var) {
    CXCursor init = clang_Cursor_getVarDeclInitializer(var);
    if (clang_Cursor_isNull(init)) return NULL;
    return clang_expr(r, init);
}
