/* The evaluator's memory, and the values that stand in it.
 *
 * Memory is bytes, as on the machine, in objects: a variable, a literal, what a call returns. A
 * pointer is the number of an object with its generation and an offset, so that every access is
 * checked. A tensor's eight bytes hold the number of its Value.
 */
#ifndef FRONTEND_EVAL_MEMORY_H
#define FRONTEND_EVAL_MEMORY_H

#include "frontend/ctree.h"

typedef struct Value Value; // ir/value.h

typedef struct Eval Eval;

/* State of a byte of an object. A later state is the worse one. */
typedef enum Knowledge {
    KNOWN,
    UNKNOWN, // has a value at run time only
    UNSET,   // nothing was stored there yet
    PADDING  // belongs to no member, or has bits that belong to none
} Knowledge;

/* What a model does with the value that a variable of static storage has before. */
typedef struct Track {
    uint8_t *before;  // its bytes
    uint8_t *touched; // by byte
    Position read_at, written_at;
} Track;

typedef struct Object {
    uint8_t *bytes;
    uint8_t *unknown; // a Knowledge for each byte; NULL: all known
    uint8_t *set;     // bits with a value in bytes that are UNSET or PADDING; NULL: none
    int64_t size, capacity;
    uint32_t id, generation;
    uint64_t born; // a number in the order of creation
    bool live, has_unknown;
    bool constant;    // nothing may be stored there
    bool literal;     // of a string
    const char *name; // for messages
    Track *track;     // NULL: nobody asks
} Object;

typedef struct Place {
    Object *object;
    int64_t offset;
} Place;

/* A value. Numbers are kept in 64 bits, normalised to their type; pointers as memory.c packs them;
 * structs where they stand in memory. */
typedef struct Val {
    const CType *type;
    bool unknown;
    bool literal; // computed from numbers of the source alone, so that a C compiler folds it
    union {
        uint64_t i;
        double f;
        Place place;
    };
} Val;

enum { POINTER_FUNCTION = 0xFFFFFF };

Object *object_create(Eval *ev, int64_t size, const char *name);
void object_release(Eval *ev, Object *object);
/* Ends the life of what stands in an object: pointers to it are no longer followed. */
void object_end(Object *object);
/* From here on what is read of the object, and what is stored there, is noted. */
void object_track(Eval *ev, Object *object);
/* Whether bytes whose value from before was read have another one now. */
bool object_changed(const Object *object);
/* Whether the value from before of a byte was read. */
bool track_read(const Track *track, int64_t offset);
/* Says that bytes are read, or stored, at `at`; the functions below say so themselves. */
void memory_read(Eval *ev, Place place, int64_t size, Position at);
void memory_written(Eval *ev, Place place, int64_t size, Position at);
uint64_t pointer_to(Place place);
uint64_t pointer_to_function(const CFunction *function);
const CFunction *pointer_function(Eval *ev, uint64_t pointer); // NULL: it points to none
bool pointer_literal(const Eval *ev, uint64_t pointer); // whether it points into a string literal
bool pointer_behind(const Eval *ev,
                    uint64_t pointer); // whether it points one behind the end of an object
uint64_t pointer_moved(Eval *ev, uint64_t pointer, int64_t bytes, Position at);
/* The place of `size` bytes; an error when they do not lie in a living object. */
Place pointer_place(Eval *ev, uint64_t pointer, int64_t size, Position at);
Val place_load(Eval *ev, Place place, const CType *type, Position at);
/* The place of the member `name` of a struct of the type, which has one; its type. */
Place place_member(Place place, const CType *type, const char *name, const CType **member);
void place_store(Eval *ev, Place place, Val value);
/* The same for a bit-field, which begins at a bit of the place. */
Val place_load_bits(Eval *ev, Place place, const CField *field, const CType *type, Position at);
void place_store_bits(Eval *ev, Place place, const CField *field, Val value);
void place_copy(Eval *ev, Place to, Place from, int64_t size);
/* Copies a struct as an assignment does: padding of the copy has no value. */
void place_assign(Eval *ev, Place to, Place from, const CType *type);
/* Marks the padding of a struct, or of an array of structs, which a function initialises. */
void place_mark_padding(Eval *ev, Place place, const CType *type);
void place_clear(Eval *ev, Place place, int64_t size);
void place_mark(Eval *ev, Place place, int64_t size, Knowledge knowledge);
/* Reads bytes: whether all of them are known. An error when one was never set. */
bool place_read(Eval *ev, Place place, int64_t size, Position at);
/* The least that is known of a byte of the place. */
Knowledge place_known(Place place, int64_t size);
/* A string that ends inside its object. */
const char *pointer_string(Eval *ev, uint64_t pointer, Position at);
/* The characters of a string in front of its null byte, at most `most`: an object that has so many
 * need not have a null byte. */
const char *pointer_characters(Eval *ev, uint64_t pointer, uint64_t most, Position at,
                               size_t *length);

Value *tensor_load(Eval *ev, Place place, Position at); // NULL: absent
void tensor_store(Eval *ev, Place place, Value *value);

/* ---- numbers ---- */

/* A binary operation: `a op b`, whose result has type `type`. */
typedef struct Binary {
    COperation op;
    const CType *type;
    Val a, b;
    Position at;
} Binary;

Val val_int(const CType *type, int64_t value);
Val val_float(const CType *type, double value);
Val val_unknown(const CType *type);
Val val_convert(Eval *ev, Val value, const CType *type, Position at);
Val val_binary(Eval *ev, const Binary *operation);
bool val_true(Eval *ev, Val value, Position at); // an error when it is unknown

#endif
