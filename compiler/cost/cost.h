/* Cost: what a program does and keeps on each device, and how long that takes on a cluster.
 *
 *     Work work = op_work(op, extent);                       operations and bytes of a call on a
 *                                                            piece
 *     double seconds = work_seconds(class, &work);           on a class of devices
 *     double seconds = conversion_seconds(cluster, plan);    of a conversion of layouts
 *     RoleMemory memory = role_memory(module, role, slots);  bytes by kind when most are in use
 *     CostReport report = cost_report(arena, module);        all of it, by role, operator and
 *                                                            conversion: hetucc --emit=cost
 *
 * Layout propagation, the report, planners and the simulator read the same functions. Without a
 * cluster file there are operations and bytes, but no seconds: nothing is made up about machines
 * that nobody has described.
 *
 * Operations are those of the rule as it is written, each +, -, *, /, comparison and function of
 * math.h being one, and each addition to a sum one: 2 m n k of a product. The rule of a kernel says
 * them in its clause `operations`. Bytes are those of every operand, read once, and of every
 * result, written once.
 *
 *     seconds of a call = start + max(operations / rate, bytes / memory bandwidth)
 *
 * with the class's rate of products of that type and size, or its `arithmetic` for what is no
 * product. What the class does not say is left out of the maximum; NAN where it says neither, and
 * for products where it has no rate of them, since that is what most depends on.
 *
 *     seconds of a conversion = steps (reshard/cost/price.c, reshard/cost/resources.c) + local
 *         moves / memory bandwidth
 *
 * The floor stands on the IR, since it reads rules' bindings, roles and plans; clusters themselves
 * are below the planner (cluster/cluster.h), which weighs links.
 */
#ifndef COST_COST_H
#define COST_COST_H

#include "cluster/cluster.h"
#include "ir/programs/device_programs.h"
#include "ir/unit.h"

/* ---- computing ---- */

/* One call on one device. */
typedef struct Work {
    double operations, bytes;
    bool product;   // at the rate of products
    ht_dtype dtype; // that it works in
} Work;

/* The work of a call on a piece, whose extents are given by bound factor. Views do nothing. */
Work op_work(const Op *op, const double *extent);

/* The piece of a device: extents by bound factor, of one micro-batch; `extent` has room for
 * binding->factor_count. */
void op_local_extents(Module *module, const Op *op, int device, double *extent);

/* NAN where the class does not say how fast it is, or is NULL. */
double work_seconds(const DeviceClass *class, const Work *work);

/* ---- communication ---- */

/* Seconds in which the devices of a plan read and write their own memory beside communication,
 * between the steps in which they communicate: copies, packing, additions. Whole cache lines count;
 * of many devices, the first ones stand for all. */
double moving_seconds(const Cluster *cluster, const Plan *plan);

/* Seconds of a conversion, until its last device is done. */
double conversion_seconds(const Cluster *cluster, const Plan *plan);

/* ---- memory ---- */

typedef enum MemoryKind {
    MEMORY_PARAMETERS,
    MEMORY_STATES, // the optimizer's
    MEMORY_INPUTS,
    MEMORY_GRADIENTS,   // of parameters
    MEMORY_ACTIVATIONS, // made by the forward section
    MEMORY_TEMPORARIES, // other results
    MEMORY_SCRATCH,     // of a conversion
    MEMORY_GAPS,        // of the arena: alignment, and holes between the rest
    MEMORY_KINDS
} MemoryKind;

const char *memory_kind_name(MemoryKind kind);

/* What a device of a role keeps while most of its arena is in use. Parameters, states and inputs
 * stay. */
typedef struct RoleMemory {
    int64_t bytes[MEMORY_KINDS];
    const Value *largest[MEMORY_KINDS]; // NULL: there is none
    int64_t largest_bytes[MEMORY_KINDS];
    int64_t peak; // the sum of all kinds
    int64_t kept; // of what one forward makes, what backward reads
    int slots;    // in how many slots it keeps micro-batches; what is in them counts as often
    const Op *at; // when: NULL where the arena is empty
} RoleMemory;

/* Of a device of so many slots (device_slots). Requires pass memory. */
RoleMemory role_memory(Module *module, const Role *role, int slots);

/* The same of every device of a program that has a role: calls `take` for each of them. */
typedef void MemoryTaker(void *context, int device, const RoleMemory *memory);
void devices_memory_each(Module *module, MemoryTaker *take, void *context);

/* What a device keeps of a value, or of the scratch space of the conversion that makes it. */
typedef struct KeptValue {
    const Value *value;
    MemoryKind kind;
    int64_t bytes;
} KeptValue;
typedef Array(KeptValue) KeptValues;

/* The same, with all values that it counts; but for gaps, their bytes are those of the kinds. */
RoleMemory role_memory_values(Arena *arena, Module *module, const Role *role, int slots,
                              KeptValues *values);

/* The parameter that a value is, or has the elements of; NULL: none. */
const Parameter *parameter_of(const Module *module, const Value *value);

/* By value id: the parameter of which a value is the gradient on its way to the update; NULL: of
 * none. */
const Parameter *const *gradients_of(Arena *arena, const Module *module);

/* Where a value is made in the source, and what it is called there. */
Position value_place(const Value *value);
const char *value_called(const Value *value);

/* Bytes of a role's arena that are in use, by operator. Requires pass memory. */
int64_t *role_arena_use(Arena *arena, Module *module, const Role *role);

/* How many programs of a unit are under a strategy (NULL: one device): a session may have all of
 * them. */
int session_programs(const Unit *unit, const Strategy *strategy);

/* By device of the unit: the bytes that it keeps when one session has all these programs. Each
 * keeps its peak for as long as it is there, but parameters that lie alike are one
 * (runtime/session/core/params.h). Requires pass memory. */
int64_t *session_bytes(Arena *arena, const Unit *unit, const Strategy *strategy);

/* Reports as errors the roles whose peak is more than the memory of one of their devices. */
void memory_check(Module *module);

/* ---- the report ---- */

/* An operator or a conversion, all its runs in a step. */
typedef struct CostRow {
    const Op *op;
    const Plan *plan; // NULL: an operator
    int64_t runs;
    double operations, bytes; // conversions: the bytes that a device of the role receives at most
    double seconds;           // NAN: not known
    bool product;
} CostRow;

typedef struct RoleCost {
    const Role *role;
    const DeviceClass *class; // of its slowest device; NULL: not known
    RoleMemory memory;
    int row_count;
    CostRow *rows; // in the program's order
    double operations, bytes, received, seconds;
} RoleCost;

typedef struct CostReport {
    Module *module;
    int role_count;
    RoleCost *roles;
} CostReport;

/* Requires pass memory. */
CostReport cost_report(Arena *arena, Module *module);

/* As a table, and as JSON (its keys are in README.md): an object with the list "models". */
void cost_table(Text *out, const CostReport *reports, int count);
void cost_json(Text *out, const CostReport *reports, int count);

#endif
