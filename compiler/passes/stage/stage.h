/* Declarations that the files of pass stage share. assign_stages.c finds the stage of each
 * operator. tied_weight_gradients.c finds the terms that each stage adds. padding_lengths.c handles
 * padding lengths. stage.c makes the templates' operators. */
#pragma once

#include "ir/unit.h"
#include "strategy/layer_placement.h"

/* A value in one visit of a stage: the value itself in the first visit that has it, in any other
 * visit a copy, the result of a conversion that passes the value on. */
typedef struct Handed Handed;
struct Handed {
    int stage, visit;
    Value *value; // the copy; NULL: the value itself, in the first visit that has it
    int order;    // run_order of that first visit
    Handed *next;
};

typedef Array(Value *) Summands;

typedef struct Staging {
    Module *module;
    const ModuleLinks *links;
    Arena *arena;    // scratch
    int values, ops; // counts of the module before the pass
    int *readers;    // by value id: number of reading operators, outputs and the loss included
    bool *dissolved; // by op index: an addition that a stage_union replaces
    bool *loose;     // by op index: an addition that may be dissolved to save a message
    const PipelineRun *run; // the first pipeline of the current template
    const Module *shorter;  // the variant of the model with the template's padding lengths; NULL:
                            // the template has the module's lengths
    Array(const Layer *) layers;
    Placement *placement; // placement of the layers in the template
    int *visit;           // by op index: its visit in the template; -1: outside of the loop
    Value **copy;         // by value id: its copy in the template, for values that the loop makes
    Value **held;    // at stage * values + value id: the stage's copy, if the loop only reads it
    Handed **handed; // by value id, for values that the loop makes: copies of the value in visits;
                     // the copies of each stage begin with the first visit that has the value
    Summands *summands; // by value id: for values that are read after the loop, the contributions
                        // of the stages of all templates
    Value **total;      // by value id: the union of the contributions
    Ops turns[4], unions[4]; // by loop position: its operators, and the unions of its sums
} Staging;

/* Returns whether an operator of the loop makes the value. */
static inline bool in_loop(const Value *value) {
    return value && value->def && loop_repeats(value->def->loop);
}

/* Returns whether the variant of each pipeline's padding lengths has the module's operators,
 * differs only inside the loop, and is safe (padding_is_safe); reports an error otherwise. */
bool lengths_fit(const Module *module, const ModuleLinks *links);

/* Sets the result shapes and integer arguments of an operator's copy to the current template's
 * lengths. Constants and sizes keep the values of the padded batch. */
void take_lengths(const Staging *staging, const Op *op, Op *copy);

/* Finds the template's visits, and the visit of each operator of the loop. Returns false after
 * errors: layers without a stage, or stages against the data flow. */
bool find_visits(Staging *staging);

/* Returns the stage that runs an operator of the module, by index in module->templates->stages. */
int stage_of(const Staging *staging, const Op *op);

/* Marks as loose the additions whose results only operators after the loop need. `read`: by value
 * id, whether an operator after the loop reads the value. */
void find_loose(Staging *staging, const bool *read);

/* Returns the terms of a value, each in one visit: the value itself, or operands of additions over
 * several visits without another reader. Marks such additions as dissolved. */
Summands find_summands(Staging *staging, Value *value);

/* ---- padding safety (padding_safety/) ---- */

/* Returns whether padding has no effect on results; reports an error otherwise. `module` has the
 * strategy's lengths, `other` a pipeline's shorter lengths, written at `at`; their operators
 * correspond. Padding is the elements that tensors of `module` have and tensors of `other` lack. */
bool padding_is_safe(const Module *module, const Module *other, Position at);
