/* The passes of the compiler, in order: PASSES below is the list. Each pass is a function of a
 * module. Its file begins with an example, the pass's requirements and its results.
 *
 *     model.c -frontend-> IR of the model -precision ... fuse-> IR with layouts and conversions
 *             -specialize, schedule, memory-> device programs, schedules, storage -emit-> C
 */
#pragma once

#include "ir/unit.h"

/* Options of the command line that passes read. */
typedef struct CompileOptions {
    bool remark_comm, warn_implicit_reshard; // -Rcomm, -Wimplicit-reshard
    int64_t bucket;                          // --bucket: bytes of a gradient bucket; 0: not given
    bool no_views;                           // --no-views: slices and concatenations are copied
    bool no_chunks;                          // --no-chunks: no rows are computed in chunks
    int64_t chunk;                           // --chunk: bytes of a chunk; 0: not given
    bool estimate_only; // arenas may be longer than necessary: the program does not run
} CompileOptions;

/* The arguments of a pass besides the module. */
typedef struct PassContext {
    const CompileOptions *options;
    const ModuleLinks *links; // other programs that the pass reads
} PassContext;

typedef struct PassOptions {
    CompileOptions compile;
    const char *print_after; // name of a pass, "all", or NULL
    const char *stop_after;  // name of a pass, or NULL
    FILE *out;               // receives the dumps
    bool verify;             // run the verifier after every pass
    bool no_fuse;            // skip the pass fuse
    bool digest;             // set ModuleLinks.digest
} PassOptions;

/* Runs the passes, up to options->stop_after, on every module that has not been through them. Stops
 * after the first pass that reports errors. Returns whether there were no errors. */
bool passes_run(Unit *unit, const PassOptions *options);

/* Checks that a module read from text has everything that its last pass leaves (Module.last_pass).
 * Otherwise reports an error at `at` and returns false. */
bool passes_check(const Module *module, Position at);

/* Runs one pass by name over one module (hetu-opt). Reports an error at `at` if the module is not
 * in a form that the pass takes. Returns false only if no pass has the name. */
bool pass_run_one(Module *module, const char *name, Position at);

/* Returns the names of all passes in order; NULL ends them. */
const char *const *pass_names(void);

/* The passes in the order in which they run: PASS(name, from, to, leaves). A pass takes a module of
 * a form (Form of pass_manager.c) from `from` to `to`, and leaves it in `leaves`. */
#define PASSES(PASS)                                                                               \
    PASS(precision, MODEL, FACTORED, MODEL)              /* element types */                       \
    PASS(differentiate, MODEL, FACTORED, MODEL)          /* backward and update sections */        \
    PASS(concat_slice_gradients, MODEL, FACTORED, MODEL) /* sums of padded pieces: concat */       \
    PASS(join_products, MODEL, FACTORED, MODEL)          /* sums of equal products: one product */ \
    PASS(factor_dims, MODEL, FACTORED, FACTORED)         /* dimensions become factors */           \
    PASS(chunk, FACTORED, FACTORED, FACTORED)            /* large results in chunks of rows */     \
    PASS(microbatch, FACTORED, FACTORED, FACTORED)       /* the loop over micro-batches */         \
    PASS(stage, FACTORED, FACTORED, FACTORED)            /* pipeline templates, stages */          \
    PASS(recompute, FACTORED, FACTORED, FACTORED)        /* activation checkpointing */            \
    PASS(seed_layouts, FACTORED, FACTORED, SEEDED)       /* mesh; inputs', parameters' layouts */  \
    PASS(propagate_layouts, SEEDED, SEEDED, LAID_OUT)    /* all other layouts, conversions */      \
    PASS(rematerialize, LAID_OUT, LAID_OUT, LAID_OUT)    /* gathers that backward repeats */       \
    PASS(defer_reductions, LAID_OUT, LAID_OUT, LAID_OUT) /* sums before their conversion */        \
    PASS(split_wgrad, LAID_OUT, LAID_OUT, LAID_OUT)      /* weight-gradient operators */           \
    PASS(fuse, LAID_OUT, LAID_OUT, LAID_OUT)             /* elementwise operators into one */      \
    PASS(specialize, LAID_OUT, LAID_OUT, SPECIALIZED)    /* device programs, conversions */        \
    PASS(schedule, SPECIALIZED, SPECIALIZED, SCHEDULED)  /* order of the phases of a stage */      \
    PASS(memory, SCHEDULED, SCHEDULED, STORED)           /* memory offsets */

/* Declares each pass: void pass_NAME(Module *module, const PassContext *context). */
#define DECLARE_PASS(name, from, to, leaves)                                                       \
    void pass_##name(Module *module, const PassContext *context);
PASSES(DECLARE_PASS)
