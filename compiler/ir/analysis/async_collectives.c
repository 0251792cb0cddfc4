/* Says which collectives overlap with computing (op_is_async), and lists them in the order in which
 * all devices begin them. Conversions inside a phase (tensor parallelism) do not overlap. */
#include "ir/analysis/async_collectives.h"

#include "ir/analysis/phases.h"
#include "ir/programs/conversions.h"

#include <stdlib.h>

/* Returns whether a value, or each operand of a union, is made before the update. */
static bool made_before_update(const Module *module, const Value *value) {
    const Op *def = value->def;
    if (!def || def->def != module->builtin->stage_union)
        return def && op_phase(module, def) != PHASE_UPDATE &&
               op_phase(module, def) != PHASE_BEFORE;
    for (int k = 0; k < def->operand_count; k++)
        if (!made_before_update(module, def->operands[k])) return false;
    return true;
}

bool op_is_async(const Module *module, const Op *op) {
    bool overlaps =
        module->builtin->stage_union ||
        (module->strategy && (!module->strategy->zero || module->devices->target.overlap));
    return overlaps && op->def == module->builtin->reshard &&
           op_phase(module, op) == PHASE_UPDATE && made_before_update(module, op->operands[0]);
}

static int compare_async_collectives(const void *a, const void *b) {
    const AsyncCollective *x = a, *y = b;
    return x->ready != y->ready ? (x->ready > y->ready) - (x->ready < y->ready)
                                : x->op->index - y->op->index;
}

/* Adds an operator's tensor to an async collective. */
static void join(const Module *module, AsyncCollective *collective, const Op **ops, const Op *op) {
    int ready = value_ready_at(module, op->operands[0]);
    ops[op->convert.tensor] = op;
    collective->ready = ready > collective->ready ? ready : collective->ready;
}

AsyncCollectives module_async_collectives(Arena *arena, const Module *module) {
    AsyncCollective *collectives = arena_array(arena, AsyncCollective, module->ops.count + 1);
    // by number of a planned conversion: the index of its async collective
    int *of = arena_array(arena, int, module->devices->conversions.count + 1), count = 0;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (!op_is_async(module, op) || plan_nothing(op->convert.plan->plan)) continue;
        if (!op->convert.tensor) {
            int tensors = op->convert.plan->tensors.count;
            of[op->convert.plan->number] = count;
            collectives[count++] =
                (AsyncCollective){op, tensors, arena_array(arena, const Op *, tensors), 0};
        }
        AsyncCollective *collective = &collectives[of[op->convert.plan->number]];
        join(module, collective, (const Op **)collective->ops, op);
    }
    qsort(collectives, (size_t)count, sizeof *collectives, compare_async_collectives);
    return (AsyncCollectives){count, collectives};
}
