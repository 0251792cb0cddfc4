/* Evaluates initializers, and finds or creates the objects of variables. */
#include "frontend/eval/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- initializer lists ----
 *
 *     struct config c = {.rate = f(), [0 ... 3] = g()}
 *
 * The first step, layout_of, finds for each list, once, which expression initializes which bytes.
 * The second, init_list, evaluates as gcc does: in the order of the members, not of the source. An
 * expression that a later one replaces is not evaluated, and an expression for a range is evaluated
 * once. All values are computed before the first is stored. */

enum { MOST_LEVELS = 64 };

/* The bytes that one expression initializes. */
typedef struct Leaf {
    int64_t offset; // in bytes
    int bit, width; // first bit and width of a bit-field; width 0: no bit-field
    const CType *type;
    const CExpr *value;
    int first; // index of the first leaf with this expression, which leaves of a range share
    // Bits [begin, end) of the element, if a list in braces is for a range of elements; else end 0.
    int64_t whole_begin, whole_end;
} Leaf;

/* The initialized member of a union. */
typedef struct Choice {
    int64_t offset;
    const CType *type;
    int64_t member;
} Choice;

typedef Array(Choice) Choices;

struct CLayout {
    const CType *type;
    Array(Leaf) leaves; // in ascending order of offsets
    bool clears;        // the list sets padding to zero, too
};

/* An aggregate whose members are being initialized; without inner braces, several are open. */
typedef struct Level {
    const CType *type;
    int64_t offset;
    int64_t next; // index of the next member or element
} Level;

typedef struct Filler {
    Eval *ev;
    CLayout *layout;
    Level level[MOST_LEVELS];
    int depth;
    int64_t end;         // largest leaf_end so far, in bits
    bool sorted, shared; // leaves have ascending offsets; leaves of a range share an expression
    int64_t whole_begin, whole_end; // Leaf.whole_begin and whole_end of new leaves
    Choices *choices;
} Filler;

/* A member or element. */
typedef struct Member {
    const CType *type;
    int64_t offset;
    int bit, width;
} Member;

static bool is_aggregate(const CType *type) {
    return type->kind == CT_STRUCT || type->kind == CT_ARRAY;
}

static int64_t member_count(const Level *level) {
    return level->type->kind == CT_ARRAY ? level->type->count : level->type->fields.count;
}

/* ---- leaves ---- */

static int64_t leaf_begin(const Leaf *leaf) { return leaf->offset * 8 + leaf->bit; }
static int64_t leaf_end(const Leaf *leaf) {
    return leaf_begin(leaf) + (leaf->width ? leaf->width : leaf->type->size * 8);
}

/* Removes the leaves in bits [begin, end), which a later initializer sets. Refuses to cut one. */
static void replace_bits(Filler *f, int64_t begin, int64_t end, Position at) {
    int kept = 0;
    CLayout *layout = f->layout;
    if (begin >= f->end) return;
    for (int i = 0; i < layout->leaves.count; i++) {
        const Leaf leaf = layout->leaves.at[i];
        bool own = !leaf.whole_end ||
                   (leaf.whole_begin == f->whole_begin && leaf.whole_end == f->whole_end);
        int64_t from = own ? leaf_begin(&leaf) : leaf.whole_begin,
                to = own ? leaf_end(&leaf) : leaf.whole_end;
        bool apart = to <= begin || from >= end;
        if (!apart && (from < begin || to > end))
            eval_error(f->ev, at,
                       "this initialises a part of what an initialiser in front of it has set; "
                       "write one initialiser for all of it");
        if (apart) layout->leaves.at[kept++] = leaf;
    }
    layout->leaves.count = kept;
}

static void add_leaf(Filler *f, const Member *member, const CExpr *value) {
    Leaf leaf = {.offset = member->offset,
                 .bit = member->bit,
                 .width = member->width,
                 .type = member->type,
                 .value = value};
    leaf.whole_begin = f->whole_begin;
    leaf.whole_end = f->whole_end;
    int64_t begin = leaf_begin(&leaf), end = leaf_end(&leaf);
    replace_bits(f, begin, end, value->at);
    f->sorted &= begin >= f->end;
    f->end = end > f->end ? end : f->end;
    array_push(f->ev->arena, &f->layout->leaves, leaf);
}

