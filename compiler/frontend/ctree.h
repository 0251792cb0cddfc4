/* The C tree: what the evaluator sees of a translation unit.
 *
 * clang/ builds it from libclang's cursors, pragma/expression.c builds the expressions of pragmas;
 * nothing here knows libclang. Every expression has its type, so that implicit conversions are
 * explicit nodes (C_CAST). What the evaluator cannot do is a C_REFUSED node with a message: it is
 * an error only when it is evaluated.
 *
 * A position is where the user wrote something: inside a macro's argument the argument, inside a
 * macro's body the macro's use.
 */
#ifndef FRONTEND_CTREE_H
#define FRONTEND_CTREE_H

#include "ir/unit.h"
#include "rule/rule.h"
#include "support/array.h"
#include "support/diag.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct CType CType;
typedef struct CField CField;
typedef struct CVar CVar;
typedef struct CFunction CFunction;
typedef struct CExpr CExpr;
typedef struct CStmt CStmt;
typedef struct Pragma Pragma;

/* ---- types ---- */

typedef enum CTypeKind {
    CT_VOID,
    CT_BOOL,
    CT_INT, // characters and enumerations, too
    CT_FLOAT,
    CT_DOUBLE,
    CT_POINTER,
    CT_ARRAY,
    CT_STRUCT, // and unions
    CT_FUNCTION,
    CT_OTHER // long double, _Complex, vectors, 128 bits: refused where they are used
} CTypeKind;

struct CField {
    const char *name; // "" for an anonymous struct or union
    const CType *type;
    int64_t offset;   // bytes; of a bit-field, of the byte that has its first bit
    int bit, width;   // bit-field: its first bit in that byte, and how many it has; width 0: none
    const void *decl; // which member this is; names may be shared
};

/* Types are unique: equal types are the same object. A struct, union or enumeration is its
 * declaration, whatever it is called. Qualifiers are dropped. */
struct CType {
    CTypeKind kind;
    const char *name; // as C spells it: "struct ht_tensor", "unsigned int"
    const char *key;  // what tells it from all other types
    int64_t size;     // bytes; 0 for void, functions, arrays of unknown or variable length
    bool is_signed;   // CT_INT
    int rank;         // CT_INT: the conversion rank
    bool is_enum;     // CT_INT
    bool is_union;
    bool to_const; // CT_POINTER: what it points to is const
    // CT_POINTER: what it points to; CT_ARRAY: the element; CT_FUNCTION: the result
    const CType *base;
    int64_t count; // CT_ARRAY
    bool variable; // CT_ARRAY: of variable length
    Array(CField) fields;
    bool is_tensor;                // struct ht_tensor
    bool is_tensor_node;           // struct ht_node *: what a tensor holds
    const uint8_t *member_bits[2]; // CT_STRUCT: by byte, bits that are no padding (eval/memory.c)
};

/* ---- declarations ---- */

/* Bytes of a variable. */
typedef struct CBytes {
    int64_t from, to;
} CBytes;

/* Where a function reads or changes a variable. */
typedef struct CSite {
    const CFunction *function;
    Position at;
    CBytes bytes; // of a change: no others
    bool pointer; // its address is given away there, for it to be changed
} CSite;

/* What the evaluation of a model does with a variable of static storage. */
typedef struct CModelUse {
    const CFunction *model;
    Position read_at;    // its value from before the evaluation is read; file NULL: it is not
    Position written_at; // file NULL: it is not
    const bool *read;    // by byte: it is; as many as the variable has
    bool state;          // what was read there is something else at the end
} CModelUse;

struct CVar {
    const char *name;
    const CType *type;
    Position at;
    bool local;     // a parameter or a variable with automatic storage
    bool is_static; // of a function
    bool is_const, defined;
    bool folded;   // constant, and no other file sees it: a C compiler that optimizes folds it
    bool system;   // declared in a header of the system
    bool internal; // at file scope: no other file can name it
    int part;      // 0: the file of the models; the sources after it count from 1
    bool shape;    // named by a `shape` pragma
    bool given;    // its initial value is given_value: a strategy sets it
    int64_t given_value;
    int slot;          // local: its place in the frame; else its number among the unit's variables
    const CExpr *init; // NULL: none
    int init_slots;    // static storage: places that a frame needs to evaluate init
    const CExpr *length;       // of an array of variable length
    const CFunction *function; // that it is local to; NULL at file scope
    Array(CSite) changes;      // by functions, one for each and its bytes (state/changes.c)
    Array(CSite) reads;
    Array(const CFunction *) through; // by which what its pointers point to is changed
    Array(CModelUse) uses;            // by models (state/state.c)
};

