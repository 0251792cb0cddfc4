/* Migrations: a running program switches from one strategy to another and keeps its training state.
 *
 *     w: f32[8, 8]   layout<[0,1]{0:2}> under "tp2"   ->   layout<[0,1]{dup:2}> under "dp2"
 *
 * Parameters and optimizer states are converted in batches (`windows`). For each batch a device
 * allocates the new storage, all tensors of the batch move by one plan, and the device frees the
 * old storage. So a device needs little more memory than under the strategy that needs more. In
 * each step of the plan (a round) a sender sends a receiver at most one message. A tensor with
 * equal layouts is in no batch. Elements that a device has are not sent to it. If several devices
 * have an element, devices send even shares (reshard_plan_messages). */
#pragma once

#include "ir/unit.h"
#include "reshard/replica_groups.h"

/* Most bytes of new storage that a batch has on one device. A batch of one tensor may have more. */
enum { MIGRATION_WINDOW = 64 << 20 };

/* A tensor's numbers under the two strategies. Emitted code numbers the parameters first, then the
 * optimizer states of each parameter one after another. */
typedef struct MigratedTensor {
    int from, to;
} MigratedTensor;

/* The plan of a batch's tensors. Batches with equal conversions share it, in all migrations. */
typedef struct MigrationPlan {
    int number;
    ReplicaGroups replica_groups;
    const Plan *plan; // in terms of the first replica group's devices; every group executes it
} MigrationPlan;

typedef struct MigrationBatch {
    Array(MigratedTensor) tensors; // in the order of the plan's conversions
    const MigrationPlan *plan;
    int64_t fresh; // the most bytes of new storage on one device
} MigrationBatch;

typedef struct Migration {
    Module *from, *to; // the same program under two strategies
    Array(MigrationBatch) windows;
} Migration;

typedef struct Migrations {
    Array(const MigrationPlan *) plans;
    Array(const Migration *) at;
} Migrations;

/* Returns each program's migrations between the unit's strategies, after pass propagate_layouts. */
const Migrations *migrations_plan(Arena *arena, const Unit *unit);

/* Prints each migration's bytes, messages, batches, rounds, seconds, most bytes sent (-Rswitch). */
void migrations_report(const Migrations *migrations, const Unit *unit);
