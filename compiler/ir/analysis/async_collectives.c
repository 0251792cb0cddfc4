#include "ir/analysis/async_collectives.h"

#include "ir/analysis/phases.h"
#include "ir/programs/device_programs.h"

#include <stdlib.h>

static int compare_flights(const void *a, const void *b)
{
    const AsyncCollective *x = a, *y = b;
    return x->ready != y->ready ? (x->ready > y->ready) - (x->ready < y->ready) : x->op->index - y->op->index;
}

/* Makes an operator a tensor of a flight. */
static void board(const Module *module, AsyncCollective *flight, const Op **ops, const Op *op)
{
    int ready = value_ready_at(module, op->operands[0]);
    ops[op->tensor] = op;
    flight->ready = ready > flight->ready ? ready : flight->ready;
}

AsyncCollectives module_async_collectives(Arena *arena, const Module *module)
{
    AsyncCollective *flights = arena_array(arena, AsyncCollective, module->ops.count + 1);
    int count = 0, *of = arena_array(arena, int, module->conversions.count + 1); // by conversion: its flight, where it has several tensors
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (!op_is_async(module, op) || plan_nothing(op->conversion->plan))
            continue;
        if (!op->tensor) {
            int tensors = op->conversion->tensors.count;
            of[op->conversion->number] = count;
            flights[count++] = (AsyncCollective){op, tensors, arena_array(arena, const Op *, tensors), 0};
        }
        AsyncCollective *flight = &flights[of[op->conversion->number]];
        board(module, flight, (const Op **)flight->ops, op);
    }
    qsort(flights, (size_t)count, sizeof *flights, compare_flights);
    return (AsyncCollectives){count, flights};
}
