/* Cost: the operations and bytes of a program on each device, and their seconds on a cluster.
 *
 *     Work work = op_device_work(module, op, device);        operations and bytes of a call on a
 *                                                            device's piece
 *     double seconds = work_seconds(class, &work);           of this work on a class of devices
 *     double seconds = conversion_seconds(cluster, plan);    of a conversion of layouts
 *     RoleMemory memory = role_memory(module, role, slots);  bytes by kind at the peak
 *     CostReport report = cost_report(arena, module);        all of it, by role, operator and
 *                                                            conversion: hetucc --emit=cost
 *
 * Layout propagation, the report, planners and the simulator read the same functions. Without a
 * cluster file there are operations and bytes but no seconds: unknown machines get no guesses.
 *
 * Operations are those of the rule as it is written. Each +, -, *, /, comparison, function of
 * math.h and addition to a sum is one; a product has 2 m n k. A kernel's rule gives their number in
 * its clause `operations`. Bytes are those of every operand and every result, once each.
 *
 *     seconds of a call = start + max(operations / rate, bytes / memory bandwidth)
 *
 * with the class's rate of products of the call's type and size, or for other operators its rate
 * `arithmetic`. A rate that the class lacks is left out of the maximum. The seconds are NAN where
 * the class lacks both rates, and for a product where it lacks the rate of products.
 *
 *     seconds of a conversion = steps (reshard/cost/communication.c, resources.c) + local moves /
 *         memory bandwidth
 *
 * This folder reads the IR: bindings of rules, roles and plans. The cluster's description, which
 * the resharding planner reads too, is in cluster/cluster.h. */
#pragma once

#include "cluster/cluster.h"
#include "ir/programs/device_programs.h"
#include "ir/unit.h"
#include "reshard/reshard.h"

/* ---- computing ---- */

/* The work of one call on one device. */
typedef struct Work {
    double operations, bytes;
    bool product;   // computed at the rate of matrix products
    ht_dtype dtype; // element type in which it computes
} Work;

/* Returns the work of a call on a piece with these extents, by bound factor; no work for views. */
Work op_work(const Op *op, const double *extent);

/* Returns the work of a call on a device's piece, for one micro-batch. */
Work op_device_work(Module *module, const Op *op, int device);

/* Returns the seconds of a call; NAN when the class is NULL or lacks the rates that it needs. */
double work_seconds(const DeviceClass *class, const Work *work);

/* Returns the seconds of a call on the slowest of some devices; NAN: unknown for one of them. */
double slowest_seconds(const Cluster *cluster, const int *devices, int count, const Work *work);

/* ---- communication ---- */

/* Returns the seconds in which the devices of a plan read and write their own memory between
 * communication steps: copies, packing, additions. Each row of contiguous bytes counts as at
 * least one cache line. Only the first 64 devices of the plan are examined. */
double moving_seconds(const Cluster *cluster, const Plan *plan);

/* Returns the seconds until the last device has finished a conversion. */
double conversion_seconds(const Cluster *cluster, const Plan *plan);

/* ---- memory ---- */

typedef enum MemoryKind {
    MEMORY_PARAMETERS,
    MEMORY_STATES, // optimizer states
    MEMORY_INPUTS,
    MEMORY_GRADIENTS,   // gradients of parameters
    MEMORY_ACTIVATIONS, // results of forward operators
    MEMORY_TEMPORARIES, // other operators' results
    MEMORY_SCRATCH,     // scratch of conversions
    MEMORY_GAPS,        // alignment and gaps of the arena
    MEMORY_KINDS
} MemoryKind;

const char *memory_kind_name(MemoryKind kind);

/* The memory of a role's device at the operator with the fullest arena, parameters included. */
typedef struct RoleMemory {
    int64_t bytes[MEMORY_KINDS];
    const Value *largest[MEMORY_KINDS]; // by kind: its largest value; NULL: it has no value
    int64_t largest_bytes[MEMORY_KINDS];
    int64_t peak; // the sum of all kinds
    int64_t kept; // bytes of one micro-batch's forward results that backward reads
    int slots;    // number of slots for micro-batches; bytes in slots count once for each slot
    const Op *at; // the operator with the fullest arena; NULL: the arena is empty
} RoleMemory;

/* Returns the memory of a device with `slots` slots (device_slots). Requires pass memory. */
RoleMemory role_memory(Module *module, const Role *role, int slots);

typedef void MemoryTaker(void *context, int device, const RoleMemory *memory);
/* Calls `take` with the memory of each device that has a role in the program. */
void devices_memory_each(Module *module, MemoryTaker *take, void *context);

/* The bytes that a device keeps of a value, or of the scratch of the conversion that makes it. */
typedef struct KeptValue {
    const Value *value;
    MemoryKind kind;
    int64_t bytes;
} KeptValue;
typedef Array(KeptValue) KeptValues;

/* Returns the result of role_memory. Appends each counted value to `values`, which may be NULL.
 * The values' bytes add up to the bytes of their kind; gaps have no values. */
RoleMemory role_memory_values(Arena *arena, Module *module, const Role *role, int slots,
                              KeptValues *values);

/* Returns the parameter that a value holds, perhaps viewed, copied or converted; NULL: none. */
const Parameter *parameter_of(const Module *module, const Value *value);

/* Returns, by value id, the parameter whose gradient the value holds, in any layout, type or shape;
 * NULL when the value is not a gradient of a parameter. */
const Parameter *const *gradients_of(Arena *arena, const Module *module);

/* Return where the source computes a value, and the value's name, or else its operator's name. */
Position value_place(const Value *value);
const char *value_called(const Value *value);

/* Returns, by operator, the bytes of a role's arena that are in use. Requires pass memory. */
int64_t *role_arena_use(Arena *arena, Module *module, const Role *role);

/* Returns how many programs of a unit use a strategy (NULL: the programs for one device); one
 * session may run all these programs. */
int session_programs(const Unit *unit, const Strategy *strategy);

/* Returns, by device of the unit, its bytes when one session runs all programs of a strategy. The
 * programs' peaks are added; parameters of equal layouts count once
 * (runtime/session/core/params.h). Requires pass memory. */
int64_t *session_bytes(Arena *arena, const Unit *unit, const Strategy *strategy);

/* Refuses a strategy that does not fit: reports each role whose peak exceeds a device's memory. */
void memory_check(Module *module);

/* ---- the report ---- */

/* An operator or a conversion, with all its runs in a step. */
typedef struct CostRow {
    const Op *op;
    const Plan *plan; // the conversion's plan; NULL: the row is an operator
    int64_t runs;
    double operations, bytes; // bytes of a conversion: the most that a device of the role receives
    double seconds;           // seconds of all runs; NAN: not known
    bool product;
} CostRow;

typedef struct RoleCost {
    const Role *role;
    const DeviceClass *class; // class of the role's first device; NULL: not known
    RoleMemory memory;
    int row_count;
    CostRow *rows;                               // in the program's order
    double operations, bytes, received, seconds; // sums over the rows; `received`: of conversions
} RoleCost;

typedef struct CostReport {
    Module *module;
    int role_count;
    RoleCost *roles;
} CostReport;

/* Returns the costs of a module by role. Requires pass memory. */
CostReport cost_report(Arena *arena, Module *module);

/* Print the reports as a table, and as JSON (keys: tools/manual/formats.md). */
void cost_table(Text *out, const CostReport *reports, int count);
void cost_json(Text *out, const CostReport *reports, int count);
