/* Reads types of clang as types of the C tree. */
#include "frontend/clang/reader.h"

#include "support/text.h"

#include <string.h>

static void remember(Reader *r, const char *key, CType *type) {
    SeenType *seen = arena_new(r->arena, SeenType);
    *seen = (SeenType){.key = key, .type = type};
    HASH_ADD_KEYPTR(hh, r->types, seen->key, strlen(seen->key), seen);
}

static CType *new_type(Reader *r, const char *key, const char *name, CTypeKind kind, int64_t size) {
    CType *type = arena_new(r->arena, CType);
    *type = (CType){.kind = kind, .key = key, .name = name, .size = size > 0 ? size : 0};
    remember(r, key, type);
    return type;
}

static CType *known_type(Reader *r, const char *key) {
    SeenType *seen;
    HASH_FIND_STR(r->types, key, seen);
    return seen ? seen->type : NULL;
}

const void *clang_identity(CXCursor decl) { return clang_getCanonicalCursor(decl).data[0]; }

/* ---- keys of types ---- */

static const char *function_key(Reader *r, CXType clang) {
    Text key = {.arena = r->arena};
    int count = clang_getNumArgTypes(clang);
    text_print(&key, "function %s (", clang_type(r, clang_getResultType(clang))->key);
    for (int i = 0; i < count; i++)
        text_print(&key, "%s, ", clang_type(r, clang_getArgType(clang, (unsigned)i))->key);
    text_string(&key, clang.kind == CXType_FunctionNoProto  ? "?)"
                      : clang_isFunctionTypeVariadic(clang) ? "...)"
                                                            : ")");
    return text_bytes(&key);
}

static const char *pointer_key(Reader *r, const CType *base, bool to_const) {
    return arena_format(r->arena, "pointer %s%s", to_const ? "const " : "", base->key);
}

/* Returns the key of a type without qualifiers. Each variable-length array has a key of its own. */
static const char *type_key(Reader *r, CXType clang) {
    switch (clang.kind) {
    case CXType_Record:
    case CXType_Enum:
        return arena_format(r->arena, "declaration %p",
                            clang_identity(clang_getTypeDeclaration(clang)));
    case CXType_Pointer:
        return pointer_key(r, clang_type(r, clang_getPointeeType(clang)),
                           clang_isConstQualifiedType(clang_getPointeeType(clang)));
    case CXType_ConstantArray:
        return arena_format(r->arena, "array %lld %s", clang_getArraySize(clang),
                            clang_type(r, clang_getArrayElementType(clang))->key);
    case CXType_IncompleteArray:
        return arena_format(r->arena, "array %s",
                            clang_type(r, clang_getArrayElementType(clang))->key);
    case CXType_VariableArray:
        return arena_format(r->arena, "variable array %d", r->variable_arrays++);
    case CXType_FunctionProto:
    case CXType_FunctionNoProto: return function_key(r, clang);
    default: return clang_string(r, clang_getTypeSpelling(clang));
    }
}

/* ---- members, elements and sizes of types ---- */

typedef struct FieldVisit {
    Reader *r;
    CType *type;
} FieldVisit;

/* Adds a field to a struct; skips bit-fields without a name, which are padding. */
static enum CXVisitorResult visit_field(CXCursor cursor, CXClientData data) {
    FieldVisit *visit = data;
    Reader *r = visit->r;
    bool anonymous =
        clang_Cursor_isAnonymousRecordDecl(clang_getTypeDeclaration(clang_getCursorType(cursor)));
    const char *name = anonymous ? "" : clang_string(r, clang_getCursorSpelling(cursor));
    long long bits = clang_Cursor_getOffsetOfField(cursor);
    CField field = {.name = name,
                    .type = clang_type(r, clang_getCursorType(cursor)),
                    .offset = bits / 8,
                    .decl = clang_identity(cursor)};
    if (clang_Cursor_isBitField(cursor)) {
        field.bit = (int)(bits % 8);
        field.width = clang_getFieldDeclBitWidth(cursor);
    }
    if (*name || anonymous) array_push(r->arena, &visit->type->fields, field);
    return CXVisit_Continue;
}

/* Returns whether a struct is hetu's ht_tensor; one of that name inside a function is not. */
static bool is_tensor(CXCursor decl, const char *name) {
    return !strcmp(name, "struct ht_tensor") &&
           clang_getCursorKind(clang_getCursorSemanticParent(decl)) == CXCursor_TranslationUnit;
}

