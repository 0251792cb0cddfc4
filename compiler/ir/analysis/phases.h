/* Parts: what a device does of a step without waiting for another stage.
 *
 * A part is a phase of a visit of a stage; the schedule says for which micro-batch it runs when.
 * Operators stand in the order of their parts.
 */
#ifndef IR_ANALYSIS_PHASES_H
#define IR_ANALYSIS_PHASES_H

#include "ir/module.h"
#include "schedule/schedule.h"

typedef enum Phase {
    PHASE_COUNTING, // with each micro-batch, before all else: what inputs alone add up to
    PHASE_BEFORE,   // once
    PHASE_FORWARD,  // with each micro-batch
    PHASE_BACKWARD, // with each micro-batch
    PHASE_WGRAD,    // with each micro-batch: gradients of parameters that no stage waits for
    PHASE_UPDATE,   // once
    PHASES
} Phase;

/* The phase that runs an operator. */
Phase op_phase(const Module *module, const Op *op);

const char *phase_name(Phase phase);

/* Whether a phase runs with each micro-batch. */
static inline bool phase_loops(Phase phase) {
    return phase != PHASE_BEFORE && phase != PHASE_UPDATE;
}

/* Whether two operators are of one part of one stage. */
bool same_phase(const Module *module, const Op *a, const Op *b);

/* Whether an operator of a loop makes what is left of all its micro-batches: a sum, or their
 * rows. */
bool op_gathers(const Module *module, const Op *op);

/* Whether an operator adds two values, element by element. */
bool op_is_addition(const Op *op);

/* Whether an operator adds two values of its result's type, those at the same place. */
bool op_adds_alike(const Op *op);

/* Whether an operator of a stage may read what another of the stage makes as it is: what is made
 * for a visit lies among what this visit keeps of a micro-batch, and the stage's other visits may
 * run before. */
bool op_may_read(const Module *module, const Op *maker, const Op *reader);

/* Whether an operator converts what another stage has made, or its own in another visit: the
 * message between two parts. */
bool op_crosses_stages(const Module *module, const Op *op);

/* Whether an operator converts, once a step, what parts before the update have made: sums of
 * gradients, which are under way beside what is left of the backward sections. It begins when what
 * a device has of its operand is there, and has come when the update begins. On one stage under
 * `zero` nothing is async unless option `overlap` says so: pieces take the room of what they are
 * reduced from, which is free in the update alone. */
bool op_is_async(const Module *module, const Op *op);

/* The index of the operator that makes a value, of a union of the last one on the devices of the
 * first body: by it, all devices begin async collectives in one order. */
int value_ready_at(const Module *module, const Value *value);

/* The stages of a body as the data flows, after pass propagate_layouts. What goes backward from a
 * visit to another one is an edge the other way even where nothing goes forward along it. */
StageGraph template_graph(Arena *arena, const Module *module, int body);

/* Puts the operators of a module with bodies into the order of their parts, those of a part as they
 * stand, and numbers them. */
void ir_order_parts(Module *module);

#endif
