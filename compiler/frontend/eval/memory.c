/* The evaluator's memory: objects of bytes, and pointers to them.
 *
 *     pointer = id << 40 | generation << 32 | offset
 *
 * The offset is a signed 32-bit number. Id 0 is that of null pointers, POINTER_FUNCTION that of
 * pointers to functions. The generation distinguishes an object from earlier ones with its id. */
#include "frontend/eval/eval.h"

#include <string.h>

enum { MOST_BYTES = 1 << 30 };

/* ---- objects ---- */

static Object *new_object(Eval *ev) {
    if (ev->heap.spare.count) return ev->heap.spare.at[--ev->heap.spare.count];
    if (ev->heap.objects.count >= POINTER_FUNCTION) return NULL;
    Object *object = arena_new(ev->scratch, Object);
    object->id = (uint32_t)ev->heap.objects.count;
    array_push(ev->scratch, &ev->heap.objects, object);
    return object;
}

Object *object_create(Eval *ev, int64_t size, const char *name) {
    Position here = ev->frame ? ev->frame->called_at : (Position){0};
    Object *object = size <= MOST_BYTES ? new_object(ev) : NULL;
    if (!object)
        eval_error(ev, here, "the memory that a model may use at compile time is exhausted");
    if (object->capacity < size || !object->bytes) {
        object->capacity = size < 16 ? 16 : size;
        object->bytes = arena_alloc(ev->scratch, (size_t)object->capacity);
        object->unknown = object->set = NULL;
    }
    memset(object->bytes, 0, (size_t)size);
    object->size = size;
    object->name = name;
    object->born = ++ev->heap.born;
    object->live = true;
    object->has_unknown = object->constant = object->literal = false;
    object->track = NULL;
    return object;
}

void object_release(Eval *ev, Object *object) {
    object->live = false;
    object->generation++;
    array_push(ev->scratch, &ev->heap.spare, object);
}

void object_end(Object *object) { object->generation++; }

static const char *shown(const Object *object) {
    return object->name ? object->name : "an unnamed object";
}

/* ---- reads and changes of static variables ---- */

enum { TOUCHED_READ = 1, TOUCHED_WRITTEN = 2 };

void object_track(Eval *ev, Object *object) {
    Track *track = arena_new(ev->scratch, Track);
    *track = (Track){.touched = arena_alloc(ev->scratch, (size_t)object->size + 1)};
    track->before = arena_copy(ev->scratch, object->bytes, (size_t)object->size);
    memset(track->touched, 0, (size_t)object->size);
    object->track = track;
}

bool track_read(const Track *track, int64_t offset) {
    return track->touched[offset] & TOUCHED_READ;
}

bool object_changed(const Object *object) {
    for (int64_t i = 0; i < object->size; i++)
        if (track_read(object->track, i) && object->track->before[i] != object->bytes[i])
            return true;
    return false;
}

void memory_read(Eval *ev, Place place, int64_t size, Position at) {
    Track *track = place.object->track;
    if (ev->order.since) order_note(ev, place, size, false);
    for (int64_t i = 0; track && i < size; i++) {
        uint8_t *touched = &track->touched[place.offset + i];
        if (*touched & (TOUCHED_READ | TOUCHED_WRITTEN)) continue;
        *touched |= TOUCHED_READ;
        if (!track->read_at.file) track->read_at = operator_position(ev, at);
    }
}

/* Records a store of bytes; a store to a constant is an error. */
static void written(Eval *ev, Place place, int64_t size) {
    Track *track = place.object->track;
    if (ev->order.since) order_note(ev, place, size, true);
    if (place.object->constant && size > 0)
        eval_error(ev, ev->at, "%s is constant, and nothing can be stored there",
                   shown(place.object));
    if (track && size > 0 && !track->written_at.file)
        track->written_at = operator_position(ev, ev->at);
    for (int64_t i = 0; track && i < size; i++) track->touched[place.offset + i] |= TOUCHED_WRITTEN;
}

/* ---- pointers ---- */

uint64_t pointer_to(Place place) {
    uint64_t id = place.object->id, generation = place.object->generation & 0xFF;
    return id << 40 | generation << 32 | (uint32_t)(int32_t)place.offset;
}

