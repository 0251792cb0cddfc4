/* Pass precision, mixed precision: chooses the element types of a module that runs in bf16. There
 * is no loss scaling.
 *
 *     hot = cast(one_hot(id), f32)     f32: the model asks for it
 *     seat = cumsum(hot)               f32, because hot is f32
 *     load = product(hot, seat)        f32, because the model asks for both operands
 *     y = product(hot, w)              bf16, because w is a parameter
 *     first = argmax(x)                works on x in f32, because x is an input
 *     z = add(y, x)                    bf16, the type of y; x is converted
 *
 * A parameter itself stays f32, the master copy of mixed precision; its uses are cast. So gradients
 * of parameters are summed and reduced in f32 (gradient_dtype of differentiate/gradient_rule.c).
 *
 * Requires: the forward section with gradient functions, in the element types of the source.
 *
 * Leaves: operators in bf16 or f32 as follows. A conversion (rule_convert) stands where an operator
 * works in another type than its operand has, at most one for each value and type. A module of
 * precision f32 does not change.
 *
 * - A product works in bf16. Any other operator works in the widest type of its operands.
 * - Parameters, inputs and constants (ht_scalar, ht_full) take the type of the other operands.
 * - An operand whose type the rule gives (clause `dtype`) has that type. So statistics, weights of
 *   norms and the loss stay in f32. A kernel without bf16 (clause `types`) works in f32.
 * - f32 that the model asks for, by an argument or by clause `dtype`, stays f32. A product of such
 *   operands alone works in f32.
 * - Inputs, constants and values computed from them alone are f32: positions, ranks and comparisons
 *   have the exact numbers that were fed.
 * - A value that is not f32 in the source keeps its type. */
#include "passes/pass_manager.h"

#define uthash_malloc(size) arena_alloc(lowering->arena, (size))
#define uthash_free(pointer, size) ((void)(pointer))
#include <uthash.h>

/* A value converted to another type. */
typedef struct Copy Copy;
struct Copy {
    Value *value;
    Copy *next;
};

/* The origin of a value's elements, which decides the type that the value gets. */
typedef enum Origin {
    ORIGIN_COMPUTED, // all other values
    ORIGIN_NUMBER,   // constants of the program
    ORIGIN_INPUT,    // inputs, and values computed from these, integers and constants alone
    ORIGIN_PARAM,    // a parameter itself
    ORIGIN_ASKED     // f32 that the model asks for, and values computed from it and constants
} Origin;

typedef struct Known {
    DType source; // element type in the source
    Origin origin;
    Copy *copies; // its conversions to other types
} Known;

/* A gradient function specialized for the element types of one call. */
typedef struct Specialized {
    const char *key; // bytes: address of the generic function, a DType for each argument
    Function *function;
    UT_hash_handle hh;
} Specialized;

typedef struct Lowering {
    Module *module;
    Arena *arena;         // scratch
    Array(Known *) known; // by value id
    Ops *out;             // the list to which operators are appended
    Specialized *functions;
    Text key;
} Lowering;

static Known *known_of(Lowering *lowering, const Value *value) {
    while (lowering->known.count <= value->id) array_push(lowering->arena, &lowering->known, NULL);
    Known **known = &lowering->known.at[value->id];
    if (!*known) {
        *known = arena_new(lowering->arena, Known);
        (*known)->source = value->type.dtype;
    }
    return *known;
}

/* ---- conversions ---- */

static Value *insert_conversion(Lowering *lowering, Value *value, DType dtype, const Op *user) {
    Module *module = lowering->module;
    Op *op =
        ir_op_like(module, &(OpCall){rule_convert(module->arena, dtype), &value, 1, NULL}, user);
    op->results[0]->dims = value->dims;
    op->results[0]->name = value->name;
    array_push(module->arena, lowering->out, op);
    return op->results[0];
}

/* Returns a conversion after clearing its layer if the new user belongs to another layer. */
static Value *shared(Arena *arena, Value *value, const Op *user) {
    if (!layer_same(value->def->source->layer, user->source->layer))
        op_change_source(arena, value->def)->layer = NULL;
    return value;
}

