/* The search for a strategy (automatic parallelism): `hetucc --plan`.
 *
 *     SearchOptions options = {.frontend = &frontend, .compile = {...}, .memory = 20 << 30};
 *     if (search_plan(arena, diag, &options, &strategy, &reason)) ...
 *
 * The passes make the roles of a strategy, cost counts what they keep, and simulate says how long a
 * step takes. The way through the folder:
 *
 *     model_limits.h     what a model allows: layers, rows of the batch, names of dimensions
 *     devices.h          the cluster by class and host, and how many bytes a device may have
 *     candidate.h        a strategy as the search handles it, and its text
 *     evaluate.h         compiles a strategy in a process of its own: seconds and bytes, in all or
 *                        by layer (probe.h)
 *     tensor_parallel.h  which dimensions tensor parallelism cuts: those that pay off when tried
 *     layer_costs.h      seconds and bytes by layer, from a few probes of small strategies, for any
 *                        class, degree, rows and kind of recomputing
 *     closed_form.h      from these: layers over stages, seconds of a step, bytes of a stage
 *     enumerate.h        all strategies of the space; keeps the best by closed form
 *     evaluated.h        evaluates those that are kept, and corrects the closed forms
 *     search.c           round by round, then around the best
 *     neighbours.h       moves to similar strategies; baselines; minimum memory where nothing fits
 *     explain.h          what is printed
 *
 * The same input gives the same plan: nothing depends on how many processes run beside each other,
 * on addresses, or on time. */
#ifndef PLANNER_SEARCH_SEARCH_H
#define PLANNER_SEARCH_SEARCH_H

#include "cluster/cluster.h"
#include "frontend/frontend.h"
#include "ir/module.h"
#include "support/text.h"

typedef struct SearchOptions {
    const FrontendOptions *frontend; // its cluster gives devices and links
    CompileOptions compile;          // the cluster aside
    bool no_fuse;
    int64_t memory; // bytes that a device may use at most, beside its class's limit; 0: no further
                    // limit
    const char *name; // name of the strategy
} SearchOptions;

/* Finds a strategy for the model of a source, writes its text to `strategy`, and to `reason` why
 * this one. Returns false after errors, and where no strategy fits, which is an error that says how
 * many bytes are missing. */
bool search_plan(Arena *arena, Diag *diag, const SearchOptions *options, Text *strategy,
                 Text *reason);

#endif
