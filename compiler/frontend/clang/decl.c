/* Reads declarations: functions, variables and enumerations at file scope. */
#include "frontend/clang/reader.h"

#include <string.h>

/* ---- functions ---- */

static void add_parameters(Reader *r, CFunction *function, CXCursor decl) {
    for (int i = 0; i < clang_Cursor_getNumArguments(decl); i++) {
        CXCursor arg = clang_Cursor_getArgument(decl, (unsigned)i);
        CVar *var = arena_new(r->arena, CVar);
        *var = (CVar){.name = clang_string(r, clang_getCursorSpelling(arg)),
                      .type = clang_adjusted(r, clang_getCursorType(arg)),
                      .local = true,
                      .slot = i};
        var->at = clang_position(r, clang_getCursorLocation(arg));
        var->function = function;
        array_push(r->arena, &function->params, var);
    }
    function->slot_count = function->params.count;
}

static bool is_internal(CXCursor decl) {
    return clang_getCursorLinkage(decl) == CXLinkage_Internal;
}

static bool of_library(const Reader *r, const char *file) {
    return r->library && file && !strncmp(file, r->library, strlen(r->library));
}

/* Returns the function of this name that an earlier source declares, if `decl` declares the same
 * function: an external one, or one of hetu's headers. Returns NULL otherwise. */
static CFunction *function_elsewhere(Reader *r, CXCursor decl, const char *name) {
    CFunction *function = cunit_shared(r->unit, name).function;
    bool same = function && (!is_internal(decl) ||
                             of_library(r, clang_position(r, clang_getCursorLocation(decl)).file));
    if (same) cunit_declare(r->unit, function->name, (CName){.function = function});
    return same ? function : NULL;
}

CFunction *clang_function(Reader *r, CXCursor decl) {
    const char *name = clang_string(r, clang_getCursorSpelling(decl));
    CName known = cunit_lookup(r->unit, name);
    CFunction *function = known.function ? known.function : function_elsewhere(r, decl, name);
    if (function) return function;
    function = arena_new(r->arena, CFunction);
    *function = (CFunction){.name = name,
                            .at = clang_position(r, clang_getCursorLocation(decl)),
                            .number = r->unit->functions.count};
    function->part = r->unit->part;
    function->type = clang_type(r, clang_getCursorType(decl));
    function->result = clang_type(r, clang_getCursorResultType(decl));
    function->variadic = clang_Cursor_isVariadic(decl);
    function->is_static = clang_Cursor_getStorageClass(decl) == CX_SC_Static;
    function->system =
        !function->at.file || clang_Location_isInSystemHeader(clang_getCursorLocation(decl));
    function->library = of_library(r, function->at.file);
    array_push(r->arena, &r->unit->functions, function);
    cunit_declare(r->unit, name, (CName){.function = function});
    if (function->library || !is_internal(decl))
        cunit_share(r->unit, name, (CName){.function = function});
    add_parameters(r, function, decl);
    return function;
}

/* ---- variables ---- */

/* Returns whether a type is const, or an array of a const type. */
static bool is_const(CXType type) {
    type = clang_getCanonicalType(type);
    return clang_isConstQualifiedType(type) ||
           (clang_getArrayElementType(type).kind != CXType_Invalid &&
            is_const(clang_getArrayElementType(type)));
}

/* Refuses a variable of type `auto`. In `auto x = 1.5`, x is a double in C23 and an int in older
 * compilers; with __auto_type, x is a double in all. */
static void check_typed(Reader *r, CXCursor decl, CXType type) {
    Extent extent = clang_extent(r, decl);
    const Source *source = type.kind == CXType_Auto ? clang_source(r, extent.file) : NULL;
    const char *found = source ? strstr(source->text + extent.begin, "auto") : NULL;
    if (!found || found >= source->text + extent.end || (extent.begin && found[-1] == '_')) return;
    const char *name = clang_string(r, clang_getCursorSpelling(decl));
    diag_error(r->diag, clang_position(r, clang_getCursorLocation(decl)),
               "compilers differ in the type that auto gives %s; write __auto_type, or its type",
               name);
}

