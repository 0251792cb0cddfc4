/* Evaluates hetu.h's functions for parameters, states, inputs, outputs, scopes and shapes. */
#include "frontend/eval/eval.h"

#include "ir/module.h"

#include <math.h>
#include <string.h>
#include <uthash.h>
#include <ctype.h>

struct Names {
    const char *key; // "p:", "i:" or "o:" and the name
    Parameter *param;
    Value *value;
    Position at;
    UT_hash_handle hh;
};

static Names *find_name(Eval *ev, const char *key) {
    Names *found;
    HASH_FIND_STR(ev->build.names, key, found);
    return found;
}

static Names *add_name(Eval *ev, const char *key, Position at) {
    Names *entry = arena_new(ev->scratch, Names);
    entry->key = arena_string(ev->scratch, key);
    entry->at = at;
    HASH_ADD_KEYPTR(hh, ev->build.names, entry->key, strlen(entry->key), entry);
    return entry;
}

/* ---- arguments ---- */

static void need_module(Eval *ev, const Call *call) {
    if (!ev->module)
        eval_error(ev, call->at, "%s can be called in a model function only", call->function->name);
    if (ev->build.gradient)
        eval_error(ev, call->at, "%s cannot be called in a gradient", call->function->name);
}

static Val tensor_value(Eval *ev, const Call *call, Value *value) {
    Place place = {call_result(ev, call), 0};
    tensor_store(ev, place, value);
    return (Val){.type = call->function->result, .place = place};
}

static Val member(Eval *ev, const Call *call, int arg, const char *name) {
    const CType *type;
    Place place = place_member(call->args[arg].place, call->args[arg].type, name, &type);
    Val value = place_load(ev, place, type, call->at);
    if (value.unknown)
        eval_error(ev, call->at, "argument %d of %s is not known at compile time", arg + 1,
                   call->function->name);
    return value;
}

static Value *tensor_argument(Eval *ev, const Call *call, int arg) {
    Value *value = tensor_load(ev, call->args[arg].place, call->at);
    if (!value)
        eval_error(ev, call->at, "%s is called with an absent tensor", call->function->name);
    return value;
}

static Type shape_argument(Eval *ev, const Call *call, int arg, DType dtype) {
    Val extents = member(ev, call, arg, "extent");
    int64_t rank = (int64_t)member(ev, call, arg, "rank").i, total = 1;
    if (rank < 0 || rank > IR_MAX_RANK)
        eval_error(ev, call->at, "a shape of %lld dimensions; at most %d are allowed",
                   (long long)rank, IR_MAX_RANK);
    int64_t *extent = arena_array(ev->arena, int64_t, rank);
    for (int d = 0; d < (int)rank; d++) {
        Place place = {extents.place.object, extents.place.offset + d * 8};
        Val value = place_load(ev, place, ev->unit->types.tlong, call->at);
        if (value.unknown)
            eval_error(ev, call->at, "dimension %d of this shape is not known at compile time", d);
        extent[d] = (int64_t)value.i;
        if (extent[d] < 0)
            eval_error(ev, call->at, "dimension %d of this shape is %lld; extents are not negative",
                       d, (long long)extent[d]);
        if (__builtin_mul_overflow(total, extent[d], &total) || total > IR_MAX_ELEMENTS)
            eval_error(ev, call->at, "this shape has too many elements");
    }
    return (Type){.dtype = dtype, .rank = (int)rank, .extent = extent};
}

/* Checks that a name is not empty and has only printable characters, but no blank, double quote or
 * backslash. Messages call the owner of the name `what`: "a parameter". */
static void check_name(Eval *ev, const Call *call, const char *name, const char *what) {
    if (!*name) eval_error(ev, call->at, "the name of %s is empty", what);
    for (const char *at = name; *at; at++)
        if (!isgraph((unsigned char)*at) || *at == '"' || *at == '\\')
            eval_error(
                ev, call->at,
                "the name of %s, \"%s\", has a character other than letters, digits and marks",
                what, name);
}

