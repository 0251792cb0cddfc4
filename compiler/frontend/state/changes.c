/* Finds which functions read and change each variable. Pointers are followed from variable to
 * variable, without regard to the order of statements: a store through a pointer changes every
 * variable whose address the pointer may have.
 *
 *     int *p = &seed;  *p = 1;      `seed` is changed where its address is taken */
#include "frontend/state/state.h"

#include <string.h>

/* How code uses a value: reads it, keeps it in a variable, or gives it to unknown code. */
typedef enum UseKind { USE_READ, USE_KEPT, USE_GIVEN } UseKind;

typedef struct Use {
    UseKind kind;
    CVar *to; // USE_KEPT: the variable
} Use;

typedef struct Scan {
    CUnit *unit;
    const CFunction *function; // NULL: an initializer at file scope
    bool learnt;               // something new was recorded
} Scan;

static void scan(Scan *s, const CExpr *expr, Use use);
static void scan_any(Scan *s, const CExpr *expr, Use use);
static void scan_statement(Scan *s, const CStmt *stmt);

static const Use READ = {USE_READ, NULL}, GIVEN = {USE_GIVEN, NULL};

/* ---- recording ---- */

static bool has_site(const CSite *sites, int count, const CFunction *function) {
    for (int i = 0; i < count; i++)
        if (sites[i].function == function) return true;
    return false;
}

static void note_read(Scan *s, CVar *var, Position at) {
    if (s->function && !has_site(var->access.reads.at, var->access.reads.count, s->function))
        array_push(s->unit->arena, &var->access.reads, (CSite){.function = s->function, .at = at});
}

static bool has_change(const CVar *var, const CFunction *function, CBytes bytes) {
    for (int i = 0; i < var->access.changes.count; i++) {
        const CSite *site = &var->access.changes.at[i];
        if (site->function == function && site->bytes.from <= bytes.from &&
            bytes.to <= site->bytes.to)
            return true;
    }
    return false;
}

static void note_change(Scan *s, CVar *var, const CFunction *function, CSite change) {
    change.function = function;
    if (has_change(var, function, change.bytes)) return;
    array_push(s->unit->arena, &var->access.changes, change);
    s->learnt = true;
}

static void note_through(Scan *s, CVar *var, const CFunction *function) {
    for (int i = 0; i < var->access.through.count; i++)
        if (var->access.through.at[i] == function) return;
    array_push(s->unit->arena, &var->access.through, function);
    s->learnt = true;
}

static bool may_change(Use use) {
    return use.kind == USE_GIVEN || (use.kind == USE_KEPT && use.to->access.through.count);
}

/* Returns how many functions may change what is used: one, the current function; for an initializer
 * at file scope, those that store through the variable. */
static int changers(const Scan *s, Use use) {
    return s->function ? 1 : use.kind == USE_KEPT ? use.to->access.through.count : 0;
}

static const CFunction *changer(const Scan *s, Use use, int index) {
    return s->function ? s->function : use.to->access.through.at[index];
}

/* ---- places (lvalues) ---- */

static bool is_decay(const CExpr *expr) {
    return expr->kind == C_CAST && expr->type->kind == CT_POINTER &&
           expr->a->type->kind == CT_ARRAY;
}

static bool is_hyper(const CExpr *member) {
    const CType *of = member->member.arrow ? member->a->type->base : member->a->type;
    return !strcmp(member->member.name, "hyper") && strstr(of->name, "ht_optimizer");
}

/* Returns the variable that contains an lvalue. When a pointer leads to the lvalue, sets *pointer
 * and returns NULL. Returns NULL for an optimizer's `hyper`, too, which is set at run time. */
