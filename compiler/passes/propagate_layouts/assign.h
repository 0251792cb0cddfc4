/* Which axis cuts which factor of an operator: the heart of layout propagation.
 *
 * Split rules decide first, in their order, wherever the operator's rule allows. What they leave
 * open is decided by price: an axis stays on a factor that an operand is already cut by, passes a
 * partial sum through a linear operator, or leaves the operator undivided, whichever costs least
 * (price.h).
 */
#ifndef PASSES_PROPAGATE_LAYOUTS_ASSIGN_H
#define PASSES_PROPAGATE_LAYOUTS_ASSIGN_H

#include "passes/seed_layouts/split_rules.h"
#include "passes/seed_layouts/sharding.h"
#include "passes/seed_layouts/consumer_constraints.h"

/* A form in which a value exists: itself, or what a conversion made of it. */
typedef struct Version Version;
struct Version {
    Value *value;
    bool passing;     // for the layer at hand alone
    const Mesh *mesh; // of which its layout is a sharding; NULL: of none
    Sharding sharding;
    Version *next;
};

/* Whether a version is a sharding of the mesh of the operator at hand. */
#define VERSION_KNOWN(assigner, version) ((version)->mesh == (assigner)->mesh)

enum { ASSIGN_NONE = -1, ASSIGN_PASS = -2 };

/* A layout that the source gives, for what is made of the tensor until names or the source change
 * it. */
typedef struct Held {
    Position at;      // of the pragma
    const char *name; // of the tensor that it stands for
    const Mesh *mesh;
    Sharding sharding;
    uint32_t axes;  // along which it holds, a bit each
    bool gradient;  // of one: what tensors of the model say goes before it
    bool *reported; // that something changes it; one for all that it holds for
} UserConstraint;

/* What the choices for all operators of a module have in common. */
typedef struct Assigner {
    Module *module;
    const Op *reader;                     // the operator at hand
    const Mesh *mesh;                     // its own
    Arena *arena;                         // scratch
    Intern *replica_groups;               // what plans of replica groups cost, by what they convert
    Intern *alike;                        // module_equivalent_devices
    Intern *prices;                       // what price_conversion and price_crossing remember
    RuleUse *rules;                       // by rule of the mesh
    const ConsumerConstraints *consumers; // of parameters
    const UserConstraint **constraints;   // by value id of the original value; NULL: nothing holds
    // by value id: of a parameter's gradient, the sharding to which it goes
    const Sharding **gradient;
} Assigner;

/* For every axis the bound factor that it cuts, ASSIGN_NONE, or ASSIGN_PASS + 1 - g when partial
 * sums pass through the operands of linear group g (1, 2, ...); `order` lists the axes that cut,
 * the first major. Where the strategy's `turns` says so, the tensors that have another factor,
 * `turned`, are cut by the axis along that one: the operator runs once a piece of it
 * (passes/propagate_layouts/ring.c). */
typedef struct Assignment {
    int factor[MESH_MOST];
    bool zigzag[MESH_MOST]; // a zigzag split
    int order[MESH_MOST], order_count;
    int ring_factor;    // a bound factor; ASSIGN_NONE: the operator runs once
    uint32_t ring_axes; // the axes along which its pieces move on, a bit each
} Assignment;

/* Chooses; `versions` gives for each operand in what forms it exists (NULL for absent ones). Marks
 * rules as used or refused. */
Assignment assign_axes(Assigner *assigner, const Op *op, Version *const *versions);

/* The factor along which an operand is held by an axis; ASSIGN_NONE: it is held undivided there. */
int constraint_factor(const Op *op, int k, const UserConstraint *held, int axis);

/* What holds of operand k on the mesh of the operator at hand; NULL: nothing. */
const UserConstraint *constraint_operand(const Assigner *assigner, const Op *op, int k);

/* What operand or result k must be, or is, under an assignment; of an operator in turns, in the
 * first of them. */
Sharding assignment_operand(const Mesh *mesh, const Op *op, const Assignment *assignment, int k);
Sharding assignment_result(const Mesh *mesh, const Op *op, const Assignment *assignment, int k);

/* Whether the operator at hand may read a version: what was converted for a visit of a stage lies
 * among what this visit keeps of a micro-batch, and the stage's other visits may run before. What
 * is handed on from one visit to another comes from the stage itself. */
bool version_reaches(const Assigner *assigner, const Version *version);

/* The newest version that the operator at hand may read, and the one that is cheapest to convert to
 * `to`; where it may read none, of all: what goes from one visit to another. */
const Version *newest_version(const Assigner *assigner, const Version *versions);
const Version *cheapest_version(const Assigner *assigner, const Version *versions,
                                const Sharding *to, double *price);

#endif
