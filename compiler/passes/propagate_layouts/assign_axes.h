/* Assignments: which axis cuts which factor of an operator. This is the core of layout propagation.
 *
 *     split batch:dp                 y[batch, ffn] = x[batch, embed] * w[ffn, embed]
 *     x {batch:dp, dup:tp}, w {ffn:tp}
 *
 *     dp: batch, by the split rule
 *     tp: ffn, by price: tp cuts w along ffn already, so no conversion is needed
 *
 * Split rules come first, in their order, where the operator's rule allows the cut. The price
 * decides about all other axes (price.c). Such an axis cuts a factor by which an operand is already
 * cut, passes partial sums through a linear operator, or leaves the operator whole. */
#pragma once

#include "passes/seed_layouts/tensor_sequence_expert_splits.h"
#include "passes/seed_layouts/sharding.h"
#include "passes/seed_layouts/consumer_constraints.h"

/* A version of a value: the value itself, or the result of a conversion of it. */
typedef struct Version Version;
struct Version {
    Value *value;
    bool passing;     // exists only for operators of the current layer
    const Mesh *mesh; // the layout is a sharding of this mesh; NULL: of no mesh
    Sharding sharding;
    Version *next;
};

/* Returns whether a version is a sharding of the mesh of the current operator. */
#define VERSION_KNOWN(assigner, version) ((version)->mesh == (assigner)->mesh)

enum { ASSIGN_NONE = -1, ASSIGN_PASS = -2 };

/* A layout that the source gives a tensor. The layout also constrains values computed from the
 * tensor, until a split rule or another pragma changes it. */
typedef struct Held {
    Position at;      // position of the pragma
    const char *name; // name of the pragma's tensor
    const Mesh *mesh;
    Sharding sharding;
    uint32_t axes;  // bit a: the constraint holds along axis a
    bool gradient;  // derived through a gradient; constraints of forward tensors have precedence
    bool *reported; // whether a change was reported; shared by all constraints from one pragma
} UserConstraint;

/* State that is shared by the assignments of all operators of a module. */
typedef struct Assigner {
    Module *module;
    const Op *reader;       // the current operator
    const Mesh *mesh;       // mesh of the current operator
    Arena *arena;           // scratch
    Intern *replica_groups; // prices of conversions of one replica group, by layouts and shape
    Intern *alike;          // cache of module_equivalent_devices
    Intern *prices;         // cache of price_conversion and price_crossing
    RuleUse *rules;         // by split rule of the mesh: effects of the rule
    const ConsumerConstraints *consumers; // constraints that consumers put on parameters
    const UserConstraint **constraints;   // by value id of the original value; NULL: none
    // by value id: the sharding to which a parameter's gradient is converted
    const Sharding **gradient;
} Assigner;

/* An assignment of mesh axes to an operator. For every axis it has the bound factor that the axis
 * cuts, or ASSIGN_NONE, or ASSIGN_PASS + 1 - g if partial sums pass through the operands of group g
 * (1, 2, ...) of rule_linear. With `turns` of the strategy, axes of `ring_axes` cut another factor,
 * `ring_factor`, of tensors that have it, in ring steps, one for each piece (ring_attention.c). */
typedef struct Assignment {
    int factor[MESH_MOST];
    bool zigzag[MESH_MOST];            // a zigzag split
    int order[MESH_MOST], order_count; // the axes that cut factors, the major ones first
    int ring_factor;                   // a bound factor; ASSIGN_NONE: no ring steps
    uint32_t ring_axes;                // bit a: pieces move along axis a
} Assignment;

/* Returns the assignment of an operator. `versions` has the versions of each operand; NULL: absent.
 * Marks split rules as used or refused. */
Assignment assign_axes(Assigner *assigner, const Op *op, Version *const *versions);

/* Sets ring_factor and ring_axes: a factor whose pieces move round axes, by `turns`. */
void choose_ring(const Assigner *assigner, const Op *op, Version *const *versions,
                 Assignment *assignment);

/* Returns the constraint of operand k on the mesh of the current operator; NULL: none. */
const UserConstraint *constraint_operand(const Assigner *assigner, const Op *op, int k);

/* Return the sharding that an assignment requires of operand k, or gives result k (ring step 0). */
Sharding assignment_operand(const Mesh *mesh, const Op *op, const Assignment *assignment, int k);
Sharding assignment_result(const Mesh *mesh, const Op *op, const Assignment *assignment, int k);

/* Returns whether the current operator may read a version. A version that was converted for one
 * visit of a stage is stored with that visit's micro-batch. Other visits of the stage may run
 * earlier. A value that is passed from visit to visit comes from the stage itself. */
bool version_reaches(const Assigner *assigner, const Version *version);

/* Return the newest version that the current operator may read, and the version that is cheapest to
 * convert to `to` (*price). If it may read no version, all versions count: a message sends one. */
const Version *newest_version(const Assigner *assigner, const Version *versions);
const Version *cheapest_version(const Assigner *assigner, const Version *versions,
                                const Sharding *to, double *price);

/* ---- prices (price.c) ---- */

/* Prices of assignments in layout propagation.
 *
 *     all-gather of x {batch:dp} -> {dup:dp}, 8 MiB on 4 devices
 *         without a cluster file: 6 MiB, which a device receives
 *         with a cluster file:    the seconds of the planned all-gather on its links
 *
 * With a cluster file a price is in seconds of a step, for conversions and for computing
 * (cost/cost.h). If a device class does not give its speed, one operation counts as the time in
 * which the host's links move BYTES_AN_OPERATION. Without a cluster file a price is in bytes that a
 * device receives on average, and one operation counts as BYTES_AN_OPERATION. */

/* Returns the price of converting a value from one sharding to another; infinite: impossible. */
double price_conversion(const Assigner *assigner, const Value *value, const Sharding *from,
                        const Sharding *to);

/* Returns the price of converting a value whose layout is not a sharding of the operator's mesh. */
double price_crossing(const Assigner *assigner, const Value *value, const Sharding *to);

/* Returns the price of computing an operator, on the slowest device of the mesh. */
double price_computing(const Assigner *assigner, const Op *op, const Assignment *assignment);