static const char *name_argument(Eval *ev, const Call *call, uint64_t pointer, const char *what) {
    const char *name = pointer ? pointer_string(ev, pointer, call->at) : "";
    check_name(ev, call, name, what);
    return arena_string(ev->arena, name);
}

/* ---- parameters ---- */

static bool same_parameter(const Parameter *a, const Parameter *b) {
    return type_equal(a->value->type, b->value->type) && a->init == b->init && a->a == b->a &&
           a->no_decay == b->no_decay && a->frozen == b->frozen && a->state == b->state;
}

static void read_init(Eval *ev, const Call *call, Parameter *param) {
    param->init = (InitKind)member(ev, call, 1, "kind").i;
    param->a = member(ev, call, 1, "a").f;
    if (param->init > INIT_UNIFORM)
        eval_error(
            ev, call->at,
            "an initialisation is one of ht_zeros, ht_ones, ht_constant, ht_normal and ht_uniform");
    if (!isfinite(param->a) || (param->a < 0 && param->init >= INIT_NORMAL))
        eval_error(ev, call->at, "%g is no deviation or bound of an initialisation", param->a);
}

/* Reads a parameter's initialization, and its name, which gets the open scopes as a prefix. */
static void read_parameter(Eval *ev, const Call *call, uint64_t pointer, const char *what,
                           Parameter *param) {
    const char *name = name_argument(ev, call, pointer, what);
    param->name = *ev->build.scope ? arena_format(ev->arena, "%s.%s", ev->build.scope, name) : name;
    read_init(ev, call, param);
}

/* Reads a shape; returns the existing parameter of this name, or adds `param` to the module. */
static Val named_parameter(Eval *ev, const Call *call, Parameter *param) {
    Position at = operator_position(ev, call->at);
    Type type = shape_argument(ev, call, 0, DTYPE_F32);
    param->value = &(Value){.type = type};
    param->shape = type_shape_text(ev->arena, type);
    const char *key = arena_format(ev->scratch, "p:%s", param->name);
    Names *known = find_name(ev, key);
    if (known && !same_parameter(known->param, param)) {
        diag_error(ev->diag, at,
                   "the %s \"%s\" was made before with another shape, initialisation or attribute",
                   param->state ? "state" : "parameter", param->name);
        diag_note(ev->diag, known->at, "it was made here");
        eval_fail(ev);
    }
    if (known) return tensor_value(ev, call, known->param->value);
    param->value = ir_value(ev->module, VALUE_PARAM, param->name, type, at);
    param->value->index = ev->module->params.count;
    array_push(ev->arena, &ev->module->params, param);
    add_name(ev, key, at)->param = param;
    if (ev->build.updated && type_equal(type, ev->build.updated->value->type))
        param->value->dims = ev->build.updated->value->dims;
    return tensor_value(ev, call, param->value);
}

/* Turns a parameter into the state that holds the parameter's average. */
static void take_average(Eval *ev, Parameter *param) {
    param->name = arena_format(ev->arena, "%s.average", param->name);
    param->init = INIT_ZEROS;
    param->a = 0;
    param->no_decay = false;
    param->state = param->frozen = true;
}

static Val parameter(Eval *ev, const Call *call) {
    need_module(ev, call);
    if (ev->build.updated)
        eval_error(
            ev, call->at,
            "a rule of an optimizer makes no parameters; what it keeps is a state: ht_state");
    Parameter *param = arena_new(ev->arena, Parameter);
    read_parameter(ev, call, member(ev, call, 2, "name").i, "a parameter", param);
    param->no_decay = member(ev, call, 2, "no_decay").i;
    param->frozen = member(ev, call, 2, "frozen").i;
    if (ev->module->optimizer->averaged && !param->frozen) take_average(ev, param);
    return named_parameter(ev, call, param);
}

/* ---- states ---- */

static Val state(Eval *ev, const Call *call) {
    need_module(ev, call);
    Parameter *param = arena_new(ev->arena, Parameter);
    read_parameter(ev, call, call_argument(ev, call, 2).i, "a state", param);
    param->state = param->frozen = true;
    param->kept = ev->build.updated != NULL;
    return named_parameter(ev, call, param);
}

