/* Element types in a binding: those that the rule allows for operands, and those of the results.
 *
 *     y[i] = x[i] + b[i]                     x and b must have one type; y has it, too
 *     y[i] = x[i] == b[i] dtype(y: i32)      y is i32
 *     ... dtype(position: integer)           position must be i32 or i64
 *     ... types(f32, bf16)                   the kernel works in these types only
 */
#include "ir/bind/bind.h"

/* The tensors of a call, and the rule's operand of each. */
typedef struct Typing {
    const Rule *rule;
    const Attr *attrs;
    Value *const *operands;
    const int *access; // by operand of the call: index of the rule's operand
    int count;
} Typing;

static const Access *access_of(const Typing *typing, int operand) {
    return &typing->rule->operands[typing->access[operand]];
}

/* Returns whether the rule leaves the type of an operand open. */
static bool is_open(const Typing *typing, int operand) {
    return typing->operands[operand] && access_of(typing, operand)->element.kind == ELEMENT_FOLLOWS;
}

/* Returns the operand that has the working type: the first floating-point one whose type the rule
 * leaves open, else the first that is present; -1: none. */
static int working_operand(const Typing *typing) {
    for (int i = 0; i < typing->count; i++)
        if (is_open(typing, i) && dtype_is_float(typing->operands[i]->type.dtype)) return i;
    for (int i = 0; i < typing->count; i++)
        if (typing->operands[i]) return i;
    return -1;
}

static DType operand_dtype(const Typing *typing, int operand) {
    return operand < 0 ? DTYPE_F32 : typing->operands[operand]->type.dtype;
}

static DType element_dtype(const Typing *typing, const Element *element) {
    switch (element->kind) {
    case ELEMENT_FIXED: return (DType)element->index;
    case ELEMENT_ARGUMENT: return (DType)typing->attrs[element->index].i;
    case ELEMENT_WIDE: return dtype_wide(operand_dtype(typing, working_operand(typing)));
    default: break;
    }
    for (int i = 0; i < typing->count; i++)
        if (typing->operands[i] &&
            (element->kind == ELEMENT_FOLLOWS || typing->access[i] == element->index))
            return operand_dtype(typing, i);
    return DTYPE_F32;
}

/* ---- while binding ---- */

static Typing binder_typing(const Binder *binder) {
    return (Typing){binder->rule, binder->attrs, binder->operands, binder->access,
                    binder->operand_count};
}

DType bind_result_dtype(const Binder *binder, const Access *result) {
    Typing typing = binder_typing(binder);
    return element_dtype(&typing, &result->element);
}

static void check_integer(Binder *binder, const Typing *typing, int operand) {
    DType is = operand_dtype(typing, operand);
    if (!dtype_is_float(is)) return;
    ERROR(binder, "%s: the element type of %s is %s, but must be i32 or i64 here",
          binder->def->name, access_of(typing, operand)->name, dtype_name(is));
    bind_note_value(binder, operand);
}

/* Reports operands whose type is not the one that the rule gives. */
static void check_given(Binder *binder, const Typing *typing) {
    for (int i = 0; i < typing->count && !binder->failed; i++) {
        const Access *access = access_of(typing, i);
        if (!typing->operands[i] || access->element.kind == ELEMENT_FOLLOWS) continue;
        if (access->element.kind == ELEMENT_INTEGER) {
            check_integer(binder, typing, i);
            continue;
        }
        DType wanted = element_dtype(typing, &access->element), is = operand_dtype(typing, i);
        if (is == wanted) continue;
        ERROR(
            binder,
            "%s: the element type of %s is %s, but must be %s here; convert it first with ht_cast",
            binder->def->name, access->name, dtype_name(is), dtype_name(wanted));
        bind_note_value(binder, i);
    }
}

