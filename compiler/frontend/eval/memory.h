/* The evaluator's memory and values.
 *
 * Memory consists of objects: variables, literals and results of calls, in bytes as on the machine.
 *
 *     int a[2] = {1};    Object "a": bytes 01 00 00 00 00 00 00 00, all KNOWN
 *     &a[1]              Val: id and generation of the object, offset 4
 *
 * A pointer contains the id of its object, so that every access is checked. The eight bytes of a
 * tensor hold the number of its Value. */
#pragma once

#include "frontend/ctree.h"

typedef struct Value Value; // ir/value.h

typedef struct Eval Eval;

/* State of a byte of an object, from best to worst. */
typedef enum Knowledge {
    KNOWN,
    UNKNOWN, // known at run time only
    UNSET,   // never set
    PADDING  // has bits that belong to no member
} Knowledge;

/* Reads and stores of a variable with static storage during an evaluation. */
typedef struct Track {
    uint8_t *before;  // the bytes before the evaluation
    uint8_t *touched; // flags of each byte: stored; read before the first store
    Position read_at, written_at;
} Track;

typedef struct Object {
    uint8_t *bytes;
    uint8_t *unknown;       // a Knowledge for each byte; NULL: all known
    uint8_t *set;           // bits that were set in bytes that are UNSET or PADDING; NULL: none
    int64_t size, capacity; // bytes
    uint32_t id, generation;
    uint64_t born; // number in the order of creation
    bool live, has_unknown;
    bool constant;    // stores are errors
    bool literal;     // is a string literal
    const char *name; // for messages
    Track *track;     // NULL: not tracked
} Object;

/* The objects of variables, strings and tensors. */
typedef struct Heap {
    Array(Object *) objects; // by id; NULL for id 0
    Array(Object *) spare;   // dead objects, which object_create reuses
    Object **statics;        // by CVar.slot; NULL until first used
    Object **strings;        // by CExpr.slot; NULL until first used
    Object *characters[3];   // tables of <ctype.h>; NULL until first used
    Array(Value *) values;   // by tensor number - 1
    uint64_t born;           // number of objects created so far
} Heap;

typedef struct Place {
    Object *object;
    int64_t offset; // bytes
} Place;

/* A value. An integer is wrapped to its type and extended to 64 bits; memory.c describes pointers.
 * The value of a struct or an array is its place in memory. */
typedef struct Val {
    const CType *type;
    bool unknown;
    bool literal; // computed from literals only, so that a C compiler folds it
    union {
        uint64_t i;
        double f;
        Place place;
    };
} Val;

enum { POINTER_FUNCTION = 0xFFFFFF };

/* ---- objects ---- */

/* Create an object of `size` bytes, all 0, called `name` in messages; release one for reuse. */
Object *object_create(Eval *ev, int64_t size, const char *name);
void object_release(Eval *ev, Object *object);

/* Makes pointers to an object invalid, because its variable goes out of scope. */
void object_end(Object *object);

/* Starts to record the reads and stores of an object. */
void object_track(Eval *ev, Object *object);

/* Returns whether bytes that were read before the first store have changed since. */
bool object_changed(const Object *object);

/* Returns whether a byte was read before the first store to it. */
bool track_read(const Track *track, int64_t offset);

/* Records a read of bytes by the source at `at`. */
void memory_read(Eval *ev, Place place, int64_t size, Position at);

/* ---- pointers ---- */

/* Return a pointer to a place, and to a function. */
uint64_t pointer_to(Place place);
uint64_t pointer_to_function(const CFunction *function);

/* Returns the function that a pointer points to; NULL when it points to no function. */
const CFunction *pointer_function(Eval *ev, uint64_t pointer);

/* Return whether a pointer points into a string literal, and whether to the end of an object. */
bool pointer_literal(const Eval *ev, uint64_t pointer);
bool pointer_behind(const Eval *ev, uint64_t pointer);

/* Returns a pointer moved by `bytes`; an error when it is null or its offset exceeds 32 bits. */
uint64_t pointer_moved(Eval *ev, uint64_t pointer, int64_t bytes, Position at);

/* Returns the place of `size` bytes at a pointer; an error when no live object contains them. */
Place pointer_place(Eval *ev, uint64_t pointer, int64_t size, Position at);

/* Returns the string at a pointer; an error when it has no null byte inside its object. */
const char *pointer_string(Eval *ev, uint64_t pointer, Position at);

/* Returns a string's characters before its null byte, at most `most`; sets *length to their number.
 * A string of at least `most` characters needs no null byte. */
const char *pointer_characters(Eval *ev, uint64_t pointer, uint64_t most, Position at,
                               size_t *length);

/* ---- loads and stores ---- */

/* Load and store a value, and load and store a bit-field at a place. */
Val place_load(Eval *ev, Place place, const CType *type, Position at);
void place_store(Eval *ev, Place place, Val value);
Val place_load_bits(Eval *ev, Place place, const CField *field, const CType *type, Position at);
void place_store_bits(Eval *ev, Place place, const CField *field, Val value);

/* Returns the place of a member, which must exist, and sets *member to the member's type. */
Place place_member(Place place, const CType *type, const char *name, const CType **member);

/* Copies `size` bytes with their Knowledge. The two ranges may overlap. */
void place_copy(Eval *ev, Place to, Place from, int64_t size);

/* Copies a struct as an assignment does: the copy's padding has no value (Knowledge PADDING). */
void place_assign(Eval *ev, Place to, Place from, const CType *type);

/* Marks the padding of a struct, or of an array of structs; does nothing outside functions. */
void place_mark_padding(Eval *ev, Place place, const CType *type);
/* Returns the number of bits of a type that are not padding, whichever member each union holds. */
int64_t place_member_bits(Eval *ev, const CType *type);

/* Set bytes to known zeros, and set the Knowledge of bytes. */
void place_clear(Eval *ev, Place place, int64_t size);
void place_mark(Eval *ev, Place place, int64_t size, Knowledge knowledge);

/* Records a read and returns whether all bytes are known; an error when one is unset or padding. */
bool place_read(Eval *ev, Place place, int64_t size, Position at);

/* Returns the worst Knowledge of some bytes. */
Knowledge place_known(Place place, int64_t size);

/* Load and store a tensor; NULL stands for an absent tensor. */
Value *tensor_load(Eval *ev, Place place, Position at);
void tensor_store(Eval *ev, Place place, Value *value);

/* ---- numbers ---- */

/* A binary operation: `a op b`, whose result has type `type`. */
typedef struct Binary {
    COperation op;
    const CType *type;
    Val a, b;
    Position at;
} Binary;

/* Make a value of a type: an integer, a floating-point number, an unknown value. */
Val val_int(const CType *type, int64_t value);
Val val_float(const CType *type, double value);
Val val_unknown(const CType *type);

/* Converts a value to a type. */
Val val_convert(Eval *ev, Val value, const CType *type, Position at);

/* Returns the result of an operation. */
Val val_binary(Eval *ev, const Binary *operation);

/* Returns whether a value is not 0; an error when it is unknown. */
bool val_true(Eval *ev, Val value, Position at);
