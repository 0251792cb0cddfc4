/* Initialisers, and the variables that they belong to. */
#include "frontend/eval/eval.h"

#include <string.h>

/* ---- braces ---- */

enum { MOST_LEVELS = 64 };

/* An aggregate whose members are being initialised in order; with braces left out there are several inside each other. */
typedef struct Level {
    const CType *type;
    Place place;
    int64_t next; // the member or element that comes next
} Level;

typedef struct Filler {
    Eval *ev;
    Level level[MOST_LEVELS];
    int depth;
} Filler;

static bool is_aggregate(const CType *type) { return type->kind == CT_STRUCT || type->kind == CT_ARRAY; }

static int64_t member_count(const Level *level)
{
    if (level->type->kind == CT_ARRAY)
        return level->type->count;
    return level->type->is_union ? level->type->fields.count > 0 : level->type->fields.count;
}

/* The member that comes next, with its type. */
static Place next_member(const Level *level, const CType **type)
{
    Place place = level->place;
    if (level->type->kind == CT_ARRAY) {
        *type = level->type->base;
        place.offset += level->next * (*type)->size;
        return place;
    }
    const CField *field = &level->type->fields.at[level->next];
    *type = field->type;
    place.offset += field->offset;
    return place;
}

static void go_past(Level *level) { level->next = level->type->is_union ? level->type->fields.count : level->next + 1; }

/* Goes into the next member; the level above goes on behind it. */
static void enter(Filler *f, Position at)
{
    const CType *type;
    Place place = next_member(&f->level[f->depth], &type);
    if (f->depth + 1 >= MOST_LEVELS)
        eval_error(f->ev, at, "this initialiser is nested too deeply");
    go_past(&f->level[f->depth]);
    f->level[++f->depth] = (Level){.type = type, .place = place};
}

/* Makes `name` the next member, also where it stands in an anonymous one. */
static bool find_field(Filler *f, const char *name, Position at)
{
    Level *level = &f->level[f->depth];
    CField found;
    for (int i = 0; i < level->type->fields.count; i++) {
        const CField *field = &level->type->fields.at[i];
        level->next = i;
        if (!strcmp(field->name, name))
            return true;
        if (!*field->name && ctype_field(field->type, name, &found)) {
            enter(f, at);
            return find_field(f, name, at);
        }
    }
    return false;
}

static int64_t array_index(Filler *f, const CExpr *expr)
{
    Val index = eval(f->ev, expr);
    if (index.unknown)
        eval_error(f->ev, expr->at, "this index is not known at compile time");
    return (int64_t)index.i;
}

/* Follows the designators; the range of the last one ends at *last. */
static void designate(Filler *f, const CExpr *expr, int64_t *last)
{
    f->depth = 0;
    for (int i = 0; i < expr->designators.count; i++) {
        const CDesignator *designator = &expr->designators.at[i];
        if (i)
            enter(f, expr->at);
        Level *level = &f->level[f->depth];
        if (designator->field) {
            if (!find_field(f, designator->field, expr->at))
                eval_error(f->ev, expr->at, "%s has no member %s", level->type->name, designator->field);
            *last = f->level[f->depth].next;
        } else {
            level->next = array_index(f, designator->first);
            *last = designator->last == designator->first ? level->next : array_index(f, designator->last);
            if (level->next < 0 || *last >= level->type->count)
                eval_error(f->ev, expr->at, "index %lld is outside an array of %lld", (long long)*last, (long long)level->type->count);
        }
    }
}

static bool takes_whole(const CType *type, const CExpr *value)
{
    bool string = value->kind == C_STRING && type->kind == CT_ARRAY && type->base->size == 1;
    return !is_aggregate(type) || value->kind == C_INIT || string || value->type == type;
}

static void fill_positional(Filler *f, const CExpr *value)
{
    const CType *type;
    while (f->depth && f->level[f->depth].next >= member_count(&f->level[f->depth]))
        f->depth--;
    if (f->level[f->depth].next >= member_count(&f->level[f->depth]))
        eval_error(f->ev, value->at, "more initialisers than members");
    Place place = next_member(&f->level[f->depth], &type);
    while (!takes_whole(type, value)) {
        enter(f, value->at);
        place = next_member(&f->level[f->depth], &type);
    }
    eval_init(f->ev, place, type, value);
    go_past(&f->level[f->depth]);
}

static void fill_designated(Filler *f, const CExpr *expr)
{
    int64_t last = 0;
    const CType *type;
    designate(f, expr, &last);
    Level *level = &f->level[f->depth];
    if (level->type->kind != CT_ARRAY) {
        Place place = next_member(level, &type);
        if (takes_whole(type, expr->a)) {
            eval_init(f->ev, place, type, expr->a);
            go_past(level);
        } else {
            fill_positional(f, expr->a);
        }
        return;
    }
    for (; level->next < last; level->next++) {
        Place place = next_member(level, &type);
        eval_init(f->ev, place, type, expr->a);
    }
    fill_positional(f, expr->a);
}

static void fill(Eval *ev, Place place, const CType *type, const CExpr *list)
{
    Filler f = {.ev = ev};
    f.level[0] = (Level){.type = type, .place = place};
    for (int i = 0; i < list->args.count; i++) {
        const CExpr *value = list->args.at[i];
        if (value->kind == C_REFUSED)
            eval(ev, value);
        else if (value->kind == C_DESIGNATED)
            fill_designated(&f, value);
        else
            fill_positional(&f, value);
    }
}

