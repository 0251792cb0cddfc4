/* Scripts: the items that the actors of a stage run in a phase, one after the other. An item is a
 * series of operators that compute, or one conversion.
 *
 *     [compute 3 ms] [all-reduce over tp] [compute 2 ms] [all-reduce over tp]
 */
#pragma once

#include "ir/analysis/phases.h"
#include "planner/simulate/symmetry.h"

/* An item: operators that compute, taken together, or one conversion. */
typedef struct ScriptItem {
    const Op *op;                    // the last operator of the item
    const double *seconds;           // by index in Script.actors; NULL: a conversion
    const ActorTransfers *transfers; // NULL: the item computes
} ScriptItem;

typedef struct Script {
    int actor_count;
    const int *actors;
    Array(ScriptItem) items;
} Script;

/* The conversions of an edge of the stage graph, which are one message. */
typedef struct EdgeScript {
    int count;
    const Op *const *ops;
    const ActorTransfers *const *transfers;
} EdgeScript;

typedef struct Scripts {
    Arena *arena;
    Symmetry *fold;
    const bool *marked;          // by operator: an item ends after it
    const StageGraph *graphs;    // by run: the stage graph of its template
    const Script ***parts;       // by run, then entry phase * visit_count + visit
    const EdgeScript ***edges;   // by run, then entry edge * 2 + (1 if backward)
    const Script *whole[PHASES]; // by phase: the script of a phase that has no table
    const char *unknown; // message with the rate that the cluster file lacks; NULL: none is missing
} Scripts;

Scripts scripts_create(Arena *arena, Symmetry *fold, const bool *marked);

/* Return the script of a visit's phase in a simulated run, and of a phase that has no table. */
const Script *script_of(Scripts *scripts, int run, Phase phase, int visit);
const Script *whole_script_of(Scripts *scripts, Phase phase);

const EdgeScript *edge_script_of(Scripts *scripts, int run, int edge, bool backward);
