/* Reads statements of clang as statements of the C tree, with the pragmas between them.
 *
 * Offsets show where a pragma stands: between two statements, or between a head and its body. */
#include "frontend/clang/reader.h"

#include <ctype.h>
#include <string.h>

static CStmt *node(Reader *r, CXCursor cursor, CStmtKind kind) {
    CStmt *stmt = arena_new(r->arena, CStmt);
    stmt->kind = kind;
    stmt->at = clang_position(r, clang_getCursorLocation(cursor));
    return stmt;
}

/* Makes a CS_REFUSED that keeps the statements inside, which may change variables. */
static CStmt *refused(Reader *r, CXCursor cursor, const char *what) {
    CStmt *stmt = node(r, cursor, CS_REFUSED);
    stmt->text = what;
    Cursors list = clang_children(r, cursor);
    for (int i = 0; i < list.count; i++)
        if (clang_isStatement(clang_getCursorKind(list.at[i])) ||
            clang_isExpression(clang_getCursorKind(list.at[i])))
            array_push(r->arena, &stmt->body, clang_stmt(r, list.at[i]));
    return stmt;
}

/* Reads inline assembly, which may change each of its operands. */
static CStmt *assembly(Reader *r, CXCursor cursor) {
    CStmt *stmt = refused(r, cursor, "assembly");
    for (int i = 0; i < stmt->body.count; i++) {
        CStmt *operand = arena_copy(r->arena, stmt->body.at[i], sizeof *operand);
        CExpr *changed = cexpr_new(r->arena, C_ASSIGN, r->unit->types.tvoid, operand->at);
        changed->a = changed->b = operand->expr;
        if (operand->expr) operand->expr = changed;
        stmt->body.at[i] = operand;
    }
    return stmt;
}

typedef Array(Pragma *) Pragmas;

/* Appends the pragmas for statements at offsets [from, to) of a file to `taken`; resolves them. */
static void take_pragmas(Reader *r, const char *file, int from, int to, Pragmas *taken) {
    for (int i = 0; i < r->unit->pragmas.count; i++) {
        Pragma *pragma = r->unit->pragmas.at[i];
        if (pragma->used || pragma->line.file != file || pragma->line.begin < from ||
            pragma->line.begin >= to)
            continue;
        if (!pragma_acts(pragma) && !pragma_marks(pragma)) continue;
        pragma->used = true;
        pragma_resolve(r->unit, pragma, r->body.scope, &r->body.slots);
        array_push(r->arena, taken, pragma);
    }
}

/* ---- blocks ---- */

typedef struct Block {
    Reader *r;
    CStmt *stmt;
    Pragmas marks; // waiting for the next statement
} Block;

static void add_pragma(Block *block, Pragma *pragma) {
    if (pragma_marks(pragma)) {
        array_push(block->r->arena, &block->marks, pragma);
    } else if (pragma_acts(pragma)) {
        CStmt *stmt = arena_new(block->r->arena, CStmt);
        *stmt = (CStmt){.kind = CS_PRAGMA, .at = pragma->at};
        array_push(block->r->arena, &stmt->pragmas, pragma);
        array_push(block->r->arena, &block->stmt->body, stmt);
    }
}

static const CStmt *marked(Reader *r, Pragmas *marks, const CStmt *then) {
    CStmt *stmt = arena_new(r->arena, CStmt);
    *stmt = (CStmt){.kind = CS_MARKED, .at = then->at, .then = then};
    for (int i = 0; i < marks->count; i++) array_push(r->arena, &stmt->pragmas, marks->at[i]);
    *marks = (Pragmas){0};
    return stmt;
}

static bool declares_scope(const CStmt *stmt) {
    while (stmt->kind == CS_CASE || stmt->kind == CS_DEFAULT || stmt->kind == CS_LABEL)
        stmt = stmt->then;
    for (int i = 0; stmt->kind == CS_DECL && i < stmt->vars.count; i++)
        if (!strcmp(stmt->vars.at[i]->type->name, "struct ht_scope_mark")) return true;
    return false;
}