/* Returns the state that a value is; reports a value that is none, and a second assignment. */
static Parameter *state_argument(Eval *ev, const Call *call, const Value *value) {
    Position at = operator_position(ev, call->at);
    Parameter *param = value->kind == VALUE_PARAM ? ev->module->params.at[value->index] : NULL;
    if (param && param->state && !param->updated) return param;
    if (param && param->state) {
        diag_error(ev->diag, at, "the state \"%s\" is assigned twice", param->name);
        diag_note(ev->diag, param->updated->at, "it is assigned here, too");
    } else {
        diag_error(ev->diag, at, "ht_assign assigns states, and this is none: ht_state makes one");
        diag_note(ev->diag, value->at, "the tensor is made here");
    }
    eval_fail(ev);
}

/* Assigns a state by an op of the update section, so that other ops read the old value. */
static Val assign(Eval *ev, const Call *call) {
    need_module(ev, call);
    Position at = operator_position(ev, call->at);
    Parameter *param = state_argument(ev, call, tensor_argument(ev, call, 0));
    Value *value = tensor_argument(ev, call, 1);
    if (!type_equal(value->type, param->value->type)) {
        diag_error(ev->diag, at,
                   "the state \"%s\" is f32 of shape %s, and is assigned %s of shape %s",
                   param->name, param->shape, dtype_name(value->type.dtype),
                   type_shape_text(ev->arena, value->type));
        diag_note(ev->diag, param->value->at, "the state is made here");
        eval_fail(ev);
    }
    param->updated = update_to(ev, value, at);
    return (Val){.type = call->function->result};
}

/* ---- inputs and outputs ---- */

static Val input(Eval *ev, const Call *call) {
    need_module(ev, call);
    Position at = operator_position(ev, call->at);
    const char *name = name_argument(ev, call, call_argument(ev, call, 0).i, "an input");
    uint64_t dtype = call_argument(ev, call, 1).i;
    if (dtype >= DTYPE_COUNT) eval_error(ev, call->at, "%lld is no ht_dtype", (long long)dtype);
    Type type = shape_argument(ev, call, 2, (DType)dtype);
    const char *key = arena_format(ev->scratch, "i:%s", name);
    Names *known = find_name(ev, key);
    if (known && !type_equal(known->value->type, type)) {
        diag_error(ev->diag, at, "the input \"%s\" was made before with another shape or type",
                   name);
        diag_note(ev->diag, known->at, "it was made here");
        eval_fail(ev);
    }
    if (known) return tensor_value(ev, call, known->value);
    if (ev->module->inputs.count >= IR_MAX_INPUTS)
        eval_error(ev, call->at,
                   "a model has at most %d inputs; put several of one type into one, which "
                   "ht_slice takes apart",
                   IR_MAX_INPUTS);
    Value *value = ir_value(ev->module, VALUE_INPUT, name, type, at);
    value->index = ev->module->inputs.count;
    array_push(ev->arena, &ev->module->inputs, value);
    add_name(ev, key, at)->value = value;
    return tensor_value(ev, call, value);
}

static Val output(Eval *ev, const Call *call) {
    need_module(ev, call);
    Position at = operator_position(ev, call->at);
    Value *value = tensor_argument(ev, call, 0);
    const char *given = name_argument(ev, call, call_argument(ev, call, 1).i, "an output");
    const char *name =
        *ev->build.scope ? arena_format(ev->arena, "%s.%s", ev->build.scope, given) : given;
    const char *key = arena_format(ev->scratch, "o:%s", name);
    Names *known = find_name(ev, key);
    if (known) {
        diag_error(ev->diag, at, "there are two outputs \"%s\"", name);
        diag_note(ev->diag, known->at, "the other one is here");
        eval_fail(ev);
    }
    add_name(ev, key, at);
    array_push(ev->arena, &ev->module->outputs, (Output){.name = name, .value = value});
    return tensor_value(ev, call, value);
}

