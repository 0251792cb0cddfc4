#include "ir/analysis/async_collectives.h"

#include "ir/analysis/phases.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"

#include <stdlib.h>

static int compare_async_collectives(const void *a, const void *b) {
    const AsyncCollective *x = a, *y = b;
    return x->ready != y->ready ? (x->ready > y->ready) - (x->ready < y->ready)
                                : x->op->index - y->op->index;
}

/* Makes an operator a tensor of an async collective. */
static void board(const Module *module, AsyncCollective *collective, const Op **ops, const Op *op) {
    int ready = value_ready_at(module, op->operands[0]);
    ops[op->convert.tensor] = op;
    collective->ready = ready > collective->ready ? ready : collective->ready;
}

AsyncCollectives module_async_collectives(Arena *arena, const Module *module) {
    AsyncCollective *collectives = arena_array(arena, AsyncCollective, module->ops.count + 1);
    int count = 0,
        *of =
            arena_array(arena, int,
                        module->devices->conversions.count +
                            1); // by conversion: its async collective, where it has several tensors
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
        board(module, collective, (const Op **)collective->ops, op);
    }
    qsort(collectives, (size_t)count, sizeof *collectives, compare_async_collectives);
    return (AsyncCollectives){count, collectives};
}