static void add_statement(Block *block, const CStmt *stmt) {
    block->stmt->scoped |= declares_scope(stmt);
    if (block->marks.count && !declares_scope(stmt)) stmt = marked(block->r, &block->marks, stmt);
    array_push(block->r->arena, &block->stmt->body, stmt);
}

/* Returns the pragma that a declaration stands for, resolved; NULL when it stands for none. */
static Pragma *asserted_pragma(Reader *r, CXCursor cursor) {
    if (clang_getCursorKind(cursor) != CXCursor_DeclStmt) return NULL;
    Cursors list = clang_children(r, cursor);
    Pragma *pragma = list.count == 1 ? clang_asserted(r, list.at[0]) : NULL;
    if (!pragma) return NULL;
    if (pragma_acts(pragma) || pragma_marks(pragma)) pragma->used = true;
    pragma_resolve(r->unit, pragma, r->body.scope, &r->body.slots);
    return pragma;
}

static void end_block(Block *block) {
    for (int i = 0; i < block->marks.count; i++)
        diag_error(block->r->diag, block->marks.at[i]->at,
                   "no statement follows the %s pragma in its block",
                   block->marks.at[i]->directive);
}

static const CStmt *compound(Reader *r, CXCursor cursor) {
    Block block = {.r = r, .stmt = node(r, cursor, CS_COMPOUND)};
    block.stmt->first_slot = r->body.slots;
    const Scope *outer = r->body.scope;
    Extent whole = clang_extent(r, cursor);
    int done = whole.begin;
    Pragmas taken = {0};
    Cursors list = clang_children(r, cursor);
    for (int i = 0; i <= list.count; i++) {
        Extent extent = i < list.count ? clang_extent(r, list.at[i])
                                       : (Extent){whole.file, whole.end, whole.end};
        taken.count = 0;
        if (extent.file == whole.file) take_pragmas(r, whole.file, done, extent.begin, &taken);
        for (int k = 0; k < taken.count; k++) add_pragma(&block, taken.at[k]);
        if (i == list.count) break;
        Pragma *pragma = asserted_pragma(r, list.at[i]);
        if (pragma) add_pragma(&block, pragma);
        else add_statement(&block, clang_stmt(r, list.at[i]));
        if (extent.file == whole.file) done = extent.end;
    }
    end_block(&block);
    block.stmt->last_slot = r->body.slots;
    r->body.scope = outer;
    return block.stmt;
}

/* Reads the body of a statement whose head ends at `from`, and the pragmas before the body. */
static const CStmt *body(Reader *r, const char *file, int from, CXCursor cursor) {
    Extent extent = clang_extent(r, cursor);
    Pragmas taken = {0}, marks = {0};
    const Scope *outer = r->body.scope;
    if (extent.file == file) take_pragmas(r, file, from, extent.begin, &taken);
    for (int i = 0; i < taken.count; i++)
        if (pragma_marks(taken.at[i])) array_push(r->arena, &marks, taken.at[i]);
        else if (pragma_acts(taken.at[i]))
            diag_error(r->diag, taken.at[i]->at,
                       "the %s pragma may not be the body of a statement; put braces around it",
                       taken.at[i]->directive);
    const CStmt *stmt = clang_stmt(r, cursor);
    if (clang_getCursorKind(cursor) != CXCursor_DeclStmt) r->body.scope = outer;
    return marks.count ? marked(r, &marks, stmt) : stmt;
}

static const CStmt *body_behind(Reader *r, CXCursor head, CXCursor cursor) {
    Extent extent = clang_extent(r, head);
    return body(r, extent.file, extent.end, cursor);
}

/* ---- declarations ---- */

/* Returns an array's length, the last expression that libclang lists in `decl`; NULL: none. */
static const CExpr *array_length(Reader *r, CXCursor decl) {
    Cursors list = clang_children(r, decl);
    for (int i = list.count; i-- > 0;)
        if (clang_isExpression(clang_getCursorKind(list.at[i]))) return clang_expr(r, list.at[i]);
    return NULL;
}