/* ---- scopes ---- */

/* Bytes that the names of all open scopes must fit into, as in the one-device library. */
enum { MOST_SCOPE = 512 };

static Val scope_enter(Eval *ev, const Call *call) {
    need_module(ev, call);
    const char *name = text_bytes(format_values(ev, call, 0, 0, 0));
    Place place = {call_result(ev, call), 0};
    CField length;
    check_name(ev, call, name, "a scope");
    if (strlen(ev->build.scope) + strlen(name) + 1 >= MOST_SCOPE)
        eval_error(ev, call->at, "the scopes' names are longer than %d characters", MOST_SCOPE);
    if (ctype_field(call->function->result, "length", &length))
        place_store(ev, (Place){place.object, length.offset},
                    val_int(length.type, (int64_t)strlen(ev->build.scope)));
    ev->build.scope = *ev->build.scope ? arena_format(ev->scratch, "%s.%s", ev->build.scope, name)
                                       : arena_string(ev->scratch, name);
    return (Val){.type = call->function->result, .place = place};
}

static Val scope_leave(Eval *ev, const Call *call) {
    const CType *type = call->args[0].type->base;
    Place mark = pointer_place(ev, call_argument(ev, call, 0).i, type->size, call->at);
    size_t length = (size_t)place_load(ev, mark, ev->unit->types.tulong, call->at).i;
    if (length < strlen(ev->build.scope))
        ev->build.scope = arena_substring(ev->scratch, ev->build.scope, length);
    return (Val){.type = call->function->result};
}

static Val stream(Eval *ev, const Call *call) {
    return val_int(call->function->result, ev->build.stream++);
}

/* ---- shapes ---- */

static Val extent(Eval *ev, const Call *call) {
    const Value *value = tensor_argument(ev, call, 0);
    int64_t given = (int64_t)call_argument(ev, call, 1).i,
            d = given < 0 ? given + value->type.rank : given;
    if (d < 0 || d >= value->type.rank)
        eval_error(ev, call->at, "ht_extent: a tensor of shape %s has no dimension %lld",
                   type_shape_text(ev->arena, value->type), (long long)given);
    return val_int(call->function->result, value->type.extent[d]);
}

static Val rank(Eval *ev, const Call *call) {
    return val_int(call->function->result, tensor_argument(ev, call, 0)->type.rank);
}

static Val dims_of(Eval *ev, const Call *call) {
    const Value *value = tensor_argument(ev, call, 0);
    const CType *type = call->function->result;
    Place place = {call_result(ev, call), 0};
    CField count, extents;
    if (!ctype_field(type, "rank", &count) || !ctype_field(type, "extent", &extents))
        BUG("%s is no shape", type->name);
    place_clear(ev, place, type->size);
    place_store(ev, (Place){place.object, count.offset}, val_int(count.type, value->type.rank));
    if (value->type.rank)
        memcpy(place.object->bytes + extents.offset, value->type.extent,
               sizeof(int64_t) * (size_t)value->type.rank);
    return (Val){.type = type, .place = place};
}

static Val dtype_of(Eval *ev, const Call *call) {
    return val_int(call->function->result, tensor_argument(ev, call, 0)->type.dtype);
}

static Val present(Eval *ev, const Call *call) {
    return val_int(call->function->result, tensor_load(ev, call->args[0].place, call->at) != NULL);
}

const Builtin tensor_builtins[] = {
    {"ht_parameter", 3, parameter},     {"ht_input", 3, input},
    {"ht_output", 2, output},           {"ht_scope_enter", 1, scope_enter},
    {"ht_scope_leave", 1, scope_leave}, {"ht_stream", 0, stream},
    {"ht_extent", 2, extent},           {"ht_rank", 1, rank},
    {"ht_dims_of", 1, dims_of},         {"ht_dtype_of", 1, dtype_of},
    {"ht_present", 1, present},         {"ht_state", 3, state},
    {"ht_assign", 2, assign},           {NULL, 0, NULL},
};
