/* Actors: devices that do the same at the same times, so that one of them is simulated for all.
 *
 * Two devices are of one actor when they have the same role, class, place in a pipeline and
 * changes, and when in every conversion they do the same among devices that are, actor by actor,
 * the same. That is found by refining: devices begin with what they are by themselves, and are told
 * apart by whom they exchange with until nothing more is told apart. In such a partition what
 * actors do is what devices do, exactly: where each of many equal devices shares its own ports with
 * its own neighbours, all of them see the same.
 */
#ifndef PLANNER_SIMULATE_SYMMETRY_H
#define PLANNER_SIMULATE_SYMMETRY_H

#include "planner/simulate/changes.h"
#include "planner/simulate/engine.h"
#include "planner/simulate/transfers.h"

typedef struct Actor {
    int device_count;
    const int *devices; // ascending
    const Role *role;
    const DeviceClass *class;
    const PipelineRun *run; // NULL: the batch runs as a whole
    int stage;              // of the run
} Actor;

/* A hop of actors. Its uses are of the engine's resources (fold_resource). */
typedef struct ActorTransfer {
    const SimulatedTransfer *hop; // one of those that it stands for
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
    int device_span, *actor_of; // by device number; -1: it has no part in the program
    int *stands;                // by run: the run that is simulated for it
    int ports;                  // of an actor
    struct TransferTable *table;
} Symmetry;

/* Requires a cluster. With `alone` every device is an actor. */
Symmetry symmetry_create(Arena *arena, Module *module, const Changes *changes, bool alone);

/* What a conversion is for actors, where the pipeline `run` of its body does it; run -1: of an
 * operator of all devices. */
const ActorTransfers *symmetry_transfers(const Symmetry *fold, const PlannedConversion *conversion,
                                         int run);

/* The engine's resource of an actor: what computes, or a port of a TransferPort. */
static inline int symmetry_computing(const Symmetry *fold, int actor) {
    return actor * (fold->ports + 1);
}
static inline int symmetry_port(const Symmetry *fold, int actor, int port) {
    return actor * (fold->ports + 1) + 1 + port;
}

#endif
