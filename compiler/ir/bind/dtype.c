/* Finds the element types of operators' tensors, during binding and afterwards. */
#include "ir/bind/bind.h"

void bind_check_remainders(Binder *binder) {
    const BindCall *call = &binder->call;
    uint64_t integers = (UINT64_C(1) << binder->rule->operand_count) - 1;
    for (int i = 0; i < call->tensor_count; i++)
        if (call->tensors[i].given && dtype_is_float((DType)call->tensors[i].dtype))
            integers &= ~(UINT64_C(1) << call->tensors[i].operand);
    const char *why = opdef_remainder(binder->arena, binder->def, integers);
    if (why) ERROR(binder, "%s: %s", binder->def->name, why);
}

static ht_dtype op_argument(const BindCall *call, int index) {
    return (ht_dtype)((const Op *)call->context)->attrs[index].i;
}

/* Returns the element type that the rule gives a tensor of an operator. */
static DType op_element(Arena *arena, const Op *op, Element element) {
    static const BindHost host = {.argument = op_argument};
    BindCall call = {.host = &host,
                     .context = op,
                     .tensor_count = op->operand_count,
                     .tensors = arena_array(arena, BindTensor, op->operand_count + 1)};
    for (int k = 0; k < op->operand_count; k++) {
        int access = op->binding->operands[k].access;
        call.tensors[k] = bind_tensor(&op->def->rule->operands[access], access, 0, op->operands[k]);
    }
    return (DType)bind_element(&call, element);
}

DType op_result_dtype(Arena *arena, const Op *op, int result) {
    return op_element(arena, op,
                      op->def->rule->results[op->binding->results[result].access].element);
}

bool op_operand_dtype(Arena *arena, const Op *op, int operand, DType *dtype) {
    Element element = op->def->rule->operands[op->binding->operands[operand].access].element;
    if (element.kind == ELEMENT_FOLLOWS || element.kind == ELEMENT_INTEGER) return false;
    *dtype = op_element(arena, op, element);
    return true;
}