static CVar *place_root(const CExpr *expr, const CExpr **pointer) {
    bool hyper = false;
    *pointer = NULL;
    for (;;) {
        bool follows = expr->kind == C_INDEX || (expr->kind == C_MEMBER && expr->member.arrow) ||
                       (expr->kind == C_UNARY && expr->op == OP_DEREFERENCE);
        hyper |= expr->kind == C_MEMBER && is_hyper(expr);
        if (follows && expr->a->type->kind != CT_ARRAY && !is_decay(expr->a)) {
            *pointer = expr->a;
            return NULL;
        }
        if (follows && is_decay(expr->a)) expr = expr->a->a;
        else if (follows || expr->kind == C_MEMBER || expr->kind == C_CAST) expr = expr->a;
        else return expr->kind == C_VAR && !hyper ? expr->var : NULL;
    }
}

/* Returns the bytes that an lvalue covers: a member's bytes or, for an element, its whole array. */
static CBytes place_bytes(const CExpr *expr) {
    if (expr->kind == C_VAR) return (CBytes){0, expr->type->size};
    const CExpr *whole = is_decay(expr->a) ? expr->a->a : expr->a;
    CBytes bytes = place_bytes(whole);
    bool member = expr->kind == C_MEMBER && !expr->member.field->width &&
                  bytes.to - bytes.from == whole->type->size;
    return member ? (CBytes){bytes.from + expr->member.field->offset,
                             bytes.from + expr->member.field->offset + expr->type->size}
                  : bytes;
}

/* Returns the argument into which a C library function returns a writable pointer; NULL: none. */
static const CExpr *given_back(const CExpr *call) {
    static const char *const first[] = {"strchr", "strrchr", "strstr", "strpbrk", "memchr"};
    const CFunction *function = cexpr_function(call->a);
    if (!function || function->body) return NULL;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (!strcmp(function->name, first[i])) return call->args.count ? call->args.at[0] : NULL;
    return !strcmp(function->name, "bsearch") && call->args.count > 1 ? call->args.at[1] : NULL;
}

/* Records a store through a pointer as a change of every variable that it may point to. */
static void change_through(Scan *s, const CExpr *pointer, Position at) {
    const CExpr *inner;
    while (pointer->kind == C_CAST && !is_decay(pointer)) pointer = pointer->a;
    switch (pointer->kind) {
    case C_BINARY:
        change_through(s, pointer->a->type->kind == CT_POINTER ? pointer->a : pointer->b, at);
        return;
    case C_SELECT:
        change_through(s, pointer->b ? pointer->b : pointer->a, at);
        change_through(s, pointer->c, at);
        return;
    case C_CAST:
    case C_UNARY:
        if (pointer->kind == C_CAST || pointer->op == OP_ADDRESS) {
            CVar *var = place_root(pointer->a, &inner);
            if (var)
                note_change(s, var, s->function,
                            (CSite){.at = at, .bytes = place_bytes(pointer->a), .pointer = true});
            else if (inner) change_through(s, inner, at);
            return;
        }
        if (pointer->op != OP_DEREFERENCE) {
            change_through(s, pointer->a, at);
            return;
        }
        break;
    case C_ASSIGN: change_through(s, pointer->a, at); return;
    case C_CALL:
        inner = given_back(pointer);
        if (inner) change_through(s, inner, at);
        return;
    case C_VAR:
    case C_MEMBER:
    case C_INDEX: break;
    default: return;
    }
    CVar *holder = place_root(pointer, &inner);
    if (holder) note_through(s, holder, s->function);
    else if (inner) change_through(s, inner, at);
}

/* Records the variables that an lvalue's expression reads: indices, and pointers on the path. */
static void scan_place(Scan *s, const CExpr *expr) {
    bool follows = expr->kind == C_INDEX || expr->kind == C_MEMBER ||
                   (expr->kind == C_UNARY && expr->op == OP_DEREFERENCE);
    if (expr->kind == C_VAR) return;
    if (expr->kind == C_INDEX) scan(s, expr->b, READ);
    if (follows && is_decay(expr->a)) scan_place(s, expr->a->a);
    else if (expr->kind == C_CAST || (follows && expr->a->type->kind != CT_POINTER))
        scan_place(s, expr->a);
    else scan(s, follows ? expr->a : expr, READ);
}

