/* Pass propagate_layouts from the inside: what it knows on its way through the operators. */
#ifndef PASSES_PROPAGATE_LAYOUTS_PROPAGATE_LAYOUTS_H
#define PASSES_PROPAGATE_LAYOUTS_PROPAGATE_LAYOUTS_H

#include "passes/propagate_layouts/assign.h"

typedef Array(Op *) RingOps;

/* What a value is computed from: the greatest of what its operands are. */
typedef enum Origin { ORIGIN_CONSTANTS, ORIGIN_PARAMETERS, ORIGIN_INPUTS } Origin;

typedef struct Propagation {
    Module *module;
    const Mesh *mesh; // of the operator at hand, as in assigner
    Arena *arena;     // scratch
    Assigner assigner;
    RuleUse **rules; // by stage, the last of all devices: by rule of its mesh
    Intern *shared;
    Version **forms;            // by value id of the original value
    Op **update;                // by parameter: the operator that updates it; NULL: none
    const Parameter **gradient; // by value id: the parameter whose gradient it is, or what a stage
                                // gives of it; NULL: none
    const Layout **reduced;     // by value id: of gradients, where they go; NULL: nowhere else
    Origin *origin;             // by value id
    Array(const Value *) passing; // original values that have versions for one layer
    bool *recomputed;             // by operator: it runs again
    Assignment **assigned;        // by operator: how the axes cut those that do
    RingOps *ring_ops; // by operator: of those that do and run in turns, what runs in their place
    Array(Op *) out;
} Propagation;

/* `original` in the form `to`: one that exists, or a new conversion of the cheapest. */
Value *propagate_converted(Propagation *propagation, Value *original, const Sharding *to,
                           const Op *user, const char *reason);

/* `original` in any layout: one that exists, or a new conversion of the newest; of a parameter
 * itself, which has what its states need. */
Value *propagate_laid_out(Propagation *propagation, Value *original, const Layout *layout,
                          const Op *user, const char *reason);

/* The newest form of a value, as far as the operator at hand may read it. */
const Version *propagate_newest(const Propagation *propagation, const Value *value);

/* Whether a value comes from another stage than that of its user. */
bool propagate_crosses_stages(const Value *value, const Op *user);

/* A conversion, in front of the loop over micro-batches where it is the same in each; it has the
 * place of `user` in the source. */
Value *propagate_conversion(Propagation *propagation, Value *from, const Layout *to, const Op *user,
                            const char *reason);

/* Result k of the operator is made in a layout; `known` is its sharding, or NULL. A result that has
 * another layout already becomes what a conversion of the operator's own result gives. */
void propagate_result(Propagation *propagation, Op *op, int k, const Layout *made,
                      const Sharding *known);

/* Why operand k is converted. */
const char *propagate_reason(Propagation *propagation, const Op *op, int k);

/* An operator that takes elements in any order, of operands that lie in pieces
 * (irregular_layouts.c): the pieces that it makes lie so, too. Of equal pieces one counts in what
 * they add up to. False where it does not take them as they lie, and nothing is changed. */
bool propagate_irregular(Propagation *propagation, Op *op);

/* What the source gives (user_constraints.c): a value whose layout it gives; and what holds of
 * operand k holds of the results, where they have what is cut. */
void propagate_user_layout(Propagation *propagation, const Value *value);
void propagate_user_constraints(Propagation *propagation, const Op *op, int k,
                                Value *const *results, const Assignment *assignment);

/* Operators in turns (ring.c). Puts into the place of an operator one for each piece of the factor
 * `assignment->turned`, and what joins their results; false where results cannot be joined on the
 * devices that make them, and nothing is changed. */
bool propagate_ring(Propagation *propagation, Op *op, const Assignment *assignment);

#endif
