/* Scripts: what actors do in a part, or in what runs once, one operator after the other. */
#ifndef PLANNER_SIMULATE_SCRIPT_H
#define PLANNER_SIMULATE_SCRIPT_H

#include "ir/analysis/phases.h"
#include "planner/simulate/symmetry.h"

/* Operators that compute, as one; or a conversion. */
typedef struct ScriptItem {
    const Op *op;               // the last
    const double *seconds;      // by number of the script's actors; NULL: a conversion
    const ActorTransfers *hops; // NULL: computing
} ScriptItem;

typedef struct Script {
    int actor_count;
    const int *actors;
    Array(ScriptItem) items;
} Script;

/* The conversions of an edge, which go together. */
typedef struct EdgeScript {
    int count;
    const Op *const *ops;
    const ActorTransfers *const *hops;
} EdgeScript;

typedef struct Scripts {
    Arena *arena;
    Symmetry *fold;
    const bool *marked;        // by operator: an item ends with it
    const StageGraph *graphs;  // by run
    const Script ***parts;     // by run: by phase and visit
    const EdgeScript ***edges; // by run: by edge, and those backward behind the others
    const Script *whole[PHASES];
    const char *unknown; // what the cluster does not say and was needed; NULL: nothing
} Scripts;

Scripts scripts_create(Arena *arena, Symmetry *fold, const bool *marked);

/* A part of a visit of a run that is simulated, and what all actors do in a phase without a
 * table. */
const Script *script_of(Scripts *scripts, int run, Phase phase, int visit);
const Script *whole_script_of(Scripts *scripts, Phase phase);

const EdgeScript *edge_script_of(Scripts *scripts, int run, int edge, bool backward);

#endif
