/* Phases: the operators that a stage runs without waiting for another stage.
 *
 *     %12 = linear(%3, %0) forward loop each stage 1 visit 2      PHASE_FORWARD of visit 2, stage 1
 *     %40 = linear_dw(%39, %3) ... wgrad                          PHASE_WGRAD
 *     %52 = reshard(%40) loop after                               PHASE_UPDATE, an async collective
 *
 * A schedule says when each stage runs a phase of a visit, and for which micro-batch. The operators
 * of a module stand in the order of their phases. */
#pragma once

#include "ir/module.h"
#include "schedule/schedule.h"

typedef enum Phase {
    PHASE_COUNTING, // with each micro-batch, before all other phases: sums of inputs alone
    PHASE_BEFORE,   // once, before the loop over micro-batches
    PHASE_FORWARD,  // with each micro-batch
    PHASE_BACKWARD, // with each micro-batch: gradients that an earlier visit waits for
    PHASE_WGRAD,    // with each micro-batch: gradients of parameters; only the optimizer waits
    PHASE_UPDATE,   // once, after the loop
    PHASES
} Phase;

/* Returns the phase that runs an operator. */
Phase op_phase(const Module *module, const Op *op);

/* Returns the name of a phase in emitted code: "forward". */
const char *phase_name(Phase phase);

/* Returns whether a phase runs with each micro-batch. */
static inline bool phase_loops(Phase phase) {
    return phase != PHASE_BEFORE && phase != PHASE_UPDATE;
}

/* Returns whether two operators run in one phase of one visit of one stage. */
bool same_phase(const Module *module, const Op *a, const Op *b);

/* Returns whether an operator gathers results of all micro-batches: as a sum, or as rows. */
bool op_gathers(const Module *module, const Op *op);

/* Returns whether an operator adds two values of one type, element by element. */
bool op_is_addition(const Op *op);

/* Returns whether an operator adds two values of its result's type, without a transposition. */
bool op_adds_alike(const Op *op);

/* Returns whether `reader` may read a result of `maker`, on the same stage, without a message. A
 * visit keeps a micro-batch's values in its own slot, which other visits do not read. */
bool op_may_read(const Module *module, const Op *maker, const Op *reader);

/* Returns whether an operator is a message: it converts a value of another stage or visit. */
bool op_crosses_stages(const Module *module, const Op *op);

/* Returns the index of the operator that makes a value. For a `union`, looks at the operands that
 * are in the first operand's template, and returns the last of their makers. So all devices agree
 * on the order of async collectives. */
int value_ready_at(const Module *module, const Value *value);

/* Returns the graph of a template's visits: an edge for each pair between which data flows forward.
 * A gradient from visit b to visit a makes the edge (a, b), even if no data flows from a to b.
 * Requires: pass propagate_layouts. */
StageGraph template_graph(Arena *arena, const Module *module, int body);

/* Sorts operators by loop, template, phase and visit if there are templates, and numbers them. */
void ir_order_parts(Module *module);
