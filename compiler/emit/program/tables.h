/* The tables of a unit's programs: the image of each module (ht_image of <hetu/image.h>), pieces
 * of tensors on devices, conversions, and migrations between strategies. */
#pragma once

#include "emit/program/role.h"
#include "reshard/plan.h"

/* Appends the image of a module. `writers` and `roles` have an entry for each role. */
void emit_image(Text *out, const RoleWriter *writers, const RoleText *roles);

/* Appends an ht_image with the fields that identify an image of the running program. */
void emit_known_image(Text *out, Emitter *emitter, const Module *module, const char *name);

/* Returns the number N of the table `pieces_N` of a value, and writes the table when there is none
 * with the same pieces. `device_count` is one more than the highest device, idle ones included. */
int pieces_write(Text *out, Emitter *emitter, Module *module, int device_count, const Value *value);

/* ---- links between hosts: host_links.c ---- */

/* Writes the tables of ht_register_links (<hetu/image.h>) to `declarations`, and its call to
 * `calls`. Writes nothing without a cluster of several hosts. */
void emit_host_links(Arena *arena, const Cluster *cluster, const char *prefix, Text *declarations,
                     Text *calls);

/* ---- conversions: conversion_tables.c ---- */

/* How emitted tables name the devices of a plan. */
typedef struct PlanNames {
    int kind;                      // names are positions in pipelines of this template; -1: ranks
    int least, span;               // the plan's devices are in [least, least + span)
    const int *place;              // by device - least: the device's index in its replica group
    int replica_group_count, size; // number of replica groups, and devices of each
    const char *replica_groups;    // name of the table with the devices of all replica groups
} PlanNames;

/* Returns how tables name a plan's devices, and writes the table of replica groups when new. `kind`
 * is PlanNames.kind, `positions` the position of each device in its pipeline; NULL: ranks. */
PlanNames plan_names(Emitter *emitter, Text *out, const ReplicaGroups *replica_groups, int kind,
                     const int *positions);

/* The name of a conversion in C, and in messages. */
typedef struct PlanLabel {
    const char *name, *text;
} PlanLabel;

/* Appends `static const ht_reshard NAME = {...};`, preceded by the tables that it refers to and
 * that are not written yet. */
void emit_plan(Text *out, Emitter *emitter, const Plan *plan, PlanLabel label,
               const PlanNames *names);

/* ---- migrations: migration.c ---- */

/* Appends the table PREFIX_migrations and the tables that it refers to, if there are migrations.
 * `names` has a name for each module of the unit. */
void emit_migrations(Text *out, Emitter *emitter, const char *const *names);

/* Return the name of the table PREFIX_migrations, and the number of its rows. */
const char *migrations_name(const Emitter *emitter);
int migrations_count(const Emitter *emitter);

/* Appends ht_arriving (<hetu/image.h>) of a unit whose first strategies the program already has. */
void emit_arrival(Text *out, Emitter *emitter, const char *const *names);
