/* Trials: a strategy is compiled as hetucc compiles it, in a process of its own, whose memory goes
 * with it, and which prints nothing.
 *
 *     Workshop shop = {.frontend = ..., ...};
 *     Text *answers = evaluations_run(arena, &shop, trials, count);       what `work` of each has
 *                                                                         written, empty where the
 *                                                                         strategy is refused
 *
 * As many run at a time as there are processors.
 */
#ifndef PLANNER_SEARCH_EVALUATE_H
#define PLANNER_SEARCH_EVALUATE_H

#include "planner/search/devices.h"
#include "planner/search/model_limits.h"
#include "support/text.h"

/* What trials are made with. */
typedef struct EvaluationContext {
    Arena *arena;
    Diag *diag;
    struct Frontend *frontend;
    CompileOptions compile;
    bool no_fuse;
    const SearchModel *model;
    const Fleet *devices;
} EvaluationContext;

typedef struct Evaluation {
    const char *text; // the strategy
    void (*work)(const EvaluationContext *shop, const Unit *unit,
                 Text *out); // writes what is wanted to know
    bool rough;              // arenas are packed roughly: bytes are what is needed, or more
} Evaluation;

Text *evaluations_run(Arena *arena, const EvaluationContext *shop, const Evaluation *trials,
                      int count);

/* Returns the unit under a strategy, through all passes; NULL after errors. */
Unit *evaluation_compile(const EvaluationContext *shop, const char *text, bool rough);

/* Returns the module of a unit that the plan is for. */
Module *evaluation_module(const EvaluationContext *shop, const Unit *unit);

/* What a trial of a whole strategy tells. */
typedef struct Verdict {
    double seconds; // of a step; NAN: the cluster does not say (`unknown`)
    int worst;      // the device with the least memory left, or of those without bound the one that
                    // needs most
    int64_t peak;   // its bytes
    int64_t most;   // the most bytes of a device: with as much each of them has enough
    int64_t lack;   // bytes that it has too few; below 0: that are left
    int64_t states; // of the peak what parameters and the optimizer keep, with gradients
    int programs;   // of the source: one session may have all of them
    int fullest;    // the device that has least memory left then, as `worst`
    int64_t together;                   // its bytes then
    int busiest;                        // the device that computes longest
    double computing, exposed, idle;    // shares of its step
    double others_exposed, others_idle; // the most of a device
    char unknown[240];
} Verdict;

/* Tries strategies whole, roughly or to the byte. `good` by strategy: whether hetucc takes it. */
void verdicts_find(Arena *arena, const EvaluationContext *shop, const char *const *texts, int count,
                   bool rough, Verdict *verdicts, bool *good);

#endif
