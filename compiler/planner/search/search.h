/* The search for a strategy (automatic parallelism): `hetucc --plan`.
 *
 *     SearchOptions options = {.frontend = &frontend, .compile = {...}, .memory = 20 << 30};
 *     if (search_plan(arena, diag, &options, &strategy, &reason)) ...
 *
 * The passes make the roles of a strategy, cost/ counts their bytes, and simulate/ computes the
 * seconds of a step. enumerate.c drops strategies by closed form before any is simulated. The files
 * in the order of the search:
 *
 *     search_model.h     the parts of a model that can be divided: layers, rows, dimensions
 *     devices.h          the cluster by class and host, and how many bytes a device may have
 *     candidate.h        a strategy as the search handles it, and its text
 *     evaluate.h         compiles a strategy in a process of its own: seconds and bytes, in all or
 *                        by layer (probe.h)
 *     tensor_parallel.h  which dimensions tensor parallelism cuts: those that pay off when tried
 *     layer_costs.h      seconds and bytes by layer, from a few probes of small strategies, for any
 *                        class, degree, rows and kind of recomputing
 *     layers_on_stages.h from layer costs: layers of stages, seconds of a step, bytes of a stage
 *     enumerate.h        all strategies of the space; keeps the best by closed form
 *     evaluated.h        evaluates the kept strategies, and corrects the closed forms
 *     search.c           evaluates round by round, then around the best strategy
 *     neighbours.h       moves to similar strategies; baselines; minimum memory if none fits
 *     explain.c          prints the plan and its reasons
 *
 * The same input gives the same plan: nothing depends on how many processes run at once, on
 * addresses, or on time. */
#pragma once

#include "cluster/cluster.h"
#include "frontend/frontend.h"
#include "passes/pass_manager.h"
#include "support/text.h"

typedef struct SearchOptions {
    const FrontendOptions *frontend; // its cluster gives devices and links
    Target target;                   // without the cluster, which `frontend` gives
    CompileOptions compile;
    bool no_fuse;
    int64_t memory;   // the most bytes of a device, besides its class's limit; 0: no limit
    const char *name; // name of the strategy
} SearchOptions;

/* Finds a strategy for the model of a source, and writes its text to `strategy` and its explanation
 * to `reason`. Returns false after errors; reports the missing bytes if no strategy fits. */
bool search_plan(Arena *arena, Diag *diag, const SearchOptions *options, Text *strategy,
                 Text *reason);
