/* Names, scopes and types of the C tree: lookup across sources, and C's usual conversions. */
#include "frontend/ctree.h"

#include "rule/rule.h"

#include <string.h>
#include <uthash.h>

typedef struct Named {
    const char *name;
    CName what;
    UT_hash_handle hh;
} Named;

/* Returns the meaning of a name in a table of CUnit.parts; all NULL: the table lacks the name. */
static CName names_lookup(const void *names, const char *name) {
    const Named *table = names;
    Named *found;
    HASH_FIND_STR(table, name, found);
    return found ? found->what : (CName){0};
}

CName cunit_lookup(const CUnit *unit, const char *name) { return names_lookup(unit->names, name); }

CName cunit_shared(const CUnit *unit, const char *name) { return names_lookup(unit->shared, name); }

CName cunit_lookup_beside(const CUnit *unit, const OpDef *def, const char *name) {
    for (int i = 0; i < unit->operators.count; i++)
        if (unit->operators.at[i]->def->rule == def->rule)
            return names_lookup(unit->parts.at[unit->operators.at[i]->part], name);
    return cunit_lookup(unit, name);
}

/* Sets the meaning of a name in a table. */
static void declare(Arena *arena, void **names, const char *name, CName what) {
    Named *table = *names, *found;
    HASH_FIND_STR(table, name, found);
    if (!found) {
        found = arena_new(arena, Named);
        found->name = name;
        HASH_ADD_KEYPTR(hh, table, name, strlen(name), found);
        *names = table;
    }
    found->what = what;
}

void cunit_declare(CUnit *unit, const char *name, CName what) {
    declare(unit->arena, &unit->names, name, what);
}

void cunit_share(CUnit *unit, const char *name, CName what) {
    declare(unit->arena, &unit->shared, name, what);
}

bool ctype_field(const CType *type, const char *name, CField *found) {
    for (int i = 0; i < type->fields.count; i++) {
        const CField *field = &type->fields.at[i];
        if (!strcmp(field->name, name)) {
            *found = *field;
            return true;
        }
        if (!*field->name && ctype_field(field->type, name, found)) {
            found->offset += field->offset;
            return true;
        }
    }
    return false;
}

bool ctype_declared_field(const CType *type, const void *decl, CField *found) {
    for (int i = 0; i < type->fields.count; i++) {
        const CField *field = &type->fields.at[i];
        if (field->decl == decl) {
            *found = *field;
            return true;
        }
        if (!*field->name && ctype_declared_field(field->type, decl, found)) {
            found->offset += field->offset;
            return true;
        }
    }
    return false;
}

CExpr *cexpr_new(Arena *arena, CExprKind kind, const CType *type, Position at) {
    CExpr *expr = arena_new(arena, CExpr);
    *expr = (CExpr){.kind = kind, .type = type, .at = at, .slot = -1};
    return expr;
}

CFunction *cexpr_function(const CExpr *expr) {
    while (expr && (expr->kind == C_CAST || (expr->kind == C_UNARY && expr->op == OP_ADDRESS)))
        expr = expr->a;
    return expr && expr->kind == C_FUNCTION ? expr->function : NULL;
}

const CExpr *cexpr_member(const CExpr *list, int index, const char *name) {
    const CExpr *found = NULL;
    int next = 0;
    for (int i = 0; i < list->args.count; i++) {
        const CExpr *value = list->args.at[i];
        if (value->kind == C_DESIGNATED) {
            next = -1000;
            if (value->designators.count == 1 && value->designators.at[0].field &&
                !strcmp(value->designators.at[0].field, name))
                found = value->a;
        } else if (next++ == index) {
            found = value;
        }
    }
    return found;
}

void cexpr_walk(const CExpr *expr, CVisit *visit, void *data) {
    if (!expr) return;
    visit(expr, data);
    cexpr_walk(expr->a, visit, data);
    cexpr_walk(expr->b, visit, data);
    cexpr_walk(expr->c, visit, data);
    for (int i = 0; i < expr->args.count; i++) cexpr_walk(expr->args.at[i], visit, data);
    if (expr->kind == C_STATEMENT) cstmt_walk(expr->statement, visit, data);
}

void cstmt_walk(const CStmt *stmt, CVisit *visit, void *data) {
    if (!stmt) return;
    cexpr_walk(stmt->expr, visit, data);
    cexpr_walk(stmt->step, visit, data);
    cstmt_walk(stmt->init, visit, data);
    cstmt_walk(stmt->then, visit, data);
    cstmt_walk(stmt->other, visit, data);
    for (int i = 0; i < stmt->vars.count; i++) {
        cexpr_walk(stmt->vars.at[i]->length, visit, data);
        cexpr_walk(stmt->vars.at[i]->init, visit, data);
    }
    for (int i = 0; i < stmt->body.count; i++) cstmt_walk(stmt->body.at[i], visit, data);
}

bool ctype_is_integer(const CType *type) { return type->kind == CT_BOOL || type->kind == CT_INT; }
bool ctype_is_floating(const CType *type) {
    return type->kind == CT_FLOAT || type->kind == CT_DOUBLE;
}
bool ctype_is_arithmetic(const CType *type) {
    return ctype_is_integer(type) || ctype_is_floating(type);
}

const CType *ctype_promoted(const CTypes *types, const CType *type) {
    if (!ctype_is_integer(type)) return type;
    if (type->kind == CT_BOOL || type->rank < types->tint->rank) return types->tint;
    if (type->is_enum && type->size > types->tint->size)
        return type->is_signed ? types->tlong : types->tulong;
    if (type->is_enum) return type->is_signed ? types->tint : types->tunsigned;
    return type;
}

/* Returns the unsigned type with the rank of a signed type. */
static const CType *unsigned_of(const CTypes *types, const CType *type) {
    return type->rank == types->tint->rank    ? types->tunsigned
           : type->rank == types->tlong->rank ? types->tulong
                                              : types->tulonglong;
}

const CType *ctype_common(const CTypes *types, const CType *a, const CType *b) {
    if (a->kind == CT_DOUBLE || b->kind == CT_DOUBLE) return types->tdouble;
    if (a->kind == CT_FLOAT || b->kind == CT_FLOAT) return types->tfloat;
    a = ctype_promoted(types, a);
    b = ctype_promoted(types, b);
    if (a == b) return a;
    if (a->is_signed == b->is_signed) return a->rank > b->rank ? a : b;
    const CType *s = a->is_signed ? a : b, *u = a->is_signed ? b : a;
    if (u->rank >= s->rank) return u;
    return s->size > u->size ? s : unsigned_of(types, s);
}
