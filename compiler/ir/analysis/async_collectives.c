/* Lists async collectives in the order in which all devices begin them. op_is_async (phases.c) says
 * which conversions are async. Conversions inside a phase (tensor parallelism) are not. */
#include "ir/analysis/async_collectives.h"

#include "ir/analysis/phases.h"
#include "ir/programs/conversions.h"

#include <stdlib.h>

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