/* An operator: a function under `#pragma hspmd op`. */
typedef struct COperator {
    const OpDef *def;
    const CFunction *function;
    int *operand_param; // by operand of the rule: the parameter
    int *attr_param;    // by attribute: the parameter
    const Pragma *pragma;
    int part; // the source whose names its rule may use
} COperator;

struct CFunction {
    const char *name;
    Position at;
    const CType *type, *result;
    bool variadic, library; // declared in hetu's headers
    bool system;            // declared in a header of the system, or built into the C compiler
    bool is_static;
    bool weak; // an attribute or a pragma says that another definition may take its place
    Position weak_at;
    bool alias; // an attribute makes it another name of a function
    int part;   // that defines it, or declares it first; 0: the file of the models
    Array(CVar *) params;
    const CStmt *body; // NULL: declared only
    int slot_count;    // of a frame
    int number;        // among the unit's functions
    const COperator *op;
    const struct Builtin *builtin; // found when it is first called
    bool evaluated;                // for some model
    bool outside; // it runs when the program does, not for a model alone (state/state.c)
};

/* ---- expressions ---- */

typedef enum CExprKind {
    C_INT,        // integer (also characters, enumerators, sizeof)
    C_FLOAT,      // number
    C_STRING,     // string, length with the terminating zero
    C_VAR,        // var
    C_FUNCTION,   // function
    C_UNARY,      // op a
    C_BINARY,     // a op b; `&&`, `||` and `,` too
    C_ASSIGN,     // a = b, or a op= b when op is set
    C_CAST,       // (type)a, or a conversion that C makes by itself
    C_CALL,       // a(args)
    C_MEMBER,     // a.name, or a->name when arrow
    C_INDEX,      // a[b]; a is the pointer
    C_SELECT,     // a ? b : c; without b: a ?: c
    C_LITERAL,    // (type){...}: init is a
    C_INIT,       // {args}
    C_DESIGNATED, // in C_INIT: designators and value a
    C_STATEMENT,  // ({...})
    C_REFUSED     // string says what; args are its operands
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
    OP_SIZEOF // of a variable of variable length
} COperation;

typedef struct CDesignator {
    const char *field;         // or NULL:
    const void *decl;          // of the field
    const CExpr *first, *last; // [first] or [first ... last]
} CDesignator;

struct CExpr {
    CExprKind kind;
    COperation op;
    bool arrow;
    uint8_t effects; // an Effects of eval/order.h
    bool inner;      // an operand of an operator, with which a compiler may fold it
    const CType *type;
    Position at;
    union {
        uint64_t integer;
        double number;
        const char *string;
        CVar *var;
        CFunction *function;
        const CStmt *statement;
        const CField *field; // C_MEMBER: with the offset from the outermost struct
    };
    const char *name; // C_MEMBER
    int64_t length;   // C_STRING
    int slot; // a place in the frame for a value that needs storage, C_STRING: its number among the
              // unit's strings; -1 none
    const CExpr *a, *b, *c;
    Array(const CExpr *) args;      // C_CALL, C_INIT
    Array(CDesignator) designators; // C_DESIGNATED
    const struct CLayout *layout;   // C_INIT: what goes where, once it is known (eval/init.c)
};

/* ---- statements ---- */

typedef enum CStmtKind {
    CS_EXPR,     // expr, NULL for `;`
    CS_DECL,     // vars
    CS_COMPOUND, // body
    CS_IF,       // expr, then, other
    CS_FOR,      // init, expr, step, then
    CS_WHILE,    // expr, then
    CS_DO,       // then, expr
    CS_SWITCH,   // expr, then
    CS_CASE,     // first .. last, then
    CS_DEFAULT,  // then
    CS_BREAK,
    CS_CONTINUE,
    CS_RETURN, // expr or NULL
    CS_LABEL,  // label, then
    CS_GOTO,   // label
    CS_PRAGMA, // pragma: dims, shard, reshard
    CS_MARKED, // pragmas layer and recompute, then
    CS_REFUSED // text says what; body is what stands in it
} CStmtKind;

