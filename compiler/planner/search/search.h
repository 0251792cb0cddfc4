/* The search for a strategy: `hetucc --plan`.
 *
 *     SearchOptions options = {.frontend = &frontend, .compile = {...}, .memory = 20 << 30};
 *     if (search_plan(arena, diag, &options, &strategy, &reason)) ...
 *
 * It knows what everybody can know who compiles: the passes make the roles of a strategy, cost says
 * what they keep, simulate how long a step takes. The way through the folder:
 *
 *     model_limits.h     what a model allows: layers, rows of the batch, names of dimensions
 *     devices.h          the cluster by class and host, and how many bytes a device may have
 *     candidate.h        a strategy as the search handles it, and its text
 *     evaluate.h         compiles a strategy in a process of its own: seconds and bytes, in all or
 *                        by layer (probe.h)
 *     tensor_parallel.h  which dimensions tensor parallelism cuts: those that pay off when tried
 *     layer_costs.h      seconds and bytes by layer, from a few probes of small strategies, for any
 *                        class, degree, rows and kind of recomputing
 *     closed_form.h      on that: layers over stages, seconds of a step, bytes of a stage
 *     enumerate.h        all strategies of the space; keeps the best by closed form
 *     baselines.h        the strategies that people begin with, which are always tried
 *     evaluated.h        evaluates those that are kept, and corrects the closed forms
 *     search.c           round by round, then around the best (neighbours.h)
 *     min_memory.h       where nothing fits: the strategy that needs the least memory
 *     explain.h          what is printed
 *
 * Nothing depends on how many processes run beside each other, on addresses, or on time: the same
 * input gives the same plan.
 */
#ifndef PLANNER_SEARCH_SEARCH_H
#define PLANNER_SEARCH_SEARCH_H

#include "cluster/cluster.h"
#include "frontend/frontend.h"
#include "support/text.h"

typedef struct SearchOptions {
    const FrontendOptions *frontend; // its cluster gives devices and links
    CompileOptions compile;          // the cluster aside
    bool no_fuse;
    int64_t memory;   // bytes that a device may have, where its class does not have less; 0: as its
                      // class says
    const char *name; // of the strategy
} SearchOptions;

/* Finds a strategy for the model of a source, writes its text to `strategy`, and to `reason` why
 * this one. False after errors, and where no strategy fits, which is an error with what is
 * missing. */
bool search_plan(Arena *arena, Diag *diag, const SearchOptions *options, Text *strategy,
                 Text *reason);

#endif
