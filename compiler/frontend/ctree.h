/* The C tree: a translation unit as the evaluator sees it.
 *
 *     clang/               builds it from libclang's cursors
 *     pragma/expression.c  builds the expressions in pragmas
 *     ctype.h, cexpr.h     types; expressions and statements
 *     ctree.h              variables, functions, the unit
 *
 * Every expression has its type, so that implicit conversions are explicit nodes (C_CAST). What the
 * evaluator cannot do is a C_REFUSED node with a message, an error only when evaluated.
 *
 * A construct from a macro's argument has the position of the argument; any other construct from a
 * macro has the position of the macro's use. */
#pragma once

#include "frontend/cexpr.h"

typedef struct OpDef OpDef;       // rule/rule.h
typedef struct UnitFile UnitFile; // ir/unit.h

/* ---- declarations ---- */

/* A range [from, to) of a variable's bytes. */
typedef struct CBytes {
    int64_t from, to;
} CBytes;

/* A place where a function reads or changes a variable. */
typedef struct CSite {
    const CFunction *function;
    Position at;
    CBytes bytes; // bytes that the function changes; unused for a read
    bool pointer; // the change is through a pointer; `at` is where the address is taken
} CSite;

/* How the evaluation of a model uses a variable of static storage. */
typedef struct CModelUse {
    const CFunction *model;
    Position read_at;    // where the value from before the evaluation is read; file NULL: nowhere
    Position written_at; // where the variable is changed; file NULL: nowhere
    const bool *read;    // for each byte of the variable, whether its earlier value is read
    bool state;          // the bytes that were read have another value after the evaluation
} CModelUse;

/* Reads and changes of a variable. state/changes.c fills all fields but `uses`. */
typedef struct CAccess {
    Array(CSite) changes; // a site for each function and range of bytes that the function changes
    Array(CSite) reads;
    Array(const CFunction *) through; // functions that change what the variable points to
    Array(CModelUse) uses;            // one for each model (state/state.c)
} CAccess;

struct CVar {
    const char *name;
    const CType *type;
    Position at;
    bool local;     // a parameter, or a variable with automatic storage
    bool is_static; // declared `static`
    bool is_const, defined;
    bool folded;   // constant, visible in this file alone: an optimizing C compiler folds it
    bool system;   // declared in a system header
    bool internal; // at file scope, with internal linkage
    int part;      // number of the source: 0 is the file of the models
    bool shape;    // named by a pragma `shape`
    bool given;    // a strategy sets its initial value, given_value
    int64_t given_value;
    int slot;                  // local: its slot in the frame; else its number in the unit
    const CExpr *init;         // NULL: the variable has no initializer
    int init_slots;            // static storage: number of frame slots to evaluate init
    const CExpr *length;       // length of a variable-length array
    const CFunction *function; // the function that it is local to; NULL at file scope
    CAccess access;
};

/* An operator: a function under `#pragma hspmd op`. */
typedef struct COperator {
    const OpDef *def;
    const CFunction *function;
    int *operand_param; // for each operand of the rule, its parameter's index
    int *attr_param;    // for each attribute, its parameter's index
    const Pragma *pragma;
    int part; // number of the source whose names its rule may use
} COperator;

struct CFunction {
    const char *name;
    Position at;
    const CType *type, *result;
    bool variadic, library; // library: declared in hetu's headers
    bool system;            // declared in a system header, or built into the C compiler
    bool is_static;
    bool weak; // an attribute or a pragma lets another definition replace it
    Position weak_at;
    bool alias; // an attribute makes it another name of a function
    int part;   // number of the source that defines or first declares it; 0: the file of the models
    Array(CVar *) params;
    const CStmt *body; // NULL: only declared
    int slot_count;    // number of slots of the function's frame
    int number;        // number of the function in the unit
    const COperator *op;
    const struct Builtin *builtin; // found at the first call
    bool evaluated;                // a model's evaluation called it
    bool outside;                  // runs when the program runs, not only in models (state/state.c)
};

/* ---- the unit ---- */

typedef struct CConstant {
    const char *name;
    int64_t value;
    const CType *type;
} CConstant;

/* How the C compiler's options permit arithmetic that differs from C's rules. */
typedef struct CArithmetic {
    const char *free_option; // the option that frees floating point from C's rules; NULL: none
    bool contracts;          // products and sums may be contracted (fused multiply-add)
    bool wraps;              // signed integers wrap around on overflow
    bool optimizes;          // the C compiler folds constant variables, too
} CArithmetic;

/* The sources of a program: the file of the models, and the sources that these models need. */
typedef struct CUnit {
    Arena *arena;
    Diag *diag;
    const char *file;
    CTypes types;
    Array(CFunction *) functions; // in the order of their first declaration
    Array(CVar *) vars;           // variables of static storage
    Array(CConstant) constants;   // constants of enumerations at file scope
    Array(CVar *) shapes;         // named by pragmas `shape`
    Array(const COperator *) operators;
    Array(Pragma *) pragmas; // all that are not under `#if 0`, in the order of the translation unit
    int string_count;
    int part;              // number of the source that is being read; 0: the file of the models
    int own_pragmas;       // how many of `pragmas` are in the file of the models and its headers
    Array(UnitFile) files; // the user's files
    CArithmetic arithmetic;
    void *names;               // table of names at file scope; after reading: of the models' file
    void *shared;              // table of names of external linkage, which all sources share
    Array(const void *) parts; // `names` of each source
} CUnit;

/* The meaning of a name at file scope; all NULL when it is not declared. */
typedef struct CName {
    CFunction *function;
    CVar *var;
    const CConstant *constant;
} CName;
CName cunit_lookup(const CUnit *unit, const char *name);
/* Returns the meaning of a name, which a rule mentions, in the source of the rule's operator. */
CName cunit_lookup_beside(const CUnit *unit, const OpDef *def, const char *name);
/* Return and set the meaning of an external name; cunit_declare sets that of a file-scope name. */
CName cunit_shared(const CUnit *unit, const char *name);
void cunit_share(CUnit *unit, const char *name, CName what);
void cunit_declare(CUnit *unit, const char *name, CName what);
