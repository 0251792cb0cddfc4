/* Moves casts of parameters to the front, together, so that one kernel launch can do them all.
 *
 *     before    c1 = to_bf16(w1); y = linear(x, c1); c2 = to_bf16(w2); z = linear(y, c2)
 *     after     c1 = to_bf16(w1); c2 = to_bf16(w2); y = linear(x, c1); z = linear(y, c2)
 */
#include "passes/fuse/fuse.h"

enum { SMALL = 1 << 16 }; // bytes of a value that may exist earlier than needed

/* Returns whether a value is kept for the backward section anyway, or is small. */
static bool may_be_early(const Fuse *fuse, const Value *value) {
    const Users *users = &fuse->users[value->id];
    bool early = type_elements(value->type) * dtype_size(value->type.dtype) <= SMALL;
    for (int i = 0; i < users->count; i++)
        early = early || users->at[i]->section == SECTION_BACKWARD;
    return early;
}

static bool goes_front(const Fuse *fuse, const Op *op) {
    return fuse->module->kind == MODULE_TRAIN && rule_is_copy(op->def->rule) &&
           op->def != fuse->module->builtin->reshard && op->operands[0]->kind == VALUE_PARAM &&
           op->section == SECTION_FORWARD && !op->source->recomputes &&
           op->operands[0]->type.dtype != op->results[0]->type.dtype &&
           may_be_early(fuse, op->results[0]);
}

void hoist_casts(Fuse *fuse) {
    Module *module = fuse->module;
    Ops rest = {0};
    int front = 0;
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        if (goes_front(fuse, op)) module->ops.at[front++] = op;
        else array_push(fuse->arena, &rest, op);
    }
    for (int i = 0; i < rest.count; i++) module->ops.at[front + i] = rest.at[i];
    ir_number(module);
}