static void init_string(Place place, const CType *type, const CExpr *string)
{
    memcpy(place.object->bytes + place.offset, string->string, (size_t)(string->length < type->size ? string->length : type->size));
}

void eval_init(Eval *ev, Place place, const CType *type, const CExpr *init)
{
    if (init->kind == C_INIT && init->args.count == 1 && !is_aggregate(type))
        init = init->args.at[0];
    if (is_aggregate(type) && init->kind != C_INIT && init->kind != C_STRING) {
        Val value = eval(ev, init);
        if (value.unknown)
            place_mark(ev, place, type->size, UNKNOWN);
        else if (value.place.object != place.object || value.place.offset != place.offset)
            place_copy(ev, place, value.place, type->size);
        return;
    }
    if (is_aggregate(type) || init->kind == C_INIT)
        place_clear(ev, place, type->size);
    if (init->kind == C_STRING && type->kind == CT_ARRAY)
        init_string(place, type, init);
    else if (init->kind == C_INIT && is_aggregate(type))
        fill(ev, place, type, init);
    else if (init->kind != C_INIT)
        place_store(ev, place, val_convert(ev, eval(ev, init), type, init->at));
}

/* ---- variables ---- */

static int64_t variable_size(Eval *ev, const CVar *var)
{
    if (!var->length)
        return var->type->size;
    if (!var->type->base->size)
        eval_error(ev, var->at, "arrays of variable length have one dimension in what is evaluated at compile time");
    Val count = eval(ev, var->length);
    if (count.unknown || (int64_t)count.i < 1 || (int64_t)count.i > INT32_MAX)
        eval_error(ev, var->at, count.unknown ? "the length of %s is not known at compile time" : "the length of %s is not positive", var->name);
    return (int64_t)count.i * var->type->base->size;
}

static void initialize(Eval *ev, const CVar *var, Place place)
{
    eval_init(ev, place, var->type, var->init);
    if (var->type->is_tensor && place_known(place, var->type->size) == KNOWN) {
        CExpr target = {.kind = C_VAR, .var = (CVar *)var};
        value_name(tensor_load(ev, place, var->at), &target);
    }
}

void eval_declared(Eval *ev, const CVar *var)
{
    if (!var->local)
        return;
    if (var->type->kind == CT_OTHER)
        eval_error(ev, var->at, "variables of type %s cannot be evaluated at compile time", var->type->name);
    int64_t size = variable_size(ev, var);
    Place place = {frame_object(ev, var->slot, size, var->name), 0};
    if (var->init)
        initialize(ev, var, place);
    else if (size)
        place_mark(ev, place, size, UNSET);
}

/* Evaluates the initialiser of a variable with static storage in a frame of its own. */
static void initialize_static(Eval *ev, const CVar *var, Place place)
{
    EvalFrame frame = {.slot_count = var->init_slots, .caller = ev->frame, .called_at = var->at};
    frame.slots = arena_array(ev->scratch, Object *, var->init_slots);
    ev->frame = &frame;
    eval_init(ev, place, var->type, var->init);
    ev->frame = frame.caller;
}

static Object *static_variable(Eval *ev, const CVar *var, Position at)
{
    Object **object = &ev->statics[var->slot];
    if (*object)
        return *object;
    if (!var->defined && !ev->lenient) {
        diag_error(ev->diag, operator_position(ev, at), "%s is defined in nothing that hetucc is given, so its value is not known", var->name);
        diag_note(ev->diag, var->at,
                  "it is declared here; give hetucc the file that defines it, too, which must include <hetu/hetu.h>, or the object or archive "
                  "that hetucc -c made of it");
        eval_fail(ev);
    }
    *object = object_create(ev, var->type->size, var->name);
    Place place = {*object, 0};
    if (!var->defined)
        place_mark(ev, place, var->type->size, UNKNOWN);
    else if (ev->lenient && var->changes.count && !var->is_const)
        place_mark(ev, place, var->type->size, UNKNOWN);
    else if (var->given)
        place_store(ev, place, val_int(var->type, var->given_value));
    else if (var->init)
        initialize_static(ev, var, place);
    if (ev->module && !var->is_const)
        object_track(ev, *object);
    return *object;
}

/* A variable of the function in which ht_train stands: its initialiser where there is one. */
static Object *lenient_variable(Eval *ev, const CVar *var)
{
    Object *object = frame_object(ev, var->slot, var->type->size, var->name);
    Place place = {object, 0};
    if (var->init && !var->changes.count)
        eval_init(ev, place, var->type, var->init);
    else
        place_mark(ev, place, var->type->size, UNKNOWN);
    return object;
}

Object *eval_variable(Eval *ev, const CVar *var, Position at)
{
    if (!var->local)
        return static_variable(ev, var, at);
    EvalFrame *frame = ev->frame;
    if (frame->function && var->function != frame->function)
        BUG("%s does not belong to %s", var->name, frame->function->name);
    if (var->slot < frame->slot_count && frame->slots[var->slot])
        return frame->slots[var->slot];
    return frame->lenient ? lenient_variable(ev, var) : frame_object(ev, var->slot, var->type->size, var->name);
}