/* Reports operands of types that the kernel has no code for. */
static void check_kernel(Binder *binder, const Typing *typing) {
    for (int i = 0; typing->rule->call.types && i < typing->count && !binder->failed; i++)
        if (is_open(typing, i) && !(typing->rule->call.types >> operand_dtype(typing, i) & 1)) {
            ERROR(binder,
                  "%s: the kernel does not work in %s, the element type of %s; convert it first "
                  "with ht_cast",
                  binder->def->name, dtype_name(operand_dtype(typing, i)),
                  access_of(typing, i)->name);
            bind_note_value(binder, i);
        }
}

/* Reports operands of different types whose types the rule leaves open. */
static void check_open(Binder *binder, const Typing *typing) {
    int first = -1;
    if (!rule_of_one_type(typing->rule)) return;
    for (int i = 0; i < typing->count && !binder->failed; i++) {
        first = first < 0 && is_open(typing, i) ? i : first;
        if (!is_open(typing, i) || operand_dtype(typing, first) == operand_dtype(typing, i))
            continue;
        ERROR(binder,
              "%s: the element types of %s (%s) and %s (%s) differ; convert one of them first with "
              "ht_cast",
              binder->def->name, access_of(typing, first)->name,
              dtype_name(operand_dtype(typing, first)), access_of(typing, i)->name,
              dtype_name(operand_dtype(typing, i)));
        bind_note_value(binder, first);
        bind_note_value(binder, i);
    }
}

/* Reports an expression that would need floating point for a result of integers. */
static void check_integral(Binder *binder, const Typing *typing) {
    const Access *result = &typing->rule->results[0];
    int working = working_operand(typing);
    if (opdef_is_integral(binder->def) || working < 0 || result->element.kind == ELEMENT_FIXED ||
        result->element.kind == ELEMENT_ARGUMENT ||
        dtype_is_float(element_dtype(typing, &result->element)))
        return;
    const char *name = access_of(typing, working)->name;
    ERROR(binder,
          "%s: %s is of type %s, and would make the result integers, which hold no fractions; "
          "convert it first: ht_cast(%s, HT_F32)",
          binder->def->name, name, dtype_name(operand_dtype(typing, working)), name);
    bind_note_value(binder, working);
}

/* Reports remainders of floating-point operands: as in C, `%` takes integers. */
static void check_remainders(Binder *binder, const Typing *typing) {
    uint64_t integers = (UINT64_C(1) << typing->rule->operand_count) - 1;
    for (int i = 0; i < typing->count; i++)
        if (typing->operands[i] && dtype_is_float(operand_dtype(typing, i)))
            integers &= ~(UINT64_C(1) << typing->access[i]);
    const char *why = opdef_remainder(binder->arena, binder->def, integers);
    if (why) ERROR(binder, "%s: %s", binder->def->name, why);
}

/* Skips check_open and check_integral for operators that the compiler inserts (without a file). */
bool bind_check_dtypes(Binder *binder) {
    Typing typing = binder_typing(binder);
    check_remainders(binder, &typing);
    check_given(binder, &typing);
    check_kernel(binder, &typing);
    if (binder->def->at.file) {
        check_open(binder, &typing);
        check_integral(binder, &typing);
    }
    return !binder->failed;
}

/* ---- after binding ---- */

static Typing op_typing(Arena *arena, const Op *op) {
    int *access = arena_array(arena, int, op->operand_count + 1);
    for (int k = 0; k < op->operand_count; k++) access[k] = op->binding->operands[k].access;
    return (Typing){op->def->rule, op->attrs, op->operands, access, op->operand_count};
}

DType op_result_dtype(Arena *arena, const Op *op, int result) {
    Typing typing = op_typing(arena, op);
    const Access *access = &op->def->rule->results[op->binding->results[result].access];
    return element_dtype(&typing, &access->element);
}

bool op_operand_dtype(Arena *arena, const Op *op, int operand, DType *dtype) {
    Typing typing = op_typing(arena, op);
    const Access *access = access_of(&typing, operand);
    if (access->element.kind == ELEMENT_FOLLOWS || access->element.kind == ELEMENT_INTEGER)
        return false;
    *dtype = element_dtype(&typing, &access->element);
    return true;
}
