/* Types of the C tree.
 *
 *     struct config { int layers; float *rates; };
 *     CT_STRUCT "struct config", 16 bytes: layers CT_INT at 0, rates CT_POINTER to CT_FLOAT at 8
 */
#ifndef FRONTEND_CTYPE_H
#define FRONTEND_CTYPE_H

#include "support/array.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct CType CType;
typedef struct CField CField;

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

/* The common types, by C's names. */
typedef struct CTypes {
    const CType *tvoid, *tbool, *tint, *tunsigned, *tlong, *tulong, *tlonglong, *tulonglong,
        *tfloat, *tdouble, *tensor;
} CTypes;

/* The field `name` of a struct, also inside anonymous members, with the offset from the start of
 * `type`; false when there is none. */
bool ctype_field(const CType *type, const char *name, CField *found);
/* The same for the field of a declaration. */
bool ctype_declared_field(const CType *type, const void *decl, CField *found);

bool ctype_is_arithmetic(const CType *type);
bool ctype_is_integer(const CType *type); // CT_BOOL or CT_INT
bool ctype_is_floating(const CType *type);

/* C's integer promotion, and the usual arithmetic conversions of two arithmetic types. */
const CType *ctype_promoted(const CTypes *types, const CType *type);
const CType *ctype_common(const CTypes *types, const CType *a, const CType *b);

#endif