static void change(Scan *s, const CExpr *place, Position at) {
    const CExpr *pointer;
    for (int i = 0; place->kind == C_REFUSED && i < place->args.count; i++)
        change(s, place->args.at[i], at);
    CVar *var = place_root(place, &pointer);
    if (var) note_change(s, var, s->function, (CSite){.at = at, .bytes = place_bytes(place)});
    else if (pointer) change_through(s, pointer, at);
    scan_place(s, place);
}

/* Records the changes that may follow when an lvalue's address is used as `use` says. */
static void give_address(Scan *s, const CExpr *place, Use use, Position at) {
    const CExpr *pointer;
    CVar *var = place_root(place, &pointer);
    scan_place(s, place);
    if (var) note_read(s, var, at);
    if (!may_change(use)) return;
    if (pointer) change_through(s, pointer, at);
    for (int i = 0; var && i < changers(s, use); i++) {
        note_change(s, var, changer(s, use, i),
                    (CSite){.at = at, .bytes = place_bytes(place), .pointer = true});
        note_through(s, var, changer(s, use, i));
    }
}

/* Records a read of an lvalue, used as `use` says, and changes through pointers in its value. */
static void give_value(Scan *s, const CExpr *place, Use use) {
    const CExpr *pointer;
    CVar *var = place_root(place, &pointer);
    scan_place(s, place);
    if (var) note_read(s, var, place->at);
    if (!may_change(use) || (place->type->kind != CT_POINTER && place->type->kind != CT_STRUCT))
        return;
    for (int i = 0; var && i < changers(s, use); i++) note_through(s, var, changer(s, use, i));
    if (pointer) change_through(s, pointer, place->at);
}

/* ---- expressions ---- */

static void scan_assignment(Scan *s, const CExpr *expr, Use use) {
    const CExpr *pointer;
    CVar *holder = place_root(expr->a, &pointer);
    change(s, expr->a, expr->at);
    if (expr->op) scan(s, expr->a, READ);
    bool one = use.kind == USE_READ && holder;
    scan(s, expr->b, one ? (Use){USE_KEPT, holder} : GIVEN);
}

/* Returns whether a function only reads its variadic arguments: no body, `printf` in the name. */
static bool only_reads(const CFunction *function) {
    return !function->body && strstr(function->name, "printf");
}

/* Returns how a function, NULL for an unknown one, uses its argument number `index`. */
static Use argument_use(const CFunction *function, int index) {
    if (!function) return GIVEN;
    if (index >= function->params.count) return only_reads(function) ? READ : GIVEN;
    CVar *param = function->params.at[index];
    if (!function->body && param->type->kind == CT_POINTER && param->type->to_const) return READ;
    return function->body ? (Use){USE_KEPT, param} : GIVEN;
}

static void scan_call(Scan *s, const CExpr *expr, Use use) {
    const CFunction *function = cexpr_function(expr->a);
    if (!function) scan(s, expr->a, READ);
    for (int i = 0; i < expr->args.count; i++)
        if (expr->args.at[i] == given_back(expr)) scan_any(s, expr->args.at[i], use);
        else scan(s, expr->args.at[i], argument_use(function, i));
}

static void scan_unary(Scan *s, const CExpr *expr, Use use) {
    if (expr->op == OP_ADDRESS && expr->a->kind != C_FUNCTION)
        give_address(s, expr->a, use, expr->at);
    else if (expr->op == OP_DEREFERENCE) give_value(s, expr, use);
    else if (expr->op >= OP_PRE_INC && expr->op <= OP_POST_DEC) {
        change(s, expr->a, expr->at);
        scan(s, expr->a, use);
    } else {
        scan(s, expr->a, READ);
    }
}