/* Records which member of a union is initialized; removes the leaves of an earlier member. */
static void choose(Filler *f, const Level *level, Position at) {
    int64_t bits = level->offset * 8;
    for (int i = 0; i < f->choices->count; i++) {
        Choice *choice = &f->choices->at[i];
        if (choice->type != level->type || choice->offset != level->offset) continue;
        if (choice->member != level->next) replace_bits(f, bits, bits + level->type->size * 8, at);
        choice->member = level->next;
        return;
    }
    array_push(f->ev->scratch, f->choices, (Choice){level->offset, level->type, level->next});
}

/* ---- the walk through members ---- */

/* Returns the next member of the current level; refuses an initializer for which there is none. */
static Member next_member(Filler *f, Position at) {
    const Level *level = &f->level[f->depth];
    if (level->type->kind == CT_ARRAY)
        return (Member){level->type->base, level->offset + level->next * level->type->base->size, 0,
                        0};
    if (level->next >= level->type->fields.count)
        eval_error(f->ev, at, "more initialisers than members");
    const CField *field = &level->type->fields.at[level->next];
    if (level->type->is_union) choose(f, level, at);
    return (Member){field->type, level->offset + field->offset, field->bit, field->width};
}

static void go_past(Level *level) {
    level->next = level->type->is_union ? level->type->fields.count : level->next + 1;
}

/* Opens a level for the next member, and moves the outer level past that member. */
static void enter(Filler *f, Position at) {
    Member member = next_member(f, at);
    if (f->depth + 1 >= MOST_LEVELS) eval_error(f->ev, at, "this initialiser is nested too deeply");
    if (!is_aggregate(member.type))
        eval_error(f->ev, at, "this designator goes into a value of type %s, which has no members",
                   member.type->name);
    go_past(&f->level[f->depth]);
    f->level[++f->depth] = (Level){.type = member.type, .offset = member.offset};
}

/* Makes a field the next member; false: no such field. clang designates anonymous fields, too. */
static bool find_field(Level *level, const void *decl) {
    for (int i = 0; i < level->type->fields.count; i++) {
        level->next = i;
        if (level->type->fields.at[i].decl == decl) return true;
    }
    return false;
}

static int64_t array_index(Filler *f, const CExpr *expr) {
    Val index = eval(f->ev, expr);
    if (index.unknown) eval_error(f->ev, expr->at, "this index is not known at compile time");
    return (int64_t)index.i;
}

/* ---- values and designators ---- */

static const CExpr *unconverted_string(const CType *type, const CExpr *value) {
    bool characters =
        type->kind == CT_ARRAY && ctype_is_integer(type->base) && type->base->size == 1;
    while (characters && value->kind == C_INIT && value->args.count == 1) value = value->args.at[0];
    return characters && value->kind == C_STRING ? value : NULL;
}

static bool takes_whole(const CType *type, const CExpr *value) {
    return !is_aggregate(type) || value->kind == C_INIT || value->type == type ||
           unconverted_string(type, value);
}

static void fill(Filler *f, const CType *type, int64_t offset, const CExpr *list);

/* Returns a scalar's initializer without its braces; NULL for empty braces, which mean zero. */
static const CExpr *without_braces(Filler *f, const CExpr *value) {
    while (value && value->kind == C_INIT) {
        if (value->args.count > 1 || (value->args.count && value->args.at[0]->kind == C_DESIGNATED))
            eval_error(f->ev, value->at, "more initialisers than members");
        value = value->args.count ? value->args.at[0] : NULL;
    }
    return value;
}

static void set_member(Filler *f, const Member *member, const CExpr *value) {
    const CExpr *string = unconverted_string(member->type, value);
    if (string) {
        add_leaf(f, member, string);
    } else if (value->kind == C_INIT && is_aggregate(member->type)) {
        replace_bits(f, member->offset * 8, (member->offset + member->type->size) * 8, value->at);
        fill(f, member->type, member->offset, value);
    } else if (without_braces(f, value)) {
        add_leaf(f, member, without_braces(f, value));
    } else {
        int64_t begin = member->offset * 8 + member->bit;
        replace_bits(f, begin, begin + (member->width ? member->width : member->type->size * 8),
                     value->at);
    }
}

static void fill_positional(Filler *f, const CExpr *value) {
    while (f->depth && f->level[f->depth].next >= member_count(&f->level[f->depth])) f->depth--;
    if (f->level[f->depth].next >= member_count(&f->level[f->depth]))
        eval_error(f->ev, value->at, "more initialisers than members");
    Member member = next_member(f, value->at);
    while (!takes_whole(member.type, value)) {
        enter(f, value->at);
        if (!member_count(&f->level[f->depth]))
            eval_error(f->ev, value->at,
                       "a member without members of its own needs braces in an initialiser that is "
                       "evaluated at compile time");
        member = next_member(f, value->at);
    }
    set_member(f, &member, value);
    go_past(&f->level[f->depth]);
}

