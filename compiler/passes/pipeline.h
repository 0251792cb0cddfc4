/* The passes, in order (pipeline.c is the list). Each is a function of a module that says above
 * itself what it requires and what it leaves.
 */
#ifndef PASSES_PIPELINE_H
#define PASSES_PIPELINE_H

#include "ir/unit.h"

typedef struct PassOptions {
    const char *print_after; // a pass, "all", or NULL
    const char *stop_after;  // a pass, or NULL
    FILE *out;               // where dumps go
    bool verify;             // run the verifier after every pass
    bool no_fuse;            // leave out pass fuse
    bool digest;             // set the modules' digests
} PassOptions;

/* Runs the passes that a module has not come through yet over every module; stops after the first
 * that reported errors. Returns whether there were none. */
bool passes_run(Unit *unit, const PassOptions *options);

/* Whether a module that was read from text at `at` is as the pass leaves it that it says to have
 * come through last; else an error. */
bool passes_check(const Module *module, Position at);

/* Runs one pass by name over one module (hetu-opt), whose text is at `at`: an error where the
 * module is not as the passes before leave it. False when there is no such pass. */
bool pass_run_one(Module *module, const char *name, Position at);

/* The names of all passes in order, NULL at the end. */
const char *const *pass_names(void);

void pass_precision(Module *module);
void pass_differentiate(Module *module);
void pass_split_reductions(Module *module);
void pass_factor_dims(Module *module);
void pass_chunk(Module *module);
void pass_microbatch(Module *module);
void pass_stage(Module *module);
void pass_recompute(Module *module);
void pass_seed_layouts(Module *module);
void pass_propagate_layouts(Module *module);
void pass_rematerialize(Module *module);
void pass_defer_reductions(Module *module);
void pass_split_wgrad(Module *module);
void pass_fuse(Module *module);
void pass_specialize(Module *module);
void pass_schedule(Module *module);
void pass_memory(Module *module);

#endif
