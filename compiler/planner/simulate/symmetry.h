/* Actors: sets of devices that do the same at the same times, so that one device is simulated for
 * all.
 *
 * Two devices belong to one actor when they have the same role, class, position in a pipeline and
 * changes, and when in every conversion they do the same with partners that are, actor by actor,
 * the same. They are found by colour refinement: devices begin with colours by what they are
 * themselves, and are split by the colours of their partners until no colour is split. Within such
 * a partition the simulation is exact: each of many equal devices shares its own ports with its own
 * neighbours, and all of them see the same. */
#ifndef PLANNER_SIMULATE_SYMMETRY_H
#define PLANNER_SIMULATE_SYMMETRY_H

#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"
#include "planner/simulate/engine.h"

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
    int stage;              // its number in the run
} Actor;

/* A transfer between actors. Its uses are of the engine's resources (symmetry_computing,
 * symmetry_port). */
typedef struct ActorTransfer {
    const SimulatedTransfer *hop; // one of the device transfers that it stands for
    int actor_count, use_count;
    const int *actors;
    const EngineUse *uses;
} ActorTransfer;

typedef struct ActorTransfers {
    int count;
    const ActorTransfer *at; // by round
    double moving;
    int mover_count;
    const int *movers; // actors
} ActorTransfers;

typedef struct Symmetry {
    Arena *arena;
    Module *module;
    int actor_count;
    Actor *actors;
    int device_span, *actor_of; // by device number: its actor; -1: it has no part in the program
    int *stands;                // by run: the run that is simulated in its place
    int ports;                  // number of ports of an actor
    struct TransferTable *table;
} Symmetry;

/* Finds the actors. Requires a cluster. With `alone` every device is an actor. */
Symmetry symmetry_create(Arena *arena, Module *module, const Changes *changes, bool alone);

/* Returns a conversion's transfers between actors, when pipeline `run` of its template executes it;
 * run -1: an operator of all devices. */
const ActorTransfers *symmetry_transfers(const Symmetry *fold, const PlannedConversion *conversion,
                                         int run);

/* Return the engine's resource of an actor: its processor, or a port (TransferPort). */
static inline int symmetry_computing(const Symmetry *fold, int actor) {
    return actor * (fold->ports + 1);
}
static inline int symmetry_port(const Symmetry *fold, int actor, int port) {
    return actor * (fold->ports + 1) + 1 + port;
}

#endif