struct CStmt {
    CStmtKind kind;
    Position at;
    const CExpr *expr, *step, *first, *last;
    const CStmt *init, *then, *other;
    Array(const CStmt *) body;
    Array(CVar *) vars;
    bool scoped;               // CS_COMPOUND: it declares an ht_scope
    int first_slot, last_slot; // CS_COMPOUND: what lives as long as it, the last one excluded
    Array(const Pragma *) pragmas;
    const char *text;
    const void *label; // which label it is, or goes to
};

/* ---- the unit ---- */

typedef struct CConstant {
    const char *name;
    int64_t value;
    const CType *type;
} CConstant;

/* The common types, by C's names. */
typedef struct CTypes {
    const CType *tvoid, *tbool, *tint, *tunsigned, *tlong, *tulong, *tlonglong, *tulonglong,
        *tfloat, *tdouble, *tensor;
} CTypes;

/* A program's sources: the file whose models are wanted, and those which they need. */
typedef struct CUnit {
    Arena *arena;
    Diag *diag;
    const char *file;
    CTypes types;
    Array(CFunction *) functions; // in the order of their first declaration
    Array(CVar *) vars;           // with static storage
    Array(CConstant) constants;   // of enumerations at file scope
    Array(CVar *) shapes;         // of `shape` pragmas
    Array(const COperator *) operators;
    Array(Pragma *) pragmas; // all active ones, in the order of the translation unit
    int string_count;
    int part;              // the source that is being read; 0: the file of the models
    int own_pragmas;       // how many of `pragmas` stand in the file of the models and its headers
    Array(UnitFile) files; // of the user's
    const char *free_arithmetic; // the option under which floating point is not computed as C says;
                                 // NULL: none
    bool contracts;              // a product and a sum may be rounded once
    bool wraps;                  // signed integers wrap around
    bool optimizes;              // the C compiler folds constant variables, too
    void *names;  // hash of functions, variables at file scope and constants (cunit_lookup), of the
                  // file of the models in the end
    void *shared; // those that are the same for all sources of the program
    Array(const void *) parts; // `names` of each source
} CUnit;

/* What a name at file scope stands for; all NULL when it is not declared. */
typedef struct CName {
    CFunction *function;
    CVar *var;
    const CConstant *constant;
} CName;
CName cunit_lookup(const CUnit *unit, const char *name);
/* The same among other names than those of the unit. */
CName names_lookup(const void *names, const char *name);
/* What the rule of an operator calls so. */
CName cunit_lookup_beside(const CUnit *unit, const OpDef *def, const char *name);
/* What a name of external linkage stands for in every source that was read. */
CName cunit_shared(const CUnit *unit, const char *name);
void cunit_share(CUnit *unit, const char *name, CName what);
void cunit_declare(CUnit *unit, const char *name, CName what);

/* The field `name` of a struct, also inside anonymous members, with the offset from the start of
 * `type`; false when there is none. */
bool ctype_field(const CType *type, const char *name, CField *found);
/* The same for the field of a declaration. */
bool ctype_declared_field(const CType *type, const void *decl, CField *found);

/* An expression of which kind, type and place are given. */
CExpr *cexpr_new(Arena *arena, CExprKind kind, const CType *type, Position at);

/* The function that an expression names, by its address too; NULL for none. */
CFunction *cexpr_function(const CExpr *expr);

/* What an initializer list gives the member number `index`, called `name`; NULL: nothing. */
const CExpr *cexpr_member(const CExpr *list, int index, const char *name);

/* Calls `visit` for every expression in an expression, or in a statement, outer ones first; NULL
 * has none. */
typedef void CVisit(const CExpr *expr, void *data);
void cexpr_walk(const CExpr *expr, CVisit *visit, void *data);
void cstmt_walk(const CStmt *stmt, CVisit *visit, void *data);

bool ctype_is_arithmetic(const CType *type);
bool ctype_is_integer(const CType *type); // CT_BOOL or CT_INT
bool ctype_is_floating(const CType *type);

/* C's integer promotion, and the usual arithmetic conversions of two arithmetic types. */
const CType *ctype_promoted(const CTypes *types, const CType *type);
const CType *ctype_common(const CTypes *types, const CType *a, const CType *b);

#endif
