/* Checks that a model function builds the same program at every step, since hetucc evaluates the
 * function only once. The first evaluation records a hash per operator, argument, parameter, input
 * and output; later evaluations must produce the same hashes in the same order. */
#include "eager/tape.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix_shape(uint64_t print, ht_dtype dtype, ht_dims dims) {
    print = hash_bytes(hash_bytes(print, &dtype, sizeof dtype), &dims.rank, sizeof dims.rank);
    return hash_bytes(print, dims.extent, (size_t)dims.rank * sizeof dims.extent[0]);
}

void eager_trace_begin(Trace *trace) {
    if (!trace->print) trace->forward = -1;
    trace->at = trace->call = 0;
}

static _Noreturn void differs(const char *what, const char *name) {
    ht_fail("%s%s: the model is not the one of its first evaluation; a model function gives the "
            "same program at every step, and depends on no "
            "variable that changes: what changes between steps is an input",
            what, name);
}

void eager_trace_forward(Trace *trace) {
    if (trace->forward < 0) trace->forward = trace->count;
    if (trace->at != trace->forward) differs("the end of the model", "");
}

void eager_trace_backward(Trace *trace) {
    if (trace->whole && trace->at != trace->count) differs("the end of the gradients", "");
    trace->whole = true;
}

static void add(Trace *trace, uint64_t print) {
    if (trace->count == trace->room) {
        trace->room = 2 * trace->room + 256;
        trace->print = realloc(trace->print, (size_t)trace->room * sizeof *trace->print);
        if (!trace->print) ht_fail("no memory for a model of %d operators", trace->room);
    }
    trace->print[trace->count++] = print;
}

static void event(uint64_t print, const char *what, const char *name) {
    Trace *trace = eager_run.trace;
    bool known =
        trace->at < (eager_run.backward || trace->forward < 0 ? trace->count : trace->forward);
    bool learns = !known && (trace->forward < 0 || (eager_run.backward && !trace->whole));
    if (learns) add(trace, print);
    else if (!known || trace->print[trace->at] != print) differs(what, name);
    trace->at++;
}

void eager_trace_operator(const void *op, int result_count, ht_node *const *results,
                          int operand_count, ht_node *const *operands) {
    uint64_t print = hash_bytes(HASH_START, &op, sizeof op);
    for (int i = 0; i < result_count; i++)
        print = mix_shape(print, results[i]->dtype, results[i]->dims);
    for (int i = 0; i < operand_count; i++)
        print = hash_bytes(print, operands[i] ? &operands[i]->number : &(int64_t){0},
                           sizeof operands[i]->number);
    event(print, eager_run.op ? eager_run.op : "an operator", "");
}

void eager_trace_argument(const ht_attr *argument) {
    uint64_t print = hash_bytes(hash_bytes(HASH_START, &argument->i, sizeof argument->i),
                                &argument->f, sizeof argument->f);
    event(mix_shape(print, HT_F32, argument->dims), eager_run.op ? eager_run.op : "an operator",
          "");
}

void eager_trace_name(const char *kind, const char *name, ht_dtype dtype, ht_dims dims) {
    event(mix_shape(hash_bytes(hash_bytes(HASH_START, kind, strlen(kind)), name, strlen(name) + 1),
                    dtype, dims),
          kind, name);
}