/* Returns the value in another type: an existing conversion, or a new one for `user`. */
static Value *converted(Lowering *lowering, Value *value, DType dtype, const Op *user) {
    Known *known = known_of(lowering, value);
    if (value->type.dtype == dtype) return value;
    for (Copy *copy = known->copies; copy; copy = copy->next)
        if (copy->value->type.dtype == dtype)
            return shared(lowering->module->arena, copy->value, user);
    Copy *copy = arena_new(lowering->arena, Copy);
    *copy = (Copy){.value = insert_conversion(lowering, value, dtype, user), .next = known->copies};
    known->copies = copy;
    return copy->value;
}

/* ---- operators ---- */

/* Returns whether the pass may choose the type of operand k: a float without clause `dtype`. */
static bool is_open(const Op *op, int k) {
    const Access *access = &op->def->rule->operands[op->binding->operands[k].access];
    return op->operands[k] && access->element.kind == ELEMENT_FOLLOWS &&
           dtype_is_float(op->operands[k]->type.dtype);
}

/* Returns whether the operator must work in the types of the source. True if an open operand is not
 * f32 in the source, or the operator's kernel lacks the program's precision. */
static bool keeps_source(Lowering *lowering, const Op *op) {
    const Rule *rule = op->def->rule;
    for (int k = 0; k < op->operand_count; k++)
        if (is_open(op, k) && known_of(lowering, op->operands[k])->source != DTYPE_F32) return true;
    return rule->kind == RULE_CALL && !(rule->call.types >> lowering->module->precision & 1);
}

/* Returns whether a value of this origin takes the type of the other operands. */
static bool is_pliant(Origin origin) { return origin != ORIGIN_COMPUTED && origin != ORIGIN_ASKED; }

/* Returns the origin of a value that is computed from two operands. */
static Origin join_origins(Origin a, Origin b) {
    if (a == b || b == ORIGIN_NUMBER) return a == ORIGIN_PARAM ? ORIGIN_COMPUTED : a;
    if (a == ORIGIN_NUMBER) return join_origins(b, a);
    return ORIGIN_COMPUTED;
}

/* Returns the joint origin of the floating-point operands; ORIGIN_INPUT if there are none. */
static Origin origin_of_operands(Lowering *lowering, const Op *op) {
    Origin origin = ORIGIN_INPUT;
    bool any = false;
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && dtype_is_float(op->operands[k]->type.dtype)) {
            Origin own = known_of(lowering, op->operands[k])->origin;
            origin = any ? join_origins(origin, own) : own == ORIGIN_PARAM ? ORIGIN_COMPUTED : own;
            any = true;
        }
    return origin;
}

/* Returns whether the rule or an argument fixes the types of all results. */
static bool fixes_results(const Op *op) {
    for (int r = 0; r < op->def->rule->result_count; r++) {
        ElementKind kind = op->def->rule->results[r].element.kind;
        if (kind != ELEMENT_FIXED && kind != ELEMENT_ARGUMENT) return false;
    }
    return true;
}

/* Returns the widest of the program's precision and the types of operands that are not pliant. */
static DType widest_type(Lowering *lowering, const Op *op) {
    DType widest = lowering->module->precision;
    for (int k = 0; k < op->operand_count; k++)
        if (is_open(op, k) && !is_pliant(known_of(lowering, op->operands[k])->origin) &&
            dtype_size(op->operands[k]->type.dtype) > dtype_size(widest))
            widest = op->operands[k]->type.dtype;
    return widest;
}

static bool all_pliant(Lowering *lowering, const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (is_open(op, k) && !is_pliant(known_of(lowering, op->operands[k])->origin)) return false;
    return true;
}

/* Returns the type that the operator works in after this pass. */
static DType working_type(Lowering *lowering, const Op *op) {
    Origin origin = origin_of_operands(lowering, op);
    if (op->def->rule->form == RULE_PRODUCT)
        return origin == ORIGIN_ASKED ? DTYPE_F32 : lowering->module->precision;
    bool as_made = is_pliant(origin) || (fixes_results(op) && all_pliant(lowering, op));
    return as_made ? DTYPE_F32 : widest_type(lowering, op);
}

