/* Types of clang as types of the C tree. */
#include "frontend/clang/reader.h"

#include <string.h>

static CType *new_type(Reader *r, const char *name, CTypeKind kind, int64_t size)
{
    SeenType *seen = arena_new(r->arena, SeenType);
    CType *type = arena_new(r->arena, CType);
    *type = (CType){.kind = kind, .name = name, .size = size > 0 ? size : 0};
    seen->name = name;
    seen->type = type;
    HASH_ADD_KEYPTR(hh, r->types, name, strlen(name), seen);
    return type;
}

typedef struct FieldVisit {
    Reader *r;
    CType *type;
} FieldVisit;

static enum CXVisitorResult visit_field(CXCursor cursor, CXClientData data)
{
    FieldVisit *visit = data;
    Reader *r = visit->r;
    bool anonymous = clang_Cursor_isAnonymousRecordDecl(clang_getTypeDeclaration(clang_getCursorType(cursor)));
    CField field = {.name = clang_string(r, clang_getCursorSpelling(cursor)), .type = clang_type(r, clang_getCursorType(cursor))};
    if (anonymous)
        field.name = "";
    field.offset = clang_Cursor_getOffsetOfField(cursor) / 8;
    field.bitfield = clang_Cursor_isBitField(cursor);
    array_push(r->arena, &visit->type->fields, field);
    return CXVisit_Continue;
}

static void fill_record(Reader *r, CType *type, CXType clang)
{
    FieldVisit visit = {r, type};
    CXCursor decl = clang_getTypeDeclaration(clang);
    type->is_union = clang_getCursorKind(decl) == CXCursor_UnionDecl;
    type->is_tensor = !strcmp(type->name, "struct ht_tensor");
    if (type->is_tensor && !r->unit->types.tensor)
        r->unit->types.tensor = type;
    clang_Type_visitFields(clang, visit_field, &visit);
}

static void fill_integer(CType *type, bool is_signed, int rank)
{
    type->is_signed = is_signed;
    type->rank = rank;
}

static void fill_enum(Reader *r, CType *type, CXType clang)
{
    const CType *under = clang_type(r, clang_getEnumDeclIntegerType(clang_getTypeDeclaration(clang)));
    type->size = under->size;
    fill_integer(type, under->is_signed, under->rank);
    type->is_enum = true;
}

static void fill(Reader *r, CType *type, CXType clang)
{
    switch (clang.kind) {
    case CXType_Void: type->kind = CT_VOID; break;
    case CXType_Bool: type->kind = CT_BOOL; break;
    case CXType_Char_U:
    case CXType_UChar: type->kind = CT_INT; fill_integer(type, false, 1); break;
    case CXType_Char_S:
    case CXType_SChar: type->kind = CT_INT; fill_integer(type, true, 1); break;
    case CXType_UShort: type->kind = CT_INT; fill_integer(type, false, 2); break;
    case CXType_Short: type->kind = CT_INT; fill_integer(type, true, 2); break;
    case CXType_UInt: type->kind = CT_INT; fill_integer(type, false, 3); break;
    case CXType_Int: type->kind = CT_INT; fill_integer(type, true, 3); break;
    case CXType_ULong: type->kind = CT_INT; fill_integer(type, false, 4); break;
    case CXType_Long: type->kind = CT_INT; fill_integer(type, true, 4); break;
    case CXType_ULongLong: type->kind = CT_INT; fill_integer(type, false, 5); break;
    case CXType_LongLong: type->kind = CT_INT; fill_integer(type, true, 5); break;
    case CXType_Float: type->kind = CT_FLOAT; break;
    case CXType_Double: type->kind = CT_DOUBLE; break;
    case CXType_Enum: type->kind = CT_INT; fill_enum(r, type, clang); break;
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
    case CXType_Record: type->kind = CT_STRUCT; fill_record(r, type, clang); break;
    case CXType_FunctionProto:
    case CXType_FunctionNoProto:
        type->kind = CT_FUNCTION;
        type->base = clang_type(r, clang_getResultType(clang));
        break;
    default: type->kind = CT_OTHER; break;
    }
}

/* The size of a type in bytes; 0 where it has none. (libclang crashes on the sizes of its own placeholder types.) */
static int64_t type_size(CXType clang)
{
    bool sized = (clang.kind >= CXType_Bool && clang.kind <= CXType_Double) || clang.kind == CXType_Enum || clang.kind == CXType_Pointer ||
                 clang.kind == CXType_ConstantArray || clang.kind == CXType_Record;
    return sized ? clang_Type_getSizeOf(clang) : 0;
}

const CType *clang_type(Reader *r, CXType clang)
{
    clang = clang_getUnqualifiedType(clang_getCanonicalType(clang));
    CXString spelling = clang_getTypeSpelling(clang);
    SeenType *seen;
    const char *name = clang_getCString(spelling);
    HASH_FIND_STR(r->types, name, seen);
    if (!seen) {
        CType *type = new_type(r, arena_string(r->arena, name), CT_OTHER, type_size(clang));
        fill(r, type, clang);
        clang_disposeString(spelling);
        return type;
    }
    clang_disposeString(spelling);
    return seen->type;
}

/* Types are those of one source, so that each has its own struct of a name; those that the evaluator asks for are the same in all. */
static void share(Reader *r, const CType *type)
{
    SeenType *seen = arena_new(r->arena, SeenType);
    *seen = (SeenType){.name = type->name, .type = (CType *)type};
    HASH_ADD_KEYPTR(hh, r->types, seen->name, strlen(seen->name), seen);
}

static const CType *builtin(Reader *r, const char *name, CTypeKind kind, int64_t size, bool is_signed, int rank)
{
    CType *type = new_type(r, name, kind, size);
    fill_integer(type, is_signed, rank);
    return type;
}

void clang_types_begin(Reader *r)
{
    CTypes *t = &r->unit->types;
    const CType *const known[] = {t->tvoid, t->tbool, t->tchar, t->tint, t->tunsigned, t->tlong, t->tulong, t->tlonglong, t->tulonglong, t->tfloat, t->tdouble, t->tensor};
    if (t->tvoid) {
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (known[i])
                share(r, known[i]);
        return;
    }
    t->tvoid = builtin(r, "void", CT_VOID, 0, false, 0);
    t->tbool = builtin(r, "_Bool", CT_BOOL, 1, false, 0);
    t->tchar = builtin(r, "char", CT_INT, 1, true, 1);
    t->tint = builtin(r, "int", CT_INT, 4, true, 3);
    t->tunsigned = builtin(r, "unsigned int", CT_INT, 4, false, 3);
    t->tlong = builtin(r, "long", CT_INT, 8, true, 4);
    t->tulong = builtin(r, "unsigned long", CT_INT, 8, false, 4);
    t->tlonglong = builtin(r, "long long", CT_INT, 8, true, 5);
    t->tulonglong = builtin(r, "unsigned long long", CT_INT, 8, false, 5);
    t->tfloat = builtin(r, "float", CT_FLOAT, 4, true, 0);
    t->tdouble = builtin(r, "double", CT_DOUBLE, 8, true, 0);
}