static CVar *new_variable(Reader *r, CXCursor decl) {
    bool external = clang_getCursorLinkage(decl) == CXLinkage_External;
    CVar *var =
        external ? cunit_shared(r->unit, clang_string(r, clang_getCursorSpelling(decl))).var : NULL;
    if (var) return var;
    var = arena_new(r->arena, CVar);
    CXType type = clang_getCursorType(decl);
    bool parameter = clang_getCursorKind(decl) == CXCursor_ParmDecl;
    check_typed(r, decl, type);
    *var = (CVar){.name = clang_string(r, clang_getCursorSpelling(decl)),
                  .type = parameter ? clang_adjusted(r, type) : clang_type(r, type),
                  .at = clang_position(r, clang_getCursorLocation(decl))};
    var->is_const = (!parameter || var->type->kind != CT_POINTER) && is_const(type);
    var->local = !clang_Cursor_hasVarDeclGlobalStorage(decl);
    var->folded = var->is_const && !external && ctype_is_arithmetic(var->type) &&
                  !clang_isVolatileQualifiedType(type);
    var->is_static = clang_Cursor_getStorageClass(decl) == CX_SC_Static;
    var->internal = is_internal(decl);
    var->system = clang_Location_isInSystemHeader(clang_getCursorLocation(decl)) &&
                  !of_library(r, var->at.file);
    var->part = r->unit->part;
    var->function = external ? NULL : r->body.function;
    if (external) cunit_share(r->unit, var->name, (CName){.var = var});
    if (var->local) {
        var->slot = r->body.slots++;
    } else {
        var->slot = r->unit->vars.count;
        array_push(r->arena, &r->unit->vars, var);
    }
    return var;
}

static void remember(Reader *r, CXCursor decl, CVar *var) {
    Seen *seen = arena_new(r->arena, Seen);
    *seen = (Seen){.decl = clang_identity(decl), .var = var};
    HASH_ADD_PTR(r->vars, decl, seen);
}

CVar *clang_variable(Reader *r, CXCursor decl) {
    Seen *seen;
    const void *key = clang_identity(decl);
    HASH_FIND_PTR(r->vars, &key, seen);
    if (seen) return seen->var;
    CVar *var = new_variable(r, decl);
    remember(r, decl, var);
    return var;
}

/* Reads a variable's declaration at file scope. A declaration with an initializer sets the type. */
static void declare_variable(Reader *r, CXCursor decl) {
    CVar *var = clang_variable(r, decl);
    cunit_declare(r->unit, var->name, (CName){.var = var});
    bool is_extern = clang_Cursor_getStorageClass(decl) == CX_SC_Extern;
    bool has_init = !clang_Cursor_isNull(clang_Cursor_getVarDeclInitializer(decl));
    if (has_init && var->init && var->part != r->unit->part)
        return; // defined twice, which the linker reports
    if (!is_extern || has_init) {
        var->part = var->defined ? var->part : r->unit->part;
        var->defined = true;
    }
    if (has_init) {
        var->at = clang_position(r, clang_getCursorLocation(decl));
        var->type = clang_type(r, clang_getCursorType(decl));
    }
}

static void declare_constants(Reader *r, CXCursor decl) {
    Cursors children = clang_children(r, decl);
    for (int i = 0; i < children.count; i++) {
        if (clang_getCursorKind(children.at[i]) != CXCursor_EnumConstantDecl) continue;
        CConstant *constant = arena_new(r->arena, CConstant);
        constant->name = clang_string(r, clang_getCursorSpelling(children.at[i]));
        constant->value = clang_getEnumConstantDeclValue(children.at[i]);
        constant->type = clang_type(r, clang_getCursorType(children.at[i]));
        array_push(r->arena, &r->unit->constants, *constant);
        cunit_declare(r->unit, constant->name, (CName){.constant = constant});
    }
}

/* ---- the translation unit ---- */

static bool of_system(Reader *r, CXCursor cursor) {
    if (!clang_Location_isInSystemHeader(clang_getCursorLocation(cursor))) return false;
    const char *file = clang_position(r, clang_getCursorLocation(cursor)).file;
    return !(file && r->library && !strncmp(file, r->library, strlen(r->library)));
}

/* Reports a definition of a function whose type differs from that in an earlier source. */
static void check_declared(Reader *r, const CFunction *function, CXCursor cursor) {
    const CType *type = clang_type(r, clang_getCursorType(cursor));
    size_t length = strlen(function->type->name);
    bool open = length > 2 && !strcmp(function->type->name + length - 2, "()");
    if (function->part == r->unit->part || open || !strcmp(type->name, function->type->name))
        return;
    diag_error(r->diag, clang_position(r, clang_getCursorLocation(cursor)),
               "%s is defined here as %s, and declared elsewhere as %s", function->name, type->name,
               function->type->name);
    diag_note(r->diag, function->at,
              "it is declared here; a header that both files include keeps them alike");
}

