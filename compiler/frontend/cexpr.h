/* Expressions and statements of the C tree. The comment of each kind names the members it uses.
 *
 *     h + 2 * rate      C_BINARY OP_ADD, double
 *                         a: C_CAST to double of C_VAR h
 *                         b: C_BINARY OP_MUL of C_CAST to double of C_INT 2, C_VAR rate
 */
#pragma once

#include "frontend/ctype.h"
#include "support/diag.h"

typedef struct CVar CVar; // ctree.h
typedef struct CFunction CFunction;
typedef struct CExpr CExpr;
typedef struct CStmt CStmt;
typedef struct Pragma Pragma; // pragma/pragma.h

/* ---- expressions ---- */

typedef enum CExprKind {
    C_INT,        // integer: also characters, enumerators, sizeof
    C_FLOAT,      // number
    C_STRING,     // text
    C_VAR,        // var
    C_FUNCTION,   // function
    C_UNARY,      // op a
    C_BINARY,     // a op b; also `&&`, `||` and `,`
    C_ASSIGN,     // a = b, or a op= b when op is set
    C_CAST,       // (type)a, or an implicit conversion
    C_CALL,       // a(args)
    C_MEMBER,     // a.name or a->name: member
    C_INDEX,      // a[b]; a is a pointer or an array
    C_SELECT,     // a ? b : c; without b: a ?: c
    C_LITERAL,    // (type){...}; `a` is the initializer
    C_INIT,       // {args}
    C_DESIGNATED, // in C_INIT: designators and `a`, the value
    C_STATEMENT,  // ({...})
    C_REFUSED     // the evaluator cannot do this: `text` is the message, `args` the operands
} CExprKind;

typedef enum COperation {
    OP_NONE,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_REM,
    OP_SHL,
    OP_SHR,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_EQ,
    OP_NE,
    OP_LOGICAL_AND,
    OP_LOGICAL_OR,
    OP_COMMA,
    OP_PLUS,
    OP_MINUS,
    OP_NOT,
    OP_LOGICAL_NOT,
    OP_ADDRESS,
    OP_DEREFERENCE,
    OP_PRE_INC,
    OP_PRE_DEC,
    OP_POST_INC,
    OP_POST_DEC,
    OP_SIZEOF // sizeof of a type of variable length
} COperation;

typedef struct CDesignator {
    const char *field;         // NULL: an array element
    const void *decl;          // clang's declaration of the field
    const CExpr *first, *last; // indices of an array: [first] or [first ... last]
} CDesignator;

/* A string: its bytes with the null byte, and their number. C_REFUSED: a message. */
typedef struct CText {
    const char *bytes;
    int64_t length;
} CText;

/* The member of a C_MEMBER. */
typedef struct CMember {
    const CField *field; // its offset counts from the outermost struct
    const char *name;
    bool arrow; // a->name, not a.name
} CMember;

struct CExpr {
    CExprKind kind;
    COperation op;
    uint8_t effects; // one of Effects (eval/order.h)
    bool inner;      // operand of an operator; a C compiler may fold both
    const CType *type;
    Position at;
    union {
        uint64_t integer;
        double number;
        CText text;
        CVar *var;
        CFunction *function;
        const CStmt *statement;
        CMember member;
    };
    int slot; // frame slot of a value that needs storage; C_STRING: number in the unit; -1: none
    const CExpr *a, *b, *c;
    Array(const CExpr *) args;      // C_CALL, C_INIT
    Array(CDesignator) designators; // C_DESIGNATED
    // C_INIT: which value initializes which bytes (eval/init.c); NULL until computed
    const struct CLayout *layout;
};

/* ---- statements ---- */

typedef enum CStmtKind {
    CS_EXPR,     // expr; NULL for `;`
    CS_DECL,     // vars
    CS_COMPOUND, // body
    CS_IF,       // expr, then, other
    CS_FOR,      // init, expr, step, then
    CS_WHILE,    // expr, then
    CS_DO,       // then, expr
    CS_SWITCH,   // expr, then
    CS_CASE,     // first ... last, then
    CS_DEFAULT,  // then
    CS_BREAK,
    CS_CONTINUE,
    CS_RETURN, // expr; NULL for `return;`
    CS_LABEL,  // label, then
    CS_GOTO,   // label
    CS_PRAGMA, // pragmas: dims, shard, reshard
    CS_MARKED, // pragmas (layer, recompute), then
    CS_REFUSED // the evaluator cannot do this: text is the message, body are the statements in it
} CStmtKind;

struct CStmt {
    CStmtKind kind;
    Position at;
    const CExpr *expr, *step, *first, *last;
    const CStmt *init, *then, *other;
    Array(const CStmt *) body;
    Array(CVar *) vars;
    bool scoped; // CS_COMPOUND: declares an ht_scope
    // CS_COMPOUND: its variables have the slots [first_slot, last_slot)
    int first_slot, last_slot;
    Array(const Pragma *) pragmas;
    const char *text;
    const void *label; // identity of the label of a CS_LABEL or CS_GOTO
};

/* Creates an expression of a kind, type and position, without a slot. */
CExpr *cexpr_new(Arena *arena, CExprKind kind, const CType *type, Position at);

/* Returns the function that an expression names or takes the address of; NULL: it does neither. */
CFunction *cexpr_function(const CExpr *expr);

/* Returns the value that an initializer list gives member `index`, called `name`; NULL: none. */
const CExpr *cexpr_member(const CExpr *list, int index, const char *name);

/* Call `visit` for an expression and all in it, or for all in a statement. Do nothing for NULL. */
typedef void CVisit(const CExpr *expr, void *data);
void cexpr_walk(const CExpr *expr, CVisit *visit, void *data);
void cstmt_walk(const CStmt *stmt, CVisit *visit, void *data);
