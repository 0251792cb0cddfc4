/* Collects the values of globals that a model's evaluation reads and the program may change later.
 *
 *     int heads = 8;    read by the model: the program must still have 8 when it starts */
#include "frontend/state/state.h"
#include "ir/unit.h"

#include "ir/module.h"

typedef struct Reader {
    Eval *ev;
    const CVar *var;
    const Track *track;
} Reader;

/* Returns whether the program can set a variable: from this file, or from another that sees it. */
static bool may_be_set(const CVar *var) {
    return !var->is_const && !var->function && !(var->part && var->is_static) &&
           (var->shape || !var->is_static || var->access.changes.count);
}

static NumberKind number_kind(const CType *type) {
    if (ctype_is_floating(type)) return NUMBER_FLOATING;
    return type->is_signed ? NUMBER_SIGNED : NUMBER_UNSIGNED;
}

/* Returns how many bytes of a range the evaluation read before it stored to them. */
static int64_t bytes_read(const Reader *reader, int64_t offset, int64_t size) {
    int64_t count = 0;
    for (int64_t i = 0; i < size; i++) count += track_read(reader->track, offset + i);
    return count;
}

static void add_numbers(Reader *reader, const CType *type, CapturedGlobal part) {
    Arena *arena = reader->ev->arena;
    CapturedGlobal *read = arena_copy(arena, &part, sizeof part);
    read->variable = reader->var->name;
    read->at = reader->track->read_at;
    read->far = cunit_lookup(reader->ev->unit, reader->var->name).var != reader->var;
    read->kind = number_kind(type);
    read->size = (int)type->size;
    read->bytes =
        arena_copy(arena, reader->track->before + part.offset, (size_t)(part.count * type->size));
    array_push(arena, &reader->ev->module->source->captured_globals, read);
}

/* Adds to captured_globals each run of consecutive elements of an array that were read. */
static void add_runs(Reader *reader, const CType *array, int64_t offset, const char *name) {
    const CType *type = array->base;
    for (int64_t first = 0, end; first < array->count; first = end + 1) {
        for (end = first; end < array->count &&
                          bytes_read(reader, offset + end * type->size, type->size) == type->size;)
            end++;
        if (end > first)
            add_numbers(reader, type,
                        (CapturedGlobal){.name = name,
                                         .offset = offset + first * type->size,
                                         .first = first,
                                         .count = end - first});
    }
}

/* Adds to captured_globals the bytes of a bit-field that were read. */
static void add_bits(Reader *reader, const CField *field, int64_t offset, const char *name) {
    static const CType byte = {.kind = CT_INT, .name = "unsigned char", .size = 1, .rank = 1};
    for (int64_t i = 0; i < (field->bit + field->width + 7) / 8; i++)
        if (bytes_read(reader, offset + i, 1))
            add_numbers(
                reader, &byte,
                (CapturedGlobal){.name = name, .offset = offset + i, .first = -1, .count = 1});
}

/* Adds to captured_globals the numbers read in part `name` of the variable, without pointers. */
static void add_part(Reader *reader, const CType *type, int64_t offset, const char *name) {
    Arena *arena = reader->ev->arena;
    int64_t read = bytes_read(reader, offset, type->size);
    if (!read) return;
    if (ctype_is_arithmetic(type) && read == type->size)
        add_numbers(reader, type,
                    (CapturedGlobal){.name = name, .offset = offset, .first = -1, .count = 1});
    if (type->kind == CT_ARRAY && ctype_is_arithmetic(type->base))
        add_runs(reader, type, offset, name);
    else if (type->kind == CT_ARRAY)
        for (int64_t i = 0; i < type->count; i++)
            add_part(reader, type->base, offset + i * type->base->size,
                     arena_format(arena, "%s[%lld]", name, (long long)i));
    else if (type->kind == CT_STRUCT)
        for (int i = 0; i < type->fields.count; i++) {
            const CField *field = &type->fields.at[i];
            if (field->width) add_bits(reader, field, offset + field->offset, name);
            else
                add_part(reader, field->type, offset + field->offset,
                         *field->name ? arena_format(arena, "%s.%s", name, field->name) : name);
        }
}

void state_reads(Eval *ev) {
    for (int i = 0; i < ev->unit->vars.count; i++) {
        const CVar *var = ev->unit->vars.at[i];
        const Object *object = ev->heap.statics[i];
        if (object && object->track && may_be_set(var))
            add_part(&(Reader){ev, var, object->track}, var->type, 0, var->name);
    }
}
