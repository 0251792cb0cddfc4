/* Probes: what the devices of one small stage do with each layer of the model, read from a compiled
 * strategy by its rules' operations and the plans of its conversions. */
#ifndef PLANNER_SEARCH_PROBE_H
#define PLANNER_SEARCH_PROBE_H

#include "planner/search/evaluate.h"

/* Of one layer, or of what comes before or behind all of them (model_slot): on the slowest device,
 * with one micro-batch. */
typedef struct SlotCost {
    double seconds;            // of its forward and backward parts
    double once;               // seconds a step: what micro-batches have no part in
    double parameters, states; // bytes
    double widest;             // bytes of its largest parameter
    double cut_parameters, cut_states,
        cut_gradients; // bytes where the devices along tp share also what tp does not cut; set by
                       // profile_costs
    double gradients;  // bytes
    double trained;    // parameters: ZeRO gathers and sums each by itself
    double kept;       // bytes that forward leaves for backward
    double work;       // the most bytes that are needed beside those while it runs
    double crossing;   // bytes that it hands to later layers
} SlotCost;

typedef struct Probe {
    bool good;
    double inputs;   // bytes
    double peak;     // bytes, as hetucc counts
    double seconds;  // all that a step takes, one after the other
    SlotCost *slots; // model->layer_count + 2
} Probe;

/* Probes strategies of one stage; those that hetucc refuses, and those whose seconds the cluster
 * does not say, are not good. */
void probes_run(Arena *arena, const EvaluationContext *shop, const char *const *texts, int count,
                Probe *probes);

#endif
