/* Actors: sets of devices that do the same at the same times, so one is simulated for all.
 *
 * Two devices of one actor have the same role, class, position in a pipeline and changes. In every
 * conversion they do the same with partners of the same actors. Colour refinement finds the actors.
 * Devices begin with colours by their own properties, and colours are split by the colours of the
 * devices' partners until none is split. Uplinks have colours by the transfers that pass them. The
 * simulation stays exact: equal devices share their ports and uplinks with equal neighbours,
 * and so have equal times. */
#pragma once

#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"
#include "schedule/engine.h"

typedef struct Changes Changes;
typedef struct DeviceClass DeviceClass;
typedef struct Module Module;
typedef struct PipelineRun PipelineRun;
typedef struct PlannedConversion PlannedConversion;
typedef struct Role Role;
typedef struct SimulatedTransfer SimulatedTransfer;

typedef struct Actor {
    int device_count;
    const int *devices; // ascending
    const Role *role;
    const DeviceClass *class;
    const PipelineRun *run; // NULL: the batch runs as a whole
    int stage;              // number of the stage in the run
} Actor;

/* A transfer between actors. Its uses are of the engine's resources (symmetry_computing,
 * symmetry_port, symmetry_uplink). Of an uplink it uses the sum of the shares of all device
 * transfers that it stands for and that pass the uplink. */
typedef struct ActorTransfer {
    const SimulatedTransfer *transfer; // one of the device transfers that it stands for
    int actor_count, use_count;
    const int *actors;
    const EngineUse *uses;
} ActorTransfer;

typedef struct ActorTransfers {
    int count;
    const ActorTransfer *at; // in the order of the rounds
    double moving;           // seconds in which `copiers` copy, before all rounds
    int copier_count;
    const int *copiers; // the actors that copy their own memory
} ActorTransfers;

typedef struct Symmetry {
    Arena *arena;
    Module *module;
    int actor_count;
    Actor *actors;
    int device_span, *actor_of; // by device number: its actor; -1: the program does not use it
    int *stands;                // by run: the run that is simulated in its place
    int ports;                  // number of ports of an actor
    int uplink_count;           // number of simulated uplink directions, which stand for all
    int *uplink_of;             // by direction (cluster/uplinks.h): the one that stands for it
    struct TransferTable *table;
} Symmetry;

/* Finds the actors of a program. Requires a cluster. With `alone` every device is an actor. */
Symmetry symmetry_create(Arena *arena, Module *module, const Changes *changes, bool alone);

/* Returns a conversion's transfers between actors when pipeline `run` runs it; -1: all devices. */
const ActorTransfers *symmetry_transfers(const Symmetry *fold, const PlannedConversion *conversion,
                                         int run);

/* Return the engine's resource of an actor: its processor, or a port (TransferPort); and that of an
 * uplink, by an entry of uplink_of. */
static inline int symmetry_computing(const Symmetry *fold, int actor) {
    return actor * (fold->ports + 1);
}
static inline int symmetry_port(const Symmetry *fold, int actor, int port) {
    return actor * (fold->ports + 1) + 1 + port;
}
static inline int symmetry_uplink(const Symmetry *fold, int uplink) {
    return fold->actor_count * (fold->ports + 1) + uplink;
}
