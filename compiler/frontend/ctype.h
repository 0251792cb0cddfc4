/* Types of the C tree.
 *
 *     struct config { int layers; float *rates; };
 *     CT_STRUCT "struct config", 16 bytes: layers CT_INT at 0, rates CT_POINTER to CT_FLOAT at 8
 */
#pragma once

#include "support/array.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct CType CType;
typedef struct CField CField;

typedef enum CTypeKind {
    CT_VOID,
    CT_BOOL,
    CT_INT, // also characters and enumerations
    CT_FLOAT,
    CT_DOUBLE,
    CT_POINTER,
    CT_ARRAY,
    CT_STRUCT, // also unions
    CT_FUNCTION,
    CT_OTHER // long double, _Complex, vectors, 128-bit integers: refused where they are used
} CTypeKind;

struct CField {
    const char *name; // "" for an anonymous struct or union
    const CType *type;
    int64_t offset;   // offset in bytes; for a bit-field, of the byte with its first bit
    int bit, width;   // first bit in that byte, number of bits; width 0: no bit-field
    const void *decl; // identifies the member, since names may be shared
};

/* Types are unique: equal types are the same object. A struct, union or enumeration is identified
 * by its declaration, not its name. Qualifiers are dropped. */
struct CType {
    CTypeKind kind;
    const char *name; // C's spelling: "struct ht_tensor", "unsigned int"
    const char *key;  // unique key of the type
    int64_t size;     // in bytes; 0 for void, functions, and arrays of unknown or variable length
    bool is_signed;   // CT_INT
    int rank;         // CT_INT: the conversion rank
    bool is_enum;     // CT_INT
    bool is_union;
    bool to_const;     // CT_POINTER: its target is const
    const CType *base; // target of CT_POINTER, element of CT_ARRAY, result of CT_FUNCTION
    int64_t count;     // CT_ARRAY: number of elements; 0: unknown or variable
    bool variable;     // CT_ARRAY: a variable-length array
    Array(CField) fields;
    bool is_tensor;                // struct ht_tensor
    bool is_tensor_node;           // struct ht_node *: the content of a tensor
    const uint8_t *member_bits[2]; // by byte: bits of members; unions: [0] any, [1] every member
};

/* The types that the evaluator uses, by C's names. */
typedef struct CTypes {
    const CType *tvoid, *tbool, *tint, *tunsigned, *tlong, *tulong, *tlonglong, *tulonglong,
        *tfloat, *tdouble, *tensor;
} CTypes;

/* Finds the field `name` of a struct, also inside anonymous members; its offset counts from the
 * start of `type`. Returns false when there is none. */
bool ctype_field(const CType *type, const char *name, CField *found);
/* Finds the field that clang's declaration `decl` declares, as ctype_field does; false: none. */
bool ctype_declared_field(const CType *type, const void *decl, CField *found);

bool ctype_is_arithmetic(const CType *type);
bool ctype_is_integer(const CType *type); // CT_BOOL or CT_INT
bool ctype_is_floating(const CType *type);

/* Return a type after integer promotion, and the type of C's usual arithmetic conversions. */
const CType *ctype_promoted(const CTypes *types, const CType *type);
const CType *ctype_common(const CTypes *types, const CType *a, const CType *b);