static void fill_record(Reader *r, CType *type, CXType clang) {
    FieldVisit visit = {r, type};
    CXCursor decl = clang_getTypeDeclaration(clang);
    type->is_union = clang_getCursorKind(decl) == CXCursor_UnionDecl;
    type->is_tensor = is_tensor(decl, type->name);
    if (type->is_tensor && !r->unit->types.tensor) r->unit->types.tensor = type;
    clang_Type_visitFields(clang, visit_field, &visit);
}

static void fill_integer(CType *type, bool is_signed, int rank) {
    type->is_signed = is_signed;
    type->rank = rank;
}

static void fill_enum(Reader *r, CType *type, CXType clang) {
    const CType *under =
        clang_type(r, clang_getEnumDeclIntegerType(clang_getTypeDeclaration(clang)));
    type->size = under->size;
    fill_integer(type, under->is_signed, under->rank);
    type->is_enum = true;
}

static void fill(Reader *r, CType *type, CXType clang) {
    switch (clang.kind) {
    case CXType_Void: type->kind = CT_VOID; break;
    case CXType_Bool: type->kind = CT_BOOL; break;
    case CXType_Char_U:
    case CXType_UChar:
        type->kind = CT_INT;
        fill_integer(type, false, 1);
        break;
    case CXType_Char_S:
    case CXType_SChar:
        type->kind = CT_INT;
        fill_integer(type, true, 1);
        break;
    case CXType_UShort:
        type->kind = CT_INT;
        fill_integer(type, false, 2);
        break;
    case CXType_Short:
        type->kind = CT_INT;
        fill_integer(type, true, 2);
        break;
    case CXType_UInt:
        type->kind = CT_INT;
        fill_integer(type, false, 3);
        break;
    case CXType_Int:
        type->kind = CT_INT;
        fill_integer(type, true, 3);
        break;
    case CXType_ULong:
        type->kind = CT_INT;
        fill_integer(type, false, 4);
        break;
    case CXType_Long:
        type->kind = CT_INT;
        fill_integer(type, true, 4);
        break;
    case CXType_ULongLong:
        type->kind = CT_INT;
        fill_integer(type, false, 5);
        break;
    case CXType_LongLong:
        type->kind = CT_INT;
        fill_integer(type, true, 5);
        break;
    case CXType_Float: type->kind = CT_FLOAT; break;
    case CXType_Double: type->kind = CT_DOUBLE; break;
    case CXType_Enum:
        type->kind = CT_INT;
        fill_enum(r, type, clang);
        break;
    case CXType_Pointer:
        type->kind = CT_POINTER;
        type->is_tensor_node = !strcmp(type->name, "struct ht_node *");
        type->base = clang_type(r, clang_getPointeeType(clang));
        type->to_const = clang_isConstQualifiedType(clang_getPointeeType(clang));
        break;
    case CXType_ConstantArray:
    case CXType_IncompleteArray:
    case CXType_VariableArray:
        type->kind = CT_ARRAY;
        type->variable = clang.kind == CXType_VariableArray;
        type->count = clang.kind == CXType_ConstantArray ? clang_getArraySize(clang) : 0;
        type->base = clang_type(r, clang_getArrayElementType(clang));
        break;
    case CXType_Record:
        type->kind = CT_STRUCT;
        fill_record(r, type, clang);
        break;
    case CXType_FunctionProto:
    case CXType_FunctionNoProto:
        type->kind = CT_FUNCTION;
        type->base = clang_type(r, clang_getResultType(clang));
        break;
    default: type->kind = CT_OTHER; break;
    }
}

/* Returns the size of a type in bytes; 0 for kinds without a size or on which libclang crashes. */
static int64_t type_size(CXType clang) {
    bool sized = (clang.kind >= CXType_Bool && clang.kind <= CXType_Double) ||
                 clang.kind == CXType_Enum || clang.kind == CXType_Pointer ||
                 clang.kind == CXType_ConstantArray || clang.kind == CXType_Record;
    return sized ? clang_Type_getSizeOf(clang) : 0;
}

/* Returns the first source's ht_tensor, which all share, if `clang` is ht_tensor; else NULL. */
static CType *shared_type(const Reader *r, CXType clang, const char *name) {
    bool tensor = clang.kind == CXType_Record && is_tensor(clang_getTypeDeclaration(clang), name);
    return tensor ? (CType *)r->unit->types.tensor : NULL;
}

