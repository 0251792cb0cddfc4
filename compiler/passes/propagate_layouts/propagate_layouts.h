/* State of pass propagate_layouts while it visits the operators, shared by its files. */
#pragma once

#include "passes/propagate_layouts/assign_axes.h"

typedef Array(Op *) RingOps;

/* The kind of values from which a value is computed: the greatest origin of its operands. */
typedef enum Origin { ORIGIN_CONSTANTS, ORIGIN_PARAMETERS, ORIGIN_INPUTS } Origin;

typedef struct Propagation {
    Module *module;
    const Mesh *mesh; // mesh of the current operator, as in `assigner`
    Arena *arena;     // scratch
    Assigner assigner;
    RuleUse **rules; // by stage, then for all devices: an array by split rule of the mesh
    Intern *shared;
    Version **forms;            // by value id of the original value: its versions, the newest first
    Op **update;                // by parameter: the operator that updates it; NULL: none
    const Parameter **gradient; // by value id of a gradient, or of a stage's contribution to one:
                                // the parameter; NULL: another value
    const Layout **reduced;     // by value id of gradients: their layout in the update; NULL: none
    Origin *origin;             // by value id
    Array(const Value *) passing; // original values with versions for the current layer alone
    bool *recomputed;             // by op index: it is recomputed later
    Assignment **assigned;        // by op index, of recomputed operators: their assignments
    RingOps *ring_ops; // by op index of a recomputed operator: the operators of its ring steps
    Array(Op *) out;
} Propagation;

/* Returns `original` in the sharding `to`: an existing version, or the cheapest conversion. */
Value *propagate_converted(Propagation *propagation, Value *original, const Sharding *to,
                           const Op *user, const char *reason);

/* Returns `original` in any layout: an existing version, or a conversion of the newest one. */
Value *propagate_laid_out(Propagation *propagation, Value *original, const Layout *layout,
                          const Op *user, const char *reason);

/* Returns the newest version of a value that the current operator may read. */
const Version *propagate_newest(const Propagation *propagation, const Value *value);

/* Returns whether one stage makes a value and another stage runs `user`. */
bool propagate_crosses_stages(const Value *value, const Op *user);

/* Inserts a conversion and returns its result. The conversion stands before the loop over
 * micro-batches if `from` exists there, and has the source position of `user`. */
Value *propagate_conversion(Propagation *propagation, Value *from, const Layout *to, const Op *user,
                            const char *reason);

/* Sets the layout in which the operator makes result k; `known` is its sharding, or NULL. A result
 * that already has another layout becomes the result of a conversion from `made`. */
void propagate_result(Propagation *propagation, Op *op, int k, const Layout *made,
                      const Sharding *known);

/* Returns the reason for converting operand k, for messages: "operand x of linear". */
const char *propagate_reason(Propagation *propagation, const Op *op, int k);

/* Lays out an operator on operands whose layouts are not shardings of a mesh (non_mesh_layouts.c).
 * The results have the same layout; a scalar sum counts the copies of a piece once. Returns false
 * and changes nothing if the operator cannot use the layout. */
bool propagate_non_mesh(Propagation *propagation, Op *op);

/* Constraints from layouts in the source (user_constraints.c). propagate_user_layout starts the
 * constraint of a value for which the source gives a layout. propagate_user_constraints passes the
 * constraint of operand k on to the results that have the cut dimensions. */
void propagate_user_layout(Propagation *propagation, const Value *value);
void propagate_user_constraints(Propagation *propagation, const Op *op, int k,
                                Value *const *results, const Assignment *assignment);

/* Replaces an operator by ring steps (ring_attention.c): one operator for each piece of
 * `assignment->ring_factor`, and operators that join their results. Returns false and changes
 * nothing if the devices that make the results cannot join them. */
bool propagate_ring(Propagation *propagation, Op *op, const Assignment *assignment);