uint64_t pointer_to_function(const CFunction *function) {
    return (uint64_t)POINTER_FUNCTION << 40 | (uint32_t)function->number;
}

const CFunction *pointer_function(Eval *ev, uint64_t pointer) {
    uint32_t number = (uint32_t)pointer;
    bool names = pointer >> 40 == POINTER_FUNCTION && number < (uint32_t)ev->unit->functions.count;
    return names ? ev->unit->functions.at[number] : NULL;
}

bool pointer_behind(const Eval *ev, uint64_t pointer) {
    uint64_t id = pointer >> 40;
    return id && id < (uint64_t)ev->heap.objects.count &&
           (int32_t)pointer == ev->heap.objects.at[id]->size;
}

bool pointer_literal(const Eval *ev, uint64_t pointer) {
    uint64_t id = pointer >> 40;
    return id && id < (uint64_t)ev->heap.objects.count && ev->heap.objects.at[id]->literal;
}

uint64_t pointer_moved(Eval *ev, uint64_t pointer, int64_t bytes, Position at) {
    int64_t offset;
    if (bytes == 0) return pointer;
    if (!pointer) eval_error(ev, at, "arithmetic on a null pointer");
    if (__builtin_add_overflow((int64_t)(int32_t)pointer, bytes, &offset) ||
        offset != (int32_t)offset)
        eval_error(ev, at, "this pointer leaves its object");
    return (pointer & ~(uint64_t)UINT32_MAX) | (uint32_t)(int32_t)offset;
}

Place pointer_place(Eval *ev, uint64_t pointer, int64_t size, Position at) {
    uint64_t id = pointer >> 40;
    if (!id) eval_error(ev, at, "a null pointer is followed");
    if (id >= (uint64_t)ev->heap.objects.count)
        eval_error(ev, at, "this pointer points to no object");
    Object *object = ev->heap.objects.at[id];
    int64_t offset = (int32_t)pointer;
    if (!object->live || (object->generation & 0xFF) != (pointer >> 32 & 0xFF))
        eval_error(ev, at, "this pointer points to a variable that no longer exists");
    if (offset < 0 || offset + size > object->size)
        eval_error(ev, at, "this reaches outside %s: bytes %lld to %lld of %lld", shown(object),
                   (long long)offset, (long long)(offset + size), (long long)object->size);
    return (Place){object, offset};
}

/* ---- unknown bytes ---- */

Knowledge place_known(Place place, int64_t size) {
    Knowledge worst = KNOWN;
    for (int64_t i = 0; place.object->has_unknown && i < size; i++)
        if (place.object->unknown[place.offset + i] > worst)
            worst = place.object->unknown[place.offset + i];
    return worst;
}

void place_mark(Eval *ev, Place place, int64_t size, Knowledge knowledge) {
    Object *object = place.object;
    if (!object->has_unknown && knowledge == KNOWN) return;
    if (!object->unknown) object->unknown = arena_alloc(ev->scratch, (size_t)object->capacity);
    if (!object->has_unknown) memset(object->unknown, KNOWN, (size_t)object->size);
    object->has_unknown = true;
    memset(object->unknown + place.offset, knowledge, (size_t)size);
    if (object->set) memset(object->set + place.offset, 0, (size_t)size);
}

/* Returns whether bytes are known; reports bytes that were never set, and padding. */
static bool check_known(Eval *ev, Place place, int64_t size, Position at) {
    Knowledge knowledge = place_known(place, size);
    if (knowledge == UNSET) eval_error(ev, at, "%s is read before it is set", shown(place.object));
    if (knowledge == PADDING)
        eval_error(
            ev, at,
            "this reads padding of %s, whose value C leaves open; compare or copy the members",
            shown(place.object));
    return knowledge == KNOWN;
}

bool place_read(Eval *ev, Place place, int64_t size, Position at) {
    memory_read(ev, place, size, at);
    return check_known(ev, place, size, at);
}

/* ---- loads and stores ---- */

static uint64_t load_integer(const uint8_t *bytes, const CType *type) {
    uint64_t value = 0;
    memcpy(&value, bytes, (size_t)type->size);
    if (type->is_signed && type->size < 8) {
        int shift = 64 - 8 * (int)type->size;
        value = (uint64_t)((int64_t)(value << shift) >> shift);
    }
    return value;
}