/* Returns the variable of a declaration, and adds it to the scope. */
static CVar *into_scope(Reader *r, CXCursor decl) {
    Scope *scope = arena_new(r->arena, Scope);
    *scope = (Scope){.var = clang_variable(r, decl), .outer = r->body.scope};
    r->body.scope = scope;
    return scope->var;
}

static void declare(Reader *r, CStmt *stmt, CXCursor decl) {
    CVar *var = into_scope(r, decl);
    if (clang_Cursor_getStorageClass(decl) == CX_SC_Extern) return;
    if (var->type->kind == CT_ARRAY && var->type->variable) var->length = array_length(r, decl);
    var->init = clang_initializer(r, decl);
    var->init_slots = r->body.slots;
    var->defined = true;
    if (var->local) array_push(r->arena, &stmt->vars, var);
}

static const CStmt *declaration(Reader *r, CXCursor cursor) {
    CStmt *stmt = node(r, cursor, CS_DECL);
    Cursors list = clang_children(r, cursor);
    for (int i = 0; i < list.count; i++) {
        if (clang_getCursorKind(list.at[i]) != CXCursor_VarDecl) continue;
        declare(r, stmt, list.at[i]);
        if (clang_has_attribute(r, list.at[i], "cleanup")) {
            stmt->kind = CS_REFUSED;
            stmt->text = "the attribute cleanup";
        }
    }
    return stmt;
}

/* ---- loops and branches ---- */

static enum CXChildVisitResult note_loop(CXCursor cursor, CXCursor parent, CXClientData data) {
    (void)parent;
    Reader *r = data;
    if (clang_getCursorKind(cursor) == CXCursor_ForStmt)
        array_push(r->arena, &r->body.loops, cursor);
    return CXChildVisit_Recurse;
}

/* Returns the position after the string or character that begins at `at`. */
static const char *behind_quoted(const char *at) {
    char quote = *at++;
    for (; *at && *at != quote; at++) at += *at == '\\' && at[1];
    return *at ? at + 1 : at;
}

static bool is_word(char c) { return c == '_' || c == '$' || isalnum((unsigned char)c); }

/* Returns the position after the next keyword `for`; NULL: there is none. */
static const char *next_for(const char *at) {
    while (*at) {
        size_t length = 0;
        while (is_word(at[length])) length++;
        if (length == 3 && !strncmp(at, "for", 3)) return at + 3;
        at = length ? at + length : *at == '"' || *at == '\'' ? behind_quoted(at) : at + 1;
    }
    return NULL;
}

/* Sets present[] for the three parts that a `for` head may have. False: `at` begins no head. */
static bool read_head(const char *at, bool present[3]) {
    int depth = 0, part = 0;
    for (at += strspn(at, " "); *at;) {
        if (*at == '"' || *at == '\'') {
            present[part] = true;
            at = behind_quoted(at);
            continue;
        }
        char c = *at++;
        depth += strchr("([{", c) != NULL;
        depth -= strchr(")]}", c) != NULL;
        if (depth == 0) return part == 2;
        if (c == ';' && depth == 1 && ++part > 2) return false;
        if (depth > 1 || (c != ';' && c != '(' && !isspace((unsigned char)c))) present[part] = true;
    }
    return false;
}

/* Returns where the head of a `for` stands in clang's printed text of the function, which has no
 * macros. The text shows which parts the `for` leaves out; libclang does not tell which part a
 * child is. Returns NULL when the text has other loops than the tree. */