/* Assigns a value to the object that designators[at] and those after it name inside the current
 * level. Initialization continues after that object. */
static void designate(Filler *f, const CExpr *expr, int at) {
    // Find the members or elements from level->next to `last`.
    const CDesignator *designator = &expr->designators.at[at];
    Level *level = &f->level[f->depth];
    int64_t last = 0;
    if (designator->field) {
        if (level->type->kind != CT_STRUCT || !find_field(level, designator->decl))
            eval_error(f->ev, expr->at, "%s has no member %s", level->type->name,
                       designator->field);
        last = level->next;
    } else {
        level->next = array_index(f, designator->first);
        last =
            designator->last == designator->first ? level->next : array_index(f, designator->last);
        if (level->type->kind != CT_ARRAY || level->next < 0 || last < level->next ||
            last >= level->type->count)
            eval_error(f->ev, expr->at, "index %lld is outside an array of %lld", (long long)last,
                       (long long)level->type->count);
    }
    // Initialize each of these members by the next designator or, after the last one, by the value.
    int depth = f->depth;
    bool braces = level->next < last && at + 1 == expr->designators.count &&
                  expr->a->kind == C_INIT && is_aggregate(level->type->base);
    for (int64_t next = level->next; next <= last; next++) {
        int64_t size = braces ? level->type->base->size : 0;
        f->whole_begin = braces ? (level->offset + next * size) * 8 : f->whole_begin;
        f->whole_end = braces ? f->whole_begin + size * 8 : f->whole_end;
        f->shared |= next < last;
        f->depth = depth;
        f->level[depth].next = next;
        if (at + 1 < expr->designators.count) {
            enter(f, expr->at);
            designate(f, expr, at + 1);
        } else {
            fill_positional(f, expr->a);
        }
    }
    f->whole_end = braces ? 0 : f->whole_end;
}

/* Adds the leaves of a list for an aggregate at `offset` to the layout. */
static void fill(Filler *outer, const CType *type, int64_t offset, const CExpr *list) {
    Filler f = *outer;
    f.depth = 0;
    f.level[0] = (Level){.type = type, .offset = offset};
    for (int i = 0; i < list->args.count; i++) {
        const CExpr *value = list->args.at[i];
        if (value->kind == C_REFUSED) (void)eval(f.ev, value);
        if (value->kind == C_DESIGNATED) {
            f.depth = 0;
            designate(&f, value, 0);
        } else {
            fill_positional(&f, value);
        }
    }
    outer->end = f.end;
    outer->sorted = f.sorted;
    outer->shared |= f.shared;
}

static int by_place(const void *a, const void *b) {
    int64_t x = leaf_begin(a), y = leaf_begin(b);
    return (x > y) - (x < y);
}

static bool is_zero(const CExpr *expr) {
    while (expr->kind == C_CAST) expr = expr->a;
    return expr->kind == C_INT
               ? !expr->integer
               : expr->kind == C_FLOAT && expr->number == 0 && !signbit(expr->number);
}

/* Returns whether a C compiler clears all bytes of an object, padding too: all values of the
 * object's list are zeros, and some members have no value.
 *
 *     struct { char c; int i; } a = {0};       clears 8 bytes
 *     struct { char c; int i; } b = {0, 0};    stores 1 byte and 4
 */
static bool clears_all(Eval *ev, const CLayout *layout) {
    int64_t given = 0;
    for (int i = 0; i < layout->leaves.count; i++) {
        const Leaf *leaf = &layout->leaves.at[i];
        if (is_aggregate(leaf->type) || !is_zero(leaf->value)) return false;
        given += leaf_end(leaf) - leaf_begin(leaf);
    }
    return given < place_member_bits(ev, layout->type);
}