/* Returns whether an operator keeps its operand's values: a view, or a conversion of layouts. */
static bool moves_only(const Lowering *lowering, const Op *op) {
    return op->def->rule->kind == RULE_VIEW || op->def == lowering->module->builtin->reshard;
}

static bool is_conversion(const Op *op) {
    return !op->def->at.file && op->operand_count == 1 && rule_is_copy(op->def->rule);
}

static void convert_operands(Lowering *lowering, Op *op) {
    bool source = op->section == SECTION_UPDATE || keeps_source(lowering, op);
    DType working = working_type(lowering, op), given;
    for (int k = 0; k < op->operand_count; k++)
        if (is_open(op, k))
            op->operands[k] =
                converted(lowering, op->operands[k],
                          source ? known_of(lowering, op->operands[k])->source : working, op);
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op_operand_dtype(lowering->arena, op, k, &given) &&
            dtype_is_float(op->operands[k]->type.dtype))
            op->operands[k] = converted(lowering, op->operands[k], given, op);
}

/* Returns the origin of result `r`. Must be called before the operands are converted. */
static Origin origin_of_result(Lowering *lowering, const Op *op, int r) {
    ElementKind kind = op->def->rule->results[r].element.kind;
    if (moves_only(lowering, op) || is_conversion(op))
        return known_of(lowering, op->operands[0])->origin;
    if (kind == ELEMENT_ARGUMENT && !op->operand_count && !op->results[r]->type.rank)
        return ORIGIN_NUMBER;
    if (kind == ELEMENT_ARGUMENT || kind == ELEMENT_FIXED)
        return op->results[r]->type.dtype == DTYPE_F32 ? ORIGIN_ASKED : ORIGIN_COMPUTED;
    Origin origin = origin_of_operands(lowering, op);
    return op->def->rule->form == RULE_PRODUCT && is_pliant(origin) ? ORIGIN_COMPUTED : origin;
}

static void lower_op(Lowering *lowering, Op *op) {
    for (int r = 0; r < op->result_count; r++)
        known_of(lowering, op->results[r])->origin = origin_of_result(lowering, op, r);
    if (!moves_only(lowering, op)) convert_operands(lowering, op);
    ir_rebind(lowering->module, op);
    array_push(lowering->module->arena, lowering->out, op);
}

/* ---- gradient functions ---- */

/* Clones an argument of a gradient function with another type. */
static Value *clone_argument(Lowering *lowering, const Value *value, DType dtype) {
    Value *clone = ir_value(lowering->module, VALUE_ARGUMENT, value->name, value->type, value->at);
    clone->dims = value->dims;
    clone->index = value->index;
    known_of(lowering, clone);
    clone->type.dtype = dtype;
    return clone;
}

static Op *clone_op(Lowering *lowering, const Op *op, Value *const *mapped) {
    Value **operands = arena_array(lowering->arena, Value *, op->operand_count + 1);
    for (int k = 0; k < op->operand_count; k++)
        operands[k] = op->operands[k] ? mapped[op->operands[k]->id] : NULL;
    return ir_clone(lowering->module, op, operands);
}

/* Returns the value of `op` that argument `i` of its gradient function corresponds to: first
 * gradients of results, then results, then operands. */
static const Value *argument_of(const Op *op, int i) {
    int results = op->result_count;
    return i < 2 * results ? op->results[i % results] : op->operands[i - 2 * results];
}