static const char *printed_head(Reader *r, CXCursor cursor) {
    const char *found = NULL, *at;
    if (!r->body.printed) {
        CXPrintingPolicy policy = clang_getCursorPrintingPolicy(r->body.cursor);
        r->body.printed = clang_string(r, clang_getCursorPrettyPrinted(r->body.cursor, policy));
        clang_PrintingPolicy_dispose(policy);
        r->body.loops.count = 0;
        clang_visitChildren(r->body.cursor, note_loop, r);
    }
    int count = 0;
    for (at = next_for(r->body.printed); at; at = next_for(at), count++)
        if (count < r->body.loops.count && r->body.loops.at[count].data[1] == cursor.data[1])
            found = at;
    return count == r->body.loops.count ? found : NULL;
}

typedef struct ForParts {
    int init, condition, step, then; // indices of children; -1: left out
} ForParts;

/* Assigns the children of a `for` to its parts; false when that is ambiguous. */
static bool for_parts(Reader *r, CXCursor cursor, const Cursors *list, ForParts *parts) {
    bool present[3] = {false, false, false};
    int *const part[] = {&parts->init, &parts->condition, &parts->step};
    int next = 0;
    *parts = (ForParts){-1, -1, -1, list->count - 1};
    if (list->count == 4) {
        *parts = (ForParts){0, 1, 2, 3};
        return true;
    }
    const char *head = list->count == 1 ? NULL : printed_head(r, cursor);
    if (list->count != 1 && (!head || !read_head(head, present))) return false;
    for (int i = 0; i < 3; i++)
        if (present[i]) *part[i] = next++;
    return next == list->count - 1;
}

static const CStmt *for_loop(Reader *r, CXCursor cursor) {
    CStmt *stmt = node(r, cursor, CS_FOR);
    const Scope *outer = r->body.scope;
    ForParts parts;
    Cursors list = clang_children(r, cursor);
    if (!for_parts(r, cursor, &list, &parts))
        return refused(r, cursor, "this for loop with parts left out");
    Extent extent = clang_extent(r, cursor);
    int head = extent.begin;
    for (int i = 0; i < parts.then; i++) {
        Extent part = clang_extent(r, list.at[i]);
        head = part.end > head ? part.end : head;
    }
    if (parts.init >= 0) stmt->init = clang_stmt(r, list.at[parts.init]);
    if (parts.condition >= 0) stmt->expr = clang_expr(r, list.at[parts.condition]);
    if (parts.step >= 0) stmt->step = clang_expr(r, list.at[parts.step]);
    stmt->then = body(r, extent.file, head, list.at[parts.then]);
    r->body.scope = outer;
    return stmt;
}

static const CStmt *branch(Reader *r, CXCursor cursor) {
    CStmt *stmt = node(r, cursor, CS_IF);
    Cursors list = clang_children(r, cursor);
    if (list.count < 2) return refused(r, cursor, "this statement");
    stmt->expr = clang_expr(r, list.at[0]);
    stmt->then = body_behind(r, list.at[0], list.at[1]);
    if (list.count > 2) stmt->other = body_behind(r, list.at[1], list.at[2]);
    return stmt;
}

static const CStmt *headed(Reader *r, CXCursor cursor, CStmtKind kind) {
    CStmt *stmt = node(r, cursor, kind);
    Cursors list = clang_children(r, cursor);
    if (list.count != 2) return refused(r, cursor, "this statement");
    stmt->expr = clang_expr(r, list.at[0]);
    stmt->then = body_behind(r, list.at[0], list.at[1]);
    return stmt;
}

static const CStmt *do_loop(Reader *r, CXCursor cursor) {
    CStmt *stmt = node(r, cursor, CS_DO);
    Extent extent = clang_extent(r, cursor);
    Cursors list = clang_children(r, cursor);
    if (list.count != 2) return refused(r, cursor, "this statement");
    stmt->then = body(r, extent.file, extent.begin, list.at[0]);
    stmt->expr = clang_expr(r, list.at[1]);
    return stmt;
}