static double load_floating(const uint8_t *bytes, const CType *type) {
    float narrow;
    double wide;
    memcpy(&narrow, bytes, sizeof narrow);
    if (type->kind == CT_FLOAT) return (double)narrow;
    memcpy(&wide, bytes, sizeof wide);
    return wide;
}

Val place_load(Eval *ev, Place place, const CType *type, Position at) {
    Val value = {.type = type};
    const uint8_t *bytes = place.object->bytes + place.offset;
    if (type->kind == CT_STRUCT || type->kind == CT_ARRAY) {
        value.place = place;
        return value;
    }
    if (type->is_tensor_node)
        eval_error(ev, at,
                   "a tensor is not known at compile time; what depends on it must be an operator");
    memory_read(ev, place, type->size, at);
    if (!check_known(ev, place, type->size, at)) return val_unknown(type);
    if (ctype_is_integer(type) || type->kind == CT_POINTER) value.i = load_integer(bytes, type);
    else if (ctype_is_floating(type)) value.f = load_floating(bytes, type);
    else eval_error(ev, at, "values of type %s cannot be evaluated at compile time", type->name);
    return value;
}

Place place_member(Place place, const CType *type, const char *name, const CType **member) {
    CField field;
    if (!ctype_field(type, name, &field)) BUG("%s has no member %s", type->name, name);
    *member = field.type;
    return (Place){place.object, place.offset + field.offset};
}

/* Returns Object.set of an object, and allocates it when it is NULL. */
static uint8_t *bits_set(Eval *ev, Object *object) {
    if (!object->set) object->set = arena_alloc(ev->scratch, (size_t)object->capacity);
    return object->set;
}

void place_copy(Eval *ev, Place to, Place from, int64_t size) {
    memory_read(ev, from, size, ev->at);
    written(ev, to, size);
    if (to.object == from.object && to.offset == from.offset) return;
    memmove(to.object->bytes + to.offset, from.object->bytes + from.offset, (size_t)size);
    if (!from.object->has_unknown) {
        place_mark(ev, to, size, KNOWN);
        return;
    }
    if (from.object->set) bits_set(ev, to.object);
    if (to.object != from.object) place_mark(ev, to, size, UNKNOWN);
    memmove(to.object->unknown + to.offset, from.object->unknown + from.offset, (size_t)size);
    if (from.object->set)
        memmove(to.object->set + to.offset, from.object->set + from.offset, (size_t)size);
}

/* ---- padding ---- */

/* Returns a mask of the bits in byte `k` that belong to the bit-field [bit, bit + width). */
static uint8_t bits_of_byte(int bit, int width, int k) {
    int from = bit - 8 * k, to = bit + width - 8 * k;
    unsigned below = from <= 0 ? 0 : (1u << from) - 1, all = to >= 8 ? 0xFF : (1u << to) - 1;
    return (uint8_t)(all & ~below);
}

static int field_bytes(int bit, int width) { return (bit + width + 7) / 8; }

/* Adds to `bits` the bits of a type that belong to a member. Of a union it adds the bits of any
 * member; with `shared`, only the bits that are padding in no member. */
static void add_member_bits(Eval *ev, uint8_t *bits, const CType *type, bool shared) {
    uint8_t *whole = NULL, *member;
    if (type->kind == CT_ARRAY)
        for (int64_t i = 0; i < type->count; i++)
            add_member_bits(ev, bits + i * type->base->size, type->base, shared);
    else if (type->kind != CT_STRUCT) memset(bits, 0xFF, (size_t)type->size);
    if (type->kind != CT_STRUCT) return;
    if (type->is_union && shared) {
        whole = arena_alloc(ev->scratch, (size_t)type->size + 1);
        memset(whole, 0xFF, (size_t)type->size);
    }
    for (int i = 0; i < type->fields.count; i++) {
        const CField *field = &type->fields.at[i];
        member = whole ? arena_alloc(ev->scratch, (size_t)type->size + 16) : bits;
        if (whole) memset(member, 0, (size_t)type->size);
        for (int k = 0; field->width && k < field_bytes(field->bit, field->width); k++)
            member[field->offset + k] |= bits_of_byte(field->bit, field->width, k);
        if (!field->width) add_member_bits(ev, member + field->offset, field->type, shared);
        for (int64_t k = 0; whole && !field->width && k < field->type->size; k++)
            whole[k] &= member[k];
    }
    for (int64_t k = 0; whole && k < type->size; k++) bits[k] |= whole[k];
}