/* Returns the layout of a list for a value of a type; caches it in the list. */
static const CLayout *layout_of(Eval *ev, const CType *type, const CExpr *list) {
    if (list->layout && list->layout->type == type) return list->layout;
    CLayout *layout = arena_new(ev->arena, CLayout);
    Choices choices = {0};
    layout->type = type;
    Filler f = {.ev = ev, .layout = layout, .sorted = true, .choices = &choices};
    fill(&f, type, 0, list);
    if (!f.sorted)
        qsort(layout->leaves.at, (size_t)layout->leaves.count, sizeof *layout->leaves.at, by_place);
    for (int i = 0; i < layout->leaves.count; i++) {
        Leaf *leaf = &layout->leaves.at[i];
        leaf->first = i;
        for (int k = i; f.shared && k-- > 0;)
            if (layout->leaves.at[k].value == leaf->value) {
                leaf->first = layout->leaves.at[k].first;
                break;
            }
    }
    layout->clears = clears_all(ev, layout);
    ((CExpr *)list)->layout = layout;
    return layout;
}

/* ---- evaluation ---- */

static void init_string(Eval *ev, Place place, const CType *type, const CExpr *string) {
    place_mark(ev, place, type->size, KNOWN);
    memcpy(place.object->bytes + place.offset, string->text.bytes,
           (size_t)(string->text.length < type->size ? string->text.length : type->size));
}

static void set_leaf(Eval *ev, Place place, const Leaf *leaf, Val value) {
    place.offset += leaf->offset;
    if (leaf->width)
        place_store_bits(ev, place, &(CField){.bit = leaf->bit, .width = leaf->width}, value);
    else if (value.unknown) place_mark(ev, place, leaf->type->size, UNKNOWN);
    else if (is_aggregate(leaf->type)) place_assign(ev, place, value.place, leaf->type);
    else place_store(ev, place, value);
}

/* Evaluates a list completely, then stores its values. */
static void init_list(Eval *ev, Place place, const CType *type, const CExpr *list) {
    // Evaluate; a leaf of a range has the value of the range's first leaf.
    const CLayout *layout = layout_of(ev, type, list);
    int base = ev->values_of_lists.count;
    for (int i = 0; i < layout->leaves.count; i++) {
        const Leaf *leaf = &layout->leaves.at[i];
        Val value = {.type = leaf->type};
        if (leaf->first < i) value = ev->values_of_lists.at[base + leaf->first];
        else if (leaf->value->kind != C_STRING || !is_aggregate(leaf->type))
            value = eval(ev, leaf->value);
        if (!is_aggregate(leaf->type)) value = val_convert(ev, value, leaf->type, leaf->value->at);
        array_push(ev->scratch, &ev->values_of_lists, value);
    }
    // Store.
    ev->at = list->at;
    place_clear(ev, place, type->size);
    if (!layout->clears) place_mark_padding(ev, place, type);
    for (int i = 0; i < layout->leaves.count; i++) {
        const Leaf *leaf = &layout->leaves.at[i];
        if (leaf->value->kind == C_STRING && is_aggregate(leaf->type))
            init_string(ev, (Place){place.object, place.offset + leaf->offset}, leaf->type,
                        leaf->value);
        else set_leaf(ev, place, leaf, ev->values_of_lists.at[base + i]);
    }
    ev->values_of_lists.count = base;
}

void eval_init(Eval *ev, Place place, const CType *type, const CExpr *init) {
    const CExpr *string = unconverted_string(type, init);
    if (string) {
        place_clear(ev, place, type->size);
        init_string(ev, place, type, string);
        return;
    }
    if (!is_aggregate(type)) {
        init = without_braces(&(Filler){.ev = ev}, init);
        if (init) place_store(ev, place, val_convert(ev, eval(ev, init), type, init->at));
        else place_clear(ev, place, type->size);
        return;
    }
    if (init->kind == C_INIT) {
        init_list(ev, place, type, init);
        return;
    }
    Val value = val_convert(ev, eval(ev, init), type, init->at);
    if (value.unknown) place_mark(ev, place, type->size, UNKNOWN);
    else if (value.place.object != place.object || value.place.offset != place.offset)
        place_assign(ev, place, value.place, type);
}

/* ---- variables ---- */

static int64_t variable_size(Eval *ev, const CVar *var) {
    if (!var->type->variable) return var->type->size;
    if (!var->type->base->size || !var->length)
        eval_error(
            ev, var->at,
            "arrays of variable length have one dimension in what is evaluated at compile time");
    if (var->init)
        eval_error(ev, var->at,
                   "an array of variable length cannot have an initialiser in what is evaluated at "
                   "compile time");
    Val count = eval(ev, var->length);
    if (count.unknown || (int64_t)count.i < 1 || (int64_t)count.i > INT32_MAX)
        eval_error(ev, var->at,
                   count.unknown ? "the length of %s is not known at compile time"
                                 : "the length of %s is not positive",
                   var->name);
    return (int64_t)count.i * var->type->base->size;
}