static Function *specialize(Lowering *lowering, const Op *op) {
    const Function *function = op->gradient;
    Arena *arena = lowering->module->arena;
    Function *clone = arena_new(arena, Function);
    Value **mapped = arena_array(lowering->arena, Value *, lowering->module->next_id);
    Ops ops = {0}, *outside = lowering->out;
    clone->name = function->name;
    for (int i = 0; i < function->params.count; i++) {
        const Value *param = function->params.at[i];
        Value *own = param ? clone_argument(lowering, param, argument_of(op, i)->type.dtype) : NULL;
        if (param) mapped[param->id] = own;
        array_push(arena, &clone->params, own);
    }
    lowering->out = &ops;
    for (int i = 0; i < function->ops.count; i++) {
        Op *own = clone_op(lowering, function->ops.at[i], mapped);
        for (int r = 0; r < own->result_count; r++)
            mapped[function->ops.at[i]->results[r]->id] = own->results[r];
        lower_op(lowering, own);
    }
    lowering->out = outside;
    clone->ops.at = ops.at;
    clone->ops.count = clone->ops.capacity = ops.count;
    for (int i = 0; i < function->returns.count; i++)
        array_push(arena, &clone->returns,
                   function->returns.at[i] ? mapped[function->returns.at[i]->id] : NULL);
    return clone;
}

/* Writes the key of a gradient function with the types of the call. Returns whether these are the
 * types that the function already has. */
static bool write_key(Text *key, const Op *op) {
    const Function *function = op->gradient;
    bool same = true;
    key->length = 0;
    text_append(key, (const char *)&function, sizeof function);
    for (int i = 0; i < function->params.count; i++) {
        const Value *param = function->params.at[i];
        DType dtype = param ? argument_of(op, i)->type.dtype : DTYPE_F32;
        same &= !param || param->type.dtype == dtype;
        text_append(key, (const char *)&dtype, sizeof dtype);
    }
    return same;
}

/* Returns op->gradient for the present types of the operands and results. Equal calls share it. */
static const Function *gradient_for(Lowering *lowering, const Op *op) {
    Specialized *entry;
    bool same = write_key(&lowering->key, op);
    HASH_FIND(hh, lowering->functions, lowering->key.bytes, lowering->key.length, entry);
    if (entry) return entry->function;
    entry = arena_new(lowering->arena, Specialized);
    entry->key = arena_copy(lowering->arena, lowering->key.bytes, lowering->key.length);
    size_t length = lowering->key.length;
    entry->function = same ? (Function *)op->gradient : specialize(lowering, op);
    HASH_ADD_KEYPTR(hh, lowering->functions, entry->key, length, entry);
    array_push(lowering->module->arena, &lowering->module->library->gradients, entry->function);
    return entry->function;
}

/* ---- the pass ---- */

/* Returns an output of the module, converted back to its type in the source. */
static Value *given_back(Lowering *lowering, Value *value) {
    Op end = op_place_at(value->at);
    return converted(lowering, value, known_of(lowering, value)->source,
                     value->kind == VALUE_RESULT ? value->def : &end);
}

static void lower(Lowering *lowering) {
    Module *module = lowering->module;
    Ops forward = {0};
    lowering->out = &forward;
    module->library->gradients.count = 0;
    // 1: origins of parameters and inputs
    for (int i = 0; i < module->params.count; i++)
        known_of(lowering, module->params.at[i]->value)->origin = ORIGIN_PARAM;
    for (int i = 0; i < module->inputs.count; i++)
        known_of(lowering, module->inputs.at[i])->origin = ORIGIN_INPUT;
    // 2: types of operators in order, and of their gradient functions
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        lower_op(lowering, op);
        if (op->gradient) op->gradient = gradient_for(lowering, op);
    }
    // 3: outputs have the types of the source
    if (module->loss) module->loss = given_back(lowering, module->loss);
    for (int i = 0; i < module->outputs.count; i++)
        module->outputs.at[i].value = given_back(lowering, module->outputs.at[i].value);
    module->ops.at = forward.at;
    module->ops.count = module->ops.capacity = forward.count;
    ir_number(module);
}

void pass_precision(Module *module, const PassContext *context) {
    (void)context;
    if (module->precision == DTYPE_F32) return;
    Lowering lowering = {.module = module, .arena = arena_create()};
    lowering.key.arena = lowering.arena;
    lower(&lowering);
    arena_destroy(lowering.arena);
}