/* Returns whether an attribute's text has a word, alone or between underscores. */
static bool attribute_says(Reader *r, CXCursor attribute, const char *word) {
    CXToken *tokens;
    unsigned count;
    bool said = false;
    clang_tokenize(r->tu, clang_getCursorExtent(attribute), &tokens, &count);
    for (unsigned i = 0; i < count; i++) {
        const char *text = clang_string(r, clang_getTokenSpelling(r->tu, tokens[i]));
        size_t under = strspn(text, "_"), length = strlen(word);
        said |= !strncmp(text + under, word, length) &&
                strspn(text + under + length, "_") == strlen(text + under + length);
    }
    clang_disposeTokens(r->tu, tokens, count);
    return said;
}

typedef struct AttributeSearch {
    Reader *r;
    const char *word;
    bool found;
} AttributeSearch;

static enum CXChildVisitResult find_attribute(CXCursor cursor, CXCursor parent, CXClientData data) {
    (void)parent;
    AttributeSearch *search = data;
    search->found |= clang_isAttribute(clang_getCursorKind(cursor)) &&
                     attribute_says(search->r, cursor, search->word);
    return CXChildVisit_Continue;
}

bool clang_has_attribute(Reader *r, CXCursor cursor, const char *word) {
    AttributeSearch search = {.r = r, .word = word};
    clang_visitChildren(cursor, find_attribute, &search);
    return search.found;
}

static void declare_function(Reader *r, CXCursor cursor) {
    CFunction *function = clang_function(r, cursor);
    if (!function->weak && clang_has_attribute(r, cursor, "weak")) {
        function->weak = true;
        function->weak_at = clang_position(r, clang_getCursorLocation(cursor));
    }
    function->alias |= clang_has_attribute(r, cursor, "alias");
    if (clang_isCursorDefinition(cursor) && !function->body) {
        check_declared(r, function, cursor);
        function->part = r->unit->part;
        function->at = clang_position(r, clang_getCursorLocation(cursor));
        array_push(r->arena, &r->definitions, (Definition){function, cursor});
    }
}

static void declare_asserted(Reader *r, CXCursor cursor) {
    Pragma *pragma = clang_asserted(r, cursor);
    if (!pragma) return;
    array_push(r->arena, &r->pragmas.file, pragma);
    array_push(r->arena, &r->pragmas.file_at, r->decls.count);
}

static enum CXChildVisitResult declare(CXCursor cursor, CXCursor parent, CXClientData data) {
    (void)parent;
    Reader *r = data;
    enum CXCursorKind kind = clang_getCursorKind(cursor);
    if (kind == CXCursor_MacroDefinition) clang_macro_seen(r, cursor);
    if (clang_isPreprocessing(kind) || of_system(r, cursor)) return CXChildVisit_Continue;
    if (kind == CXCursor_StaticAssert) {
        declare_asserted(r, cursor);
    } else {
        array_push(r->arena, &r->decls, cursor);
        array_push(r->arena, &r->decl_extents, clang_extent(r, cursor));
    }
    if (kind == CXCursor_FunctionDecl) declare_function(r, cursor);
    else if (kind == CXCursor_VarDecl) declare_variable(r, cursor);
    else if (kind == CXCursor_EnumDecl) declare_constants(r, cursor);
    return CXChildVisit_Continue;
}

static enum CXChildVisitResult initialize(CXCursor cursor, CXCursor parent, CXClientData data) {
    (void)parent;
    Reader *r = data;
    if (clang_getCursorKind(cursor) != CXCursor_VarDecl || of_system(r, cursor) ||
        clang_Cursor_isNull(clang_Cursor_getVarDeclInitializer(cursor)))
        return CXChildVisit_Continue;
    CVar *var = clang_variable(r, cursor);
    if (var->init) return CXChildVisit_Continue;
    r->body.slots = 0;
    var->init = clang_initializer(r, cursor);
    var->init_slots = r->body.slots;
    return CXChildVisit_Continue;
}

void clang_declare_all(Reader *r) {
    CXCursor root = clang_getTranslationUnitCursor(r->tu);
    clang_visitChildren(root, declare, r);
    clang_note_lines(r);
    clang_read_pragmas(r);
    clang_visitChildren(root, initialize, r);
    for (int i = 0; i < r->definitions.count; i++)
        clang_body(r, r->definitions.at[i].function, r->definitions.at[i].cursor);
    clang_finish_pragmas(r);
}
