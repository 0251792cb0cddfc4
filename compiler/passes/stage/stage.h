/* What the files of pass stage share: visits.c says in which stage an operator runs, partial_sums.c
 * what of a sum each stage adds up, stage.c makes the bodies. */
#ifndef PASSES_STAGE_STAGE_H
#define PASSES_STAGE_STAGE_H

#include "ir/unit.h"
#include "strategy/place.h"

/* What a value is in another visit than the one in which its stage makes it or gets it first. */
typedef struct Handed Handed;
struct Handed {
    int stage, visit;
    Value *value; // NULL: the value itself, which is at home there
    int order;    // of the visit at home: when it runs
    Handed *next;
};

typedef Array(Value *) Summands;

typedef struct Staging {
    Module *module;
    const ModuleLinks *links;
    Arena *arena;    // scratch
    int values, ops; // of the module before the pass
    int *readers;    // by value id: operators that read it, outputs and the loss included
    bool *dissolved; // by op index: an addition that the stages and the union make instead
    bool *loose; // by op index: an addition that may be dissolved, so that nothing goes from visit
                 // to visit for it
    const PipelineRun *run; // the first of the body at hand
    const Module *shorter;  // the model with the body's lengths, operator by operator the same;
                            // NULL: it has the module's
    Array(const Layer *) layers;
    Placement *placement; // of the layers in the body
    int *visit;           // by op index: of the body's visits; -1 outside of the loop
    Value **copy;         // by value id: of what the loop makes, in the body
    Value **held;         // by stage and value id: of what the loop only reads, on that stage
    Handed **handed; // by value id: of what the loop makes, in the body, on each stage, the first
                     // for where it is at home there
    Summands *summands;      // by value id: of what is read behind the loop, what the stages of all
                             // bodies give
    Value **total;           // by value id: of the same, the union of the summands
    Ops turns[4], unions[4]; // by turn
} Staging;

/* Whether an operator of the loop makes a value. */
static inline bool in_loop(const Value *value) {
    return value && value->def && loop_repeats(value->def->loop);
}

/* Whether the model with the lengths of each pipeline is the module's, operator by operator, and
 * differs only inside the loop; else false, after an error. */
bool lengths_fit(const Module *module, const ModuleLinks *links);

/* Gives the copy of an operator of the module for the body at hand the body's lengths: the shapes
 * of its results and of its arguments. All else stays: numbers and sizes are the padded batch's. */
void take_lengths(const Staging *staging, const Op *op, Op *copy);

/* Finds the body's visits, and for each operator of the loop the one that runs it. False after
 * errors: layers that no stage has, or that stand against the flow of the data. */
bool find_visits(Staging *staging);

/* The stage that runs operator i of the module, of module->templates->stages. */
int stage_of(const Staging *staging, const Op *op);

/* Finds the additions that only lead to what is read behind the loop; `read`: by value id, whether
 * it is read there as it is. */
void find_loose(Staging *staging, const bool *read);

/* What a value adds up, each summand in one visit: the value itself, or what additions that nobody
 * else reads put together from several visits. */
Summands find_summands(Staging *staging, Value *value);

#endif
