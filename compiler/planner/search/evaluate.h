/* Evaluation of a strategy: a process of its own compiles it with all passes of hetucc, simulates
 * it and exits, which frees all memory. The process prints nothing.
 *
 *     EvaluationContext context = {.frontend = ..., ...};
 *     Text *answers = evaluations_run(arena, &context, evaluations, count);
 *         answers[i] is what `work` of evaluation i wrote; empty where the strategy is refused
 *
 * As many processes run at a time as there are processors, at most 16. */
#pragma once

#include "passes/pass_manager.h"
#include "planner/search/candidate.h"
#include "support/text.h"

typedef struct Fleet Fleet;
typedef struct SearchModel SearchModel;
typedef struct Unit Unit;

/* The context that all evaluations share. */
typedef struct EvaluationContext {
    Arena *arena;
    Diag *diag;
    struct Frontend *frontend;
    Target target;
    CompileOptions compile;
    bool no_fuse;
    const SearchModel *model;
    const Fleet *devices;
} EvaluationContext;

typedef struct Evaluation {
    const char *text; // text of the strategy
    // runs in the process and writes the result to `out`
    void (*work)(const EvaluationContext *context, const Unit *unit, Text *out);
    bool rough; // arenas are packed fast and loosely: the bytes are an upper bound
} Evaluation;

Text *evaluations_run(Arena *arena, const EvaluationContext *context, const Evaluation *trials,
                      int count);

/* Returns the unit compiled under a strategy, after all passes; NULL after errors. */
Unit *evaluation_compile(const EvaluationContext *context, const char *text, bool rough);

/* Returns the module of a unit that the search plans for. */
Module *evaluation_module(const EvaluationContext *context, const Unit *unit);

/* The result of evaluating a strategy. */
typedef struct Verdict {
    bool good;      // hetucc accepts the strategy; false: all other fields are 0
    double seconds; // seconds of a step; NAN: the cluster file lacks a rate (`unknown`)
    int worst;    // the device with the least memory left, or, if no device is bounded, the device
                  // that needs most memory
    int64_t peak; // bytes that device `worst` needs
    int64_t most; // the most bytes of any device
    int64_t lack; // bytes that device `worst` lacks; negative: it has bytes left
    int64_t states;   // bytes of the peak that parameters, gradients and the optimizer take
    int programs;     // number of programs of the source; one session may run all of them
    int fullest;      // the device with the least memory left when a session runs all programs
    int64_t together; // bytes of device `fullest` with all programs
    int busiest;      // the device that computes longest
    double computing, exposed, idle;    // fractions of the step of device `busiest` (ActorTime)
    double others_exposed, others_idle; // the largest such fractions of any device
    char unknown[240]; // message about the rate that the cluster file lacks; "": none
} Verdict;

/* Compiles and simulates strategies. Returns their verdicts, with exact bytes unless `rough`. */
const Verdict *verdicts_find(Arena *arena, const EvaluationContext *context,
                             const char *const *texts, int count, bool rough);

/* A strategy that was evaluated. */
typedef struct TriedStrategy {
    Candidate candidate;
    const char *text;
    Verdict verdict;
    bool good;  // hetucc accepts it, and its seconds are known
    bool exact; // its bytes are exact; else they are an upper bound
} TriedStrategy;

typedef Array(TriedStrategy *) TriedList;
