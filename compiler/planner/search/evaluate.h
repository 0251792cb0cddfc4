/* Evaluation of a strategy: it is compiled as hetucc compiles it and then simulated, in a process
 * of its own that frees all memory and prints nothing.
 *
 *     EvaluationContext context = {.frontend = ..., ...};
 *     Text *answers = evaluations_run(arena, &context, evaluations, count);
 *         answers[i] is what `work` of evaluation i wrote; empty where the strategy is refused
 *
 * As many processes run at a time as there are processors. */
#ifndef PLANNER_SEARCH_EVALUATE_H
#define PLANNER_SEARCH_EVALUATE_H

#include "passes/pipeline.h"
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
    void (*work)(const EvaluationContext *context, const Unit *unit,
                 Text *out); // runs in the process and writes the result
    bool rough;              // arenas are packed fast and loosely: the bytes are an upper bound
} Evaluation;

Text *evaluations_run(Arena *arena, const EvaluationContext *context, const Evaluation *trials,
                      int count);

/* Returns the unit under a strategy, through all passes; NULL after errors. */
Unit *evaluation_compile(const EvaluationContext *context, const char *text, bool rough);

/* Returns the module of a unit that the search plans for. */
Module *evaluation_module(const EvaluationContext *context, const Unit *unit);

/* The result of evaluating a strategy. */
typedef struct Verdict {
    bool good;      // hetucc accepts the strategy; else all else is unset
    double seconds; // of a step; NAN: the cluster file lacks a rate (`unknown`)
    int worst;    // the device with the least memory left, or, where none is bounded, the one that
                  // needs most
    int64_t peak; // its bytes
    int64_t most; // the most bytes of any device
    int64_t lack; // bytes that device `worst` lacks; negative: that it has left
    int64_t states;   // bytes of the peak that parameters, gradients and the optimizer take
    int programs;     // number of programs of the source; one session may run all of them
    int fullest;      // the device with the least memory left in such a session
    int64_t together; // bytes of device `fullest`
    int busiest;      // the device that computes longest
    double computing, exposed, idle;    // fractions of the busiest device's step
    double others_exposed, others_idle; // the largest fractions of any device
    char unknown[240];
} Verdict;

/* Compiles and simulates strategies, roughly or to the byte. Returns their verdicts. */
const Verdict *verdicts_find(Arena *arena, const EvaluationContext *context,
                             const char *const *texts, int count, bool rough);

/* A strategy that was evaluated. */
typedef struct TriedStrategy {
    Candidate candidate;
    const char *text;
    Verdict verdict;
    bool good;  // hetucc accepts it
    bool exact; // its bytes are exact; else they are an upper bound
} TriedStrategy;

typedef Array(TriedStrategy *) TriedList;

#endif
