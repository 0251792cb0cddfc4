/* Migrations: what training has learnt goes from one strategy of a program to another.
 *
 * Parameters and the optimizer's states are converted together, in windows: of a window the new
 * storage is made, its tensors are moved by one plan, and the old storage goes. So a device needs
 * little more than the larger of the two strategies, and of one sender and receiver there is one
 * message a round. What lies alike under both strategies is in no window: its storage is handed
 * over. What a device holds is never sent to it, and among several holders those send that have the
 * least to send (reshard_plan_messages).
 *
 *     Migrations *migrations = migrations_plan(arena, unit);
 */
#ifndef MIGRATION_MIGRATION_H
#define MIGRATION_MIGRATION_H

#include "ir/programs/device_programs.h"
#include "ir/unit.h"

/* The most new storage of a window on one device, unless a single tensor has more; bytes. */
enum { MIGRATION_WINDOW = 64 << 20 };

/* A tensor, by its slot under either strategy, as emitted code numbers them: the parameters, then
 * the states of each in a row. */
typedef struct MigratedTensor {
    int from, to;
} MigratedTensor;

/* A plan of several tensors; those of equal layouts serve all migrations that need one. */
typedef struct MigrationPlan {
    int number;
    ReplicaGroups replica_groups;
    const Plan *plan; // of the first replica group
} MigrationPlan;

typedef struct Window {
    Array(MigratedTensor) tensors; // in the order of the plan's
    const MigrationPlan *plan;
    int64_t fresh; // bytes of new storage, on the device that has most
} MigrationBatch;

typedef struct Migration {
    Module *from, *to; // one program, under two strategies
    Array(MigrationBatch) windows;
} Migration;

typedef struct Migrations {
    Array(const MigrationPlan *) plans;
    Array(const Migration *) at;
} Migrations;

/* The migrations between all strategies of each program of a unit, whose modules have layouts. */
const Migrations *migrations_plan(Arena *arena, const Unit *unit);

/* Reports each on standard error: bytes, messages, rounds, the busiest sender, seconds
 * (-Rswitch). */
void migrations_report(const Migrations *migrations, const Unit *unit);

#endif
