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

#include "frontend/cexpr.h"

typedef struct OpDef OpDef;       // rule/rule.h
typedef struct UnitFile UnitFile; // ir/unit.h

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

/* Where a variable is read and changed. Pass state/changes.c fills all but `uses`. */
typedef struct CAccess {
    Array(CSite) changes; // one for each function and the bytes that it changes
    Array(CSite) reads;
    Array(const CFunction *) through; // functions that change what the variable points to
    Array(CModelUse) uses;            // one for each model (state/state.c)
} CAccess;

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
    CAccess access;
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

/* ---- the unit ---- */

typedef struct CConstant {
    const char *name;
    int64_t value;
    const CType *type;
} CConstant;

/* How the C compiler's options let it compute. */
typedef struct CArithmetic {
    const char *free_option; // the option that frees floating point from C's rules; NULL: none
    bool contracts;          // a product and a sum may be rounded once
    bool wraps;              // signed integers wrap around
    bool optimizes;          // the C compiler folds constant variables, too
} CArithmetic;

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
    CArithmetic arithmetic;
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

#endif