static void scan_binary(Scan *s, const CExpr *expr, Use use) {
    bool moves = expr->type->kind == CT_POINTER && expr->op != OP_COMMA;
    scan(s, expr->a, moves ? use : READ);
    scan(s, expr->b, moves || expr->op == OP_COMMA ? use : READ);
}

static void scan_block_value(Scan *s, const CStmt *block, Use use) {
    for (int i = 0; i < block->body.count; i++) {
        const CStmt *stmt = block->body.at[i];
        if (i + 1 == block->body.count && stmt->kind == CS_EXPR && stmt->expr)
            scan(s, stmt->expr, use);
        else scan_statement(s, stmt);
    }
}

/* Records the uses in an expression. A pointer to const only reads its target, unless a variable
 * keeps the pointer, which may be cast later. */
static void scan(Scan *s, const CExpr *expr, Use use) {
    bool pointer = use.kind == USE_KEPT && use.to->type->kind == CT_POINTER;
    if (expr)
        scan_any(s, expr,
                 !pointer && expr->type->kind == CT_POINTER && expr->type->to_const ? READ : use);
}

/* Records the uses of a cast's operand. A pointer to non-const may be written through. */
static void scan_cast(Scan *s, const CExpr *expr, Use use) {
    if (is_decay(expr)) give_address(s, expr->a, use, expr->at);
    else if (expr->type->kind == CT_POINTER && !expr->type->to_const) scan_any(s, expr->a, use);
    else scan(s, expr->a, use);
}

static void scan_any(Scan *s, const CExpr *expr, Use use) {
    switch (expr->kind) {
    case C_VAR:
    case C_MEMBER:
    case C_INDEX: give_value(s, expr, use); break;
    case C_UNARY: scan_unary(s, expr, use); break;
    case C_BINARY: scan_binary(s, expr, use); break;
    case C_ASSIGN: scan_assignment(s, expr, use); break;
    case C_CALL: scan_call(s, expr, use); break;
    case C_STATEMENT: scan_block_value(s, expr->statement, use); break;
    case C_SELECT:
        scan(s, expr->a, expr->b ? READ : use);
        scan(s, expr->b, use);
        scan(s, expr->c, use);
        break;
    case C_CAST: scan_cast(s, expr, use); break;
    case C_LITERAL:
    case C_DESIGNATED: scan(s, expr->a, use); break;
    case C_INIT:
        for (int i = 0; i < expr->args.count; i++) scan(s, expr->args.at[i], use);
        break;
    case C_REFUSED:
        for (int i = 0; i < expr->args.count; i++) scan(s, expr->args.at[i], GIVEN);
        break;
    case C_INT:
    case C_FLOAT:
    case C_STRING:
    case C_FUNCTION: break;
    }
}

/* ---- statements and functions ---- */

static void scan_statement(Scan *s, const CStmt *stmt) {
    if (!stmt) return;
    scan(s, stmt->expr, stmt->kind == CS_RETURN ? GIVEN : READ);
    scan(s, stmt->step, READ);
    scan_statement(s, stmt->init);
    scan_statement(s, stmt->then);
    scan_statement(s, stmt->other);
    for (int i = 0; i < stmt->vars.count; i++) {
        scan(s, stmt->vars.at[i]->length, READ);
        scan(s, stmt->vars.at[i]->init, (Use){USE_KEPT, stmt->vars.at[i]});
    }
    for (int i = 0; i < stmt->body.count; i++) scan_statement(s, stmt->body.at[i]);
}

void changes_find(CUnit *unit) {
    for (bool more = true; more;) {
        Scan s = {.unit = unit};
        for (int i = 0; i < unit->vars.count; i++)
            if (!unit->vars.at[i]->function)
                scan(&s, unit->vars.at[i]->init, (Use){USE_KEPT, unit->vars.at[i]});
        for (int i = 0; i < unit->functions.count; i++) {
            s.function = unit->functions.at[i];
            scan_statement(&s, s.function->body);
        }
        more = s.learnt;
    }
}
