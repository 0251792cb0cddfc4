/* Element types: which the rule asks of operands, and which its results have. */
#include "ir/bind.h"

/* A call's tensors, each with its operand of the rule. */
typedef struct Typing {
    const Rule *rule;
    const Attr *attrs;
    Value *const *operands;
    const int *access; // by operand of the call: the rule's
    int count;
} Typing;

static const Access *access_of(const Typing *typing, int operand) { return &typing->rule->operands[typing->access[operand]]; }

static bool is_open(const Typing *typing, int operand)
{
    return typing->operands[operand] && access_of(typing, operand)->element.kind == ELEMENT_FOLLOWS &&
           dtype_is_float(typing->operands[operand]->type.dtype);
}

/* The operand whose type the call works in: the first floating-point one whose type the rule leaves open, else the first that is present;
 * -1 when there is none. */
static int working_operand(const Typing *typing)
{
    for (int i = 0; i < typing->count; i++)
        if (is_open(typing, i))
            return i;
    for (int i = 0; i < typing->count; i++)
        if (typing->operands[i])
            return i;
    return -1;
}

static DType operand_dtype(const Typing *typing, int operand) { return operand < 0 ? DTYPE_F32 : typing->operands[operand]->type.dtype; }

static DType element_dtype(const Typing *typing, const Element *element)
{
    switch (element->kind) {
    case ELEMENT_FIXED: return (DType)element->index;
    case ELEMENT_ARGUMENT: return (DType)typing->attrs[element->index].i;
    case ELEMENT_WIDE: return dtype_wide(operand_dtype(typing, working_operand(typing)));
    default: break;
    }
    for (int i = 0; i < typing->count; i++)
        if (typing->operands[i] && (element->kind == ELEMENT_FOLLOWS || typing->access[i] == element->index))
            return operand_dtype(typing, i);
    return DTYPE_F32;
}

/* ---- while binding ---- */

static Typing binder_typing(const Binder *binder)
{
    return (Typing){binder->rule, binder->attrs, binder->operands, binder->access, binder->operand_count};
}

DType bind_result_dtype(const Binder *binder, const Access *result)
{
    Typing typing = binder_typing(binder);
    return element_dtype(&typing, &result->element);
}

/* Operands whose type the rule gives have it. */
static void check_given(Binder *binder, const Typing *typing)
{
    for (int i = 0; i < typing->count && !binder->failed; i++) {
        const Access *access = access_of(typing, i);
        if (!typing->operands[i] || access->element.kind == ELEMENT_FOLLOWS)
            continue;
        DType wanted = element_dtype(typing, &access->element), is = operand_dtype(typing, i);
        if (is == wanted)
            continue;
        ERROR(binder, "%s: the element type of %s is %s, but must be %s here; convert it first", binder->def->name, access->name,
              dtype_name(is), dtype_name(wanted));
        bind_note_value(binder, i);
    }
}

/* A kernel gets types that it works in. */
static void check_kernel(Binder *binder, const Typing *typing)
{
    for (int i = 0; typing->rule->types && i < typing->count && !binder->failed; i++)
        if (is_open(typing, i) && !(typing->rule->types >> operand_dtype(typing, i) & 1)) {
            ERROR(binder, "%s: the kernel does not work in %s, the element type of %s; convert it first", binder->def->name,
                  dtype_name(operand_dtype(typing, i)), access_of(typing, i)->name);
            bind_note_value(binder, i);
        }
}

/* Floating-point operands whose type the rule leaves open have one type in a body, unless the rule says what the result's is, and for a
 * kernel that says in which types it works. */
static void check_open(Binder *binder, const Typing *typing)
{
    const Rule *rule = typing->rule;
    int first = working_operand(typing);
    if (rule->kind == RULE_BODY ? rule->results[0].element.kind != ELEMENT_FOLLOWS : !rule->types)
        return;
    for (int i = first + 1; i < typing->count && !binder->failed; i++) {
        if (!is_open(typing, i) || !is_open(typing, first) || operand_dtype(typing, first) == operand_dtype(typing, i))
            continue;
        ERROR(binder, "%s: the element types of %s (%s) and %s (%s) differ; convert one of them first", binder->def->name,
              access_of(typing, first)->name, dtype_name(operand_dtype(typing, first)), access_of(typing, i)->name,
              dtype_name(operand_dtype(typing, i)));
        bind_note_value(binder, first);
        bind_note_value(binder, i);
    }
}

bool bind_check_dtypes(Binder *binder)
{
    Typing typing = binder_typing(binder);
    check_given(binder, &typing);
    check_kernel(binder, &typing);
    check_open(binder, &typing);
    return !binder->failed;
}

/* ---- of operators ---- */

static Typing op_typing(Arena *arena, const Op *op)
{
    int *access = arena_array(arena, int, op->operand_count + 1);
    for (int k = 0; k < op->operand_count; k++)
        access[k] = op->binding->operands[k].access;
    return (Typing){op->def->rule, op->attrs, op->operands, access, op->operand_count};
}

DType op_result_dtype(Arena *arena, const Op *op, int result)
{
    Typing typing = op_typing(arena, op);
    const Access *access = &op->def->rule->results[op->binding->results[result].access];
    return element_dtype(&typing, &access->element);
}

bool op_operand_dtype(Arena *arena, const Op *op, int operand, DType *dtype)
{
    Typing typing = op_typing(arena, op);
    const Access *access = access_of(&typing, operand);
    if (access->element.kind == ELEMENT_FOLLOWS)
        return false;
    *dtype = element_dtype(&typing, &access->element);
    return true;
}
