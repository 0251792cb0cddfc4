/* Probes: the costs of each layer on one small stage's devices, read from a compiled strategy. */
#pragma once

#include <stdbool.h>

typedef struct Arena Arena;
typedef struct EvaluationContext EvaluationContext;

/* The costs of one slot, a layer or what runs before or after all layers (model_slot), on the
 * slowest device with one micro-batch. */
typedef struct SlotCost {
    double seconds;            // seconds of its forward and backward parts for a micro-batch
    double once;               // seconds of operators that run once a step
    double parameters, states; // bytes of parameters, and of optimizer and other states
    double widest;             // bytes of its largest parameter
    // bytes when ZeRO also divides what tp replicates; set by profile_costs
    double cut_parameters, cut_states, cut_gradients;
    double gradients; // bytes of the parameters' gradients
    double trained;   // number of tensors with gradients; ZeRO gathers and reduces each alone
    double kept;      // bytes of activations that forward keeps for backward
    double work;      // the most temporary bytes while the slot runs
    double crossing;  // bytes of activations that later slots read from this or earlier slots
} SlotCost;

typedef struct Probe {
    bool good;
    double inputs;   // bytes of a device's inputs
    double peak;     // bytes of the memory peak of the compiled strategy
    double seconds;  // seconds of a step, all operators one after the other
    SlotCost *slots; // by slot: model->layer_count + 2 entries
} Probe;

/* Compiles strategies of one stage and reads their costs into `probes`. A probe is not good when
 * hetucc refuses the strategy or the cluster file lacks a rate. */
void probes_run(Arena *arena, const EvaluationContext *context, const char *const *texts, int count,
                Probe *probes);