/* Returns, for each byte of a struct, the bits that belong to members; caches them in the type. */
static const uint8_t *member_bits(Eval *ev, const CType *type, bool shared) {
    if (!type->member_bits[shared]) {
        uint8_t *bits = arena_alloc(ev->unit->arena, (size_t)type->size + 16);
        memset(bits, 0, (size_t)type->size);
        add_member_bits(ev, bits, type, shared);
        ((CType *)type)->member_bits[shared] = bits;
    }
    return type->member_bits[shared];
}

int64_t place_member_bits(Eval *ev, const CType *type) {
    int64_t count = 0;
    if (type->kind == CT_ARRAY) return type->count * place_member_bits(ev, type->base);
    if (type->kind != CT_STRUCT) return type->size * 8;
    for (int64_t k = 0; k < type->size; k++)
        count += __builtin_popcount(member_bits(ev, type, true)[k]);
    return count;
}

/* Marks bytes with padding bits as PADDING, and records which of their member bits are set. */
static void mark_padding(Eval *ev, Place place, const CType *type, bool shared) {
    for (int64_t i = 0; type->kind == CT_ARRAY && i < type->count; i++) {
        const CType *base = type->base;
        if (base->kind != CT_STRUCT && base->kind != CT_ARRAY) return;
        mark_padding(ev, (Place){place.object, place.offset + i * base->size}, base, shared);
    }
    if (type->kind != CT_STRUCT) return;
    const uint8_t *bits = member_bits(ev, type, shared);
    for (int64_t k = 0; k < type->size; k++) {
        Place byte = {place.object, place.offset + k};
        Knowledge before = place_known(byte, 1);
        if (bits[k] == 0xFF || (bits[k] && before == UNKNOWN)) continue;
        uint8_t *set = bits_set(ev, byte.object) + byte.offset,
                kept = (uint8_t)(bits[k] & (before == KNOWN ? 0xFF : *set));
        place_mark(ev, byte, 1, PADDING);
        *set = kept;
    }
}

void place_mark_padding(Eval *ev, Place place, const CType *type) {
    if (ev->frame && ev->frame->function) mark_padding(ev, place, type, true);
}

void place_assign(Eval *ev, Place to, Place from, const CType *type) {
    place_copy(ev, to, from, type->size);
    if (ev->frame && ev->frame->function) mark_padding(ev, to, type, false);
}

void place_clear(Eval *ev, Place place, int64_t size) {
    written(ev, place, size);
    memset(place.object->bytes + place.offset, 0, (size_t)size);
    place_mark(ev, place, size, KNOWN);
}

void place_store(Eval *ev, Place place, Val value) {
    uint8_t *bytes = place.object->bytes + place.offset;
    const CType *type = value.type;
    written(ev, place, type->size);
    if (value.unknown) {
        place_mark(ev, place, type->size, UNKNOWN);
        return;
    }
    if (type->kind == CT_STRUCT) {
        place_assign(ev, place, value.place, type);
        return;
    }
    place_mark(ev, place, type->size, KNOWN);
    float narrow = (float)value.f;
    if (type->kind == CT_FLOAT) memcpy(bytes, &narrow, sizeof narrow);
    else if (type->kind == CT_DOUBLE) memcpy(bytes, &value.f, sizeof value.f);
    else if (type->size <= (int64_t)sizeof value.i && type->kind != CT_OTHER)
        memcpy(bytes, &value.i, (size_t)type->size);
    else
        eval_error(ev, ev->at, "values of type %s cannot be evaluated at compile time", type->name);
}

/* ---- bit-fields ---- */