/* Reads case, default and labels, whose last child is the statement. */
static const CStmt *labelled(Reader *r, CXCursor cursor, CStmtKind kind) {
    CStmt *stmt = node(r, cursor, kind);
    Extent extent = clang_extent(r, cursor);
    Cursors list = clang_children(r, cursor);
    if (!list.count) return refused(r, cursor, "this label");
    stmt->label = cursor.data[1];
    if (list.count > 1) stmt->first = stmt->last = clang_expr(r, list.at[0]);
    if (list.count > 2) stmt->last = clang_expr(r, list.at[1]);
    stmt->then = body(r, extent.file, extent.begin, list.at[list.count - 1]);
    return stmt;
}

static const CStmt *jump(Reader *r, CXCursor cursor) {
    CStmt *stmt = node(r, cursor, CS_GOTO);
    Cursors list = clang_children(r, cursor);
    CXCursor label = list.count == 1 ? clang_getCursorReferenced(list.at[0]) : cursor;
    if (clang_getCursorKind(label) != CXCursor_LabelStmt) return refused(r, cursor, "this goto");
    stmt->label = label.data[1];
    return stmt;
}

static const CStmt *returned(Reader *r, CXCursor cursor) {
    CStmt *stmt = node(r, cursor, CS_RETURN);
    Cursors list = clang_children(r, cursor);
    if (list.count) stmt->expr = clang_expr(r, list.at[0]);
    return stmt;
}

static const CStmt *expression(Reader *r, CXCursor cursor) {
    CStmt *stmt = node(r, cursor, CS_EXPR);
    stmt->expr = clang_expr(r, cursor);
    return stmt;
}

const CStmt *clang_stmt(Reader *r, CXCursor cursor) {
    enum CXCursorKind kind = clang_getCursorKind(cursor);
    switch (kind) {
    case CXCursor_CompoundStmt: return compound(r, cursor);
    case CXCursor_DeclStmt: return declaration(r, cursor);
    case CXCursor_IfStmt: return branch(r, cursor);
    case CXCursor_ForStmt: return for_loop(r, cursor);
    case CXCursor_WhileStmt: return headed(r, cursor, CS_WHILE);
    case CXCursor_SwitchStmt: return headed(r, cursor, CS_SWITCH);
    case CXCursor_DoStmt: return do_loop(r, cursor);
    case CXCursor_CaseStmt: return labelled(r, cursor, CS_CASE);
    case CXCursor_DefaultStmt: return labelled(r, cursor, CS_DEFAULT);
    case CXCursor_LabelStmt: return labelled(r, cursor, CS_LABEL);
    case CXCursor_BreakStmt: return node(r, cursor, CS_BREAK);
    case CXCursor_ContinueStmt: return node(r, cursor, CS_CONTINUE);
    case CXCursor_ReturnStmt: return returned(r, cursor);
    case CXCursor_NullStmt: return node(r, cursor, CS_EXPR);
    case CXCursor_GotoStmt: return jump(r, cursor);
    case CXCursor_IndirectGotoStmt: return refused(r, cursor, "a goto to an address");
    case CXCursor_GCCAsmStmt:
    case CXCursor_MSAsmStmt: return assembly(r, cursor);
    default:
        return clang_isExpression(kind) ? expression(r, cursor)
                                        : refused(r, cursor, "this statement");
    }
}

/* ---- functions ---- */

void clang_body(Reader *r, CFunction *function, CXCursor cursor) {
    r->body.function = function;
    r->body.cursor = cursor;
    r->body.printed = NULL;
    r->body.scope = NULL;
    r->body.slots = 0;
    function->params.count = 0;
    for (int i = 0; i < clang_Cursor_getNumArguments(cursor); i++)
        array_push(r->arena, &function->params,
                   into_scope(r, clang_Cursor_getArgument(cursor, (unsigned)i)));
    Cursors list = clang_children(r, cursor);
    if (list.count && clang_getCursorKind(list.at[list.count - 1]) == CXCursor_CompoundStmt)
        function->body = clang_stmt(r, list.at[list.count - 1]);
    function->slot_count = r->body.slots;
    r->body.function = NULL;
}