/* Returns the CType of clang's canonical, unqualified type; creates it when its key is new. */
static const CType *type_of(Reader *r, CXType clang) {
    const char *key = type_key(r, clang);
    CType *type = known_type(r, key);
    if (type) return type;
    const char *name = clang_string(r, clang_getTypeSpelling(clang));
    type = shared_type(r, clang, name);
    if (type) {
        remember(r, key, type);
        return type;
    }
    type = new_type(r, key, name, CT_OTHER, type_size(clang));
    fill(r, type, clang);
    return type;
}

/* Returns clang's type as a CType. Caches it by clang's address, except variable-length arrays. */
const CType *clang_type(Reader *r, CXType clang) {
    SeenQualified *seen;
    int variable_arrays = r->variable_arrays;
    clang = clang_getUnqualifiedType(clang_getCanonicalType(clang));
    HASH_FIND_PTR(r->qualified, &clang.data[0], seen);
    if (seen) return seen->type;
    const CType *type = type_of(r, clang);
    if (r->variable_arrays > variable_arrays) return type;
    seen = arena_new(r->arena, SeenQualified);
    *seen = (SeenQualified){.clang = clang.data[0], .type = type};
    HASH_ADD_PTR(r->qualified, clang, seen);
    return type;
}

const CType *clang_pointer_to(Reader *r, const CType *base, bool to_const) {
    const char *key = pointer_key(r, base, to_const);
    CType *type = known_type(r, key);
    if (type) return type;
    type = new_type(r, key, arena_format(r->arena, "%s%s *", to_const ? "const " : "", base->name),
                    CT_POINTER, 8);
    type->base = base;
    type->to_const = to_const;
    return type;
}

const CType *clang_adjusted(Reader *r, CXType clang) {
    const CType *type = clang_type(r, clang);
    CXType element = clang_getArrayElementType(clang_getCanonicalType(clang));
    if (type->kind == CT_ARRAY)
        return clang_pointer_to(r, type->base, clang_isConstQualifiedType(element));
    return type->kind == CT_FUNCTION ? clang_pointer_to(r, type, false) : type;
}

/* Creates one of C's basic types, which the trees of all sources share. */
static const CType *builtin(Reader *r, CType like) {
    CType *type = new_type(r, like.name, like.name, like.kind, like.size);
    fill_integer(type, like.is_signed, like.rank);
    return type;
}

void clang_types_begin(Reader *r) {
    CTypes *t = &r->unit->types;
    const CType *const known[] = {t->tvoid,  t->tbool,     t->tint,       t->tunsigned, t->tlong,
                                  t->tulong, t->tlonglong, t->tulonglong, t->tfloat,    t->tdouble};
    for (size_t i = 0; i < sizeof known / sizeof *known && t->tvoid; i++)
        remember(r, known[i]->key, (CType *)known[i]);
    if (t->tvoid) return;
    t->tvoid = builtin(r, (CType){.name = "void", .kind = CT_VOID});
    t->tbool = builtin(r, (CType){.name = "_Bool", .kind = CT_BOOL, .size = 1});
    t->tint =
        builtin(r, (CType){.name = "int", .kind = CT_INT, .size = 4, .is_signed = true, .rank = 3});
    t->tunsigned =
        builtin(r, (CType){.name = "unsigned int", .kind = CT_INT, .size = 4, .rank = 3});
    t->tlong = builtin(
        r, (CType){.name = "long", .kind = CT_INT, .size = 8, .is_signed = true, .rank = 4});
    t->tulong = builtin(r, (CType){.name = "unsigned long", .kind = CT_INT, .size = 8, .rank = 4});
    t->tlonglong = builtin(
        r, (CType){.name = "long long", .kind = CT_INT, .size = 8, .is_signed = true, .rank = 5});
    t->tulonglong =
        builtin(r, (CType){.name = "unsigned long long", .kind = CT_INT, .size = 8, .rank = 5});
    t->tfloat =
        builtin(r, (CType){.name = "float", .kind = CT_FLOAT, .size = 4, .is_signed = true});
    t->tdouble =
        builtin(r, (CType){.name = "double", .kind = CT_DOUBLE, .size = 8, .is_signed = true});
}