/* Returns whether a bit-field is known; reports one with bits that were never set. */
static bool bits_known(Eval *ev, Place place, int bit, int width, Position at) {
    const Object *object = place.object;
    bool known = true;
    for (int k = 0; k < field_bytes(bit, width) && object->has_unknown; k++) {
        uint8_t mask = bits_of_byte(bit, width, k),
                set = object->set ? object->set[place.offset + k] : 0;
        Knowledge knowledge = object->unknown[place.offset + k];
        known &= knowledge != UNKNOWN;
        if (knowledge >= UNSET && (set & mask) != mask)
            eval_error(ev, at, "%s is read before it is set", shown(object));
    }
    return known;
}

Val place_load_bits(Eval *ev, Place place, const CField *field, const CType *type, Position at) {
    int bit = field->bit, width = field->width;
    if (width > 32 && width < 8 * (int)type->size)
        eval_error(ev, at,
                   "a bit-field of %d bits has a type of its own, which cannot be evaluated at "
                   "compile time; at most 32 can",
                   width);
    memory_read(ev, place, field_bytes(bit, width), at);
    if (!bits_known(ev, place, bit, width, at)) return val_unknown(type);
    unsigned __int128 bytes = 0;
    memcpy(&bytes, place.object->bytes + place.offset, (size_t)field_bytes(bit, width));
    uint64_t value = (uint64_t)(bytes >> bit);
    int shift = 64 - width;
    bool is_signed = type->kind == CT_INT && type->is_signed;
    return (Val){.type = type,
                 .i = is_signed ? (uint64_t)((int64_t)(value << shift) >> shift)
                                : value << shift >> shift};
}

void place_store_bits(Eval *ev, Place place, const CField *field, Val value) {
    int bit = field->bit, width = field->width;
    uint8_t bytes[16] = {0}, *to = place.object->bytes + place.offset;
    int count = field_bytes(bit, width);
    written(ev, place, count);
    if (value.unknown) {
        place_mark(ev, place, count, UNKNOWN);
        return;
    }
    unsigned __int128 shifted = (unsigned __int128)value.i << bit;
    memcpy(bytes, &shifted, sizeof bytes);
    for (int k = 0; k < count; k++) {
        uint8_t mask = bits_of_byte(bit, width, k);
        bool unset = place.object->has_unknown && place.object->unknown[place.offset + k] >= UNSET;
        to[k] = (uint8_t)((to[k] & ~mask) | (bytes[k] & mask));
        if (unset && (bits_set(ev, place.object)[place.offset + k] |= mask) == 0xFF)
            place_mark(ev, (Place){place.object, place.offset + k}, 1, KNOWN);
    }
}

const char *pointer_characters(Eval *ev, uint64_t pointer, uint64_t most, Position at,
                               size_t *length) {
    *length = 0;
    if (!most) return "";
    Place place = pointer_place(ev, pointer, 1, at);
    const char *text = (const char *)place.object->bytes + place.offset;
    size_t room = (size_t)(place.object->size - place.offset);
    *length = strnlen(text, most < room ? most : room);
    if (*length == room && room < most)
        eval_error(ev, at, "this string has no terminating null byte");
    int64_t size = (int64_t)*length + (*length < most);
    if (!place_read(ev, place, size, at))
        eval_error(ev, at, "this string is not known at compile time");
    return text;
}

const char *pointer_string(Eval *ev, uint64_t pointer, Position at) {
    size_t length;
    return pointer_characters(ev, pointer, UINT64_MAX, at, &length);
}

/* ---- tensors ---- */

Value *tensor_load(Eval *ev, Place place, Position at) {
    uint64_t number;
    memory_read(ev, place, sizeof number, at);
    memcpy(&number, place.object->bytes + place.offset, sizeof number);
    if (!check_known(ev, place, sizeof number, at) || number > (uint64_t)ev->heap.values.count)
        eval_error(ev, at, "this tensor is not one of the model's");
    return number ? ev->heap.values.at[number - 1] : NULL;
}

void tensor_store(Eval *ev, Place place, Value *value) {
    uint64_t number = 0;
    if (value) {
        array_push(ev->scratch, &ev->heap.values, value);
        number = (uint64_t)ev->heap.values.count;
    }
    written(ev, place, sizeof number);
    memcpy(place.object->bytes + place.offset, &number, sizeof number);
    place_mark(ev, place, sizeof number, KNOWN);
}