static void initialize(Eval *ev, const CVar *var, Place place) {
    eval_init(ev, place, var->type, var->init);
    if (var->type->is_tensor && place_known(place, var->type->size) == KNOWN) {
        CExpr target = {.kind = C_VAR, .var = (CVar *)var};
        value_name(tensor_load(ev, place, var->at), &target);
    }
}

void eval_declared(Eval *ev, const CVar *var) {
    if (!var->local) return;
    if (var->type->kind == CT_OTHER)
        eval_error(ev, var->at, "variables of type %s cannot be evaluated at compile time",
                   var->type->name);
    int64_t size = variable_size(ev, var);
    Place place = {frame_object(ev, var->slot, size, var->name), 0};
    place.object->constant = false;
    place_mark(ev, place, size, UNSET);
    if (var->init) initialize(ev, var, place);
    place.object->constant = var->is_const && var->init;
}

void eval_skipped(Eval *ev, const CVar *var) {
    Object *object =
        var->local && var->slot < ev->frame->slot_count ? ev->frame->slots[var->slot] : NULL;
    if (object) place_mark(ev, (Place){object, 0}, object->size, UNSET);
}

/* Evaluates the initializer of a variable with static storage in a frame of its own. */
static void initialize_static(Eval *ev, const CVar *var, Place place) {
    EvalFrame frame = {.slot_count = var->init_slots, .caller = ev->frame, .called_at = var->at};
    frame.slots = arena_array(ev->scratch, Object *, var->init_slots);
    ev->frame = &frame;
    eval_init(ev, place, var->type, var->init);
    ev->frame = frame.caller;
}

static Object *static_variable(Eval *ev, const CVar *var, Position at) {
    Object **object = &ev->heap.statics[var->slot];
    if (*object) return *object;
    // Refuse a variable that no source defines.
    if (!var->defined && !ev->lenient && var->system) {
        diag_error(ev->diag, operator_position(ev, at),
                   "%s is a variable of the system, which has no value at compile time", var->name);
        diag_note(ev->diag, operator_position(ev, at),
                  "input and output are for main: print there, see with --strategies or --emit=ir "
                  "what the model has, and check it with assert");
        eval_fail(ev);
    }
    if (!var->defined && !ev->lenient) {
        diag_error(ev->diag, operator_position(ev, at),
                   "%s is defined in nothing that hetucc is given, so its value is not known",
                   var->name);
        diag_note(ev->diag, var->at,
                  "it is declared here; give hetucc the file that defines it, too, which must "
                  "include <hetu/hetu.h>, or the object or archive that hetucc -c made of it");
        eval_fail(ev);
    }
    // Create the variable with its initial value; if lenient, unknown if the program changes it.
    *object = object_create(ev, var->type->size, var->name);
    (*object)->born = 0;
    Place place = {*object, 0};
    if (!var->defined) place_mark(ev, place, var->type->size, UNKNOWN);
    else if (ev->lenient && var->access.changes.count && !var->is_const)
        place_mark(ev, place, var->type->size, UNKNOWN);
    else if (var->given) place_store(ev, place, val_int(var->type, var->given_value));
    else if (var->init) initialize_static(ev, var, place);
    if (ev->module && !var->is_const) object_track(ev, *object);
    (*object)->constant = var->is_const;
    return *object;
}

/* Creates a variable of the function that calls ht_train. The variable's initializer gives its
 * value, which is unknown if there is no initializer or the program changes the variable. */
static Object *lenient_variable(Eval *ev, const CVar *var) {
    Object *object = frame_object(ev, var->slot, var->type->size, var->name);
    Place place = {object, 0};
    if (var->init && !var->access.changes.count) eval_init(ev, place, var->type, var->init);
    else place_mark(ev, place, var->type->size, UNKNOWN);
    return object;
}

Object *eval_variable(Eval *ev, const CVar *var, Position at) {
    if (!var->local) return static_variable(ev, var, at);
    EvalFrame *frame = ev->frame;
    if (frame->function && var->function != frame->function)
        BUG("%s does not belong to %s", var->name, frame->function->name);
    if (var->slot < frame->slot_count && frame->slots[var->slot]) return frame->slots[var->slot];
    if (frame->lenient) return lenient_variable(ev, var);
    Object *object = frame_object(ev, var->slot, var->type->size, var->name);
    place_mark(ev, (Place){object, 0}, object->size, UNSET);
    return object;
}
