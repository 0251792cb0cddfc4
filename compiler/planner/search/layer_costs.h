/* The profile of a model: what each layer costs on each class of devices, for any degree of tensor
 * parallelism, rows of a micro-batch and recomputation, interpolated from a few probes.
 *
 * Costs are linear in the rows between two probed numbers of rows. Costs are linear in 1/t between
 * two probed degrees t, since tensor parallelism divides only a part of the costs. One probe for
 * each way to recompute shows how this way changes each layer.
 *
 *     probes: tp 1 and 8, rows 1 and 4, 2 layers  ->  any tp, any rows, all layers
 */
#pragma once

#include "planner/search/candidate.h"
#include "support/array.h"

#include <stdbool.h>

typedef struct EvaluationContext EvaluationContext;
typedef struct Probe Probe;
typedef struct SearchModel SearchModel;
typedef struct SlotCost SlotCost;

/* The costs on a group of devices at one degree and number of rows, by slot (model_slot). */
typedef struct Costs {
    int group;
    double tensor, rows; // degree of tensor parallelism; rows of a micro-batch
    SlotCost *slots[RECOMPUTES];
    double inputs; // bytes of the inputs for the whole batch
} Costs;

typedef struct Profile {
    Arena *arena;
    const EvaluationContext *context;
    const SplitList *splits;
    struct Grid *grids; // by group of devices: its probes
    bool cuts;          // the batch may be divided into micro-batches
    // tensors may be cut across hosts and classes, and ZeRO may divide what tp replicates
    bool wide;
    const Probe *modes[RECOMPUTES]; // by way to recompute; NULL: hetucc refuses it
    const Probe *plain;             // the probe without recomputation that `modes` is compared with
    Array(Costs *) known;
} Profile;

/* Probes the model with the dimensions of `splits` cut, on devices of one host, or of several if
 * `wide` is set. Returns false after an error when the probes fail. */
bool profile_run(Arena *arena, const EvaluationContext *context, const SplitList *splits, bool wide,
                 Profile *profile);

/* Returns whether stages may recompute in a given way. */
bool profile_allows(const Profile *profile, Recompute recompute);

/* Returns the costs on a device of a group that has 1 / tensor of cut tensors, and `rows` rows. */
const Costs *profile_costs(Profile *profile, int group, double tensor, double rows);

/* Returns the highest degree of tensor parallelism on devices of a group. */
int profile_most_tensor(const Profile *profile, int group);

/* The numbers that describe a probe's strategy. */
typedef struct ProbeShape {
    int group, tensor; // index of the devices' group; degree of tensor parallelism
    int64_t rows;      // rows of a micro-batch; 0: the batch as a whole
    Recompute recompute;
    int zero;
} ProbeShape;

/* Returns the text of a strategy of one stage on the first devices of a group. */
const char *probe_text(Arena *arena, const EvaluationContext *context, const SplitList *splits,
                       const ProbeShape *shape);

/* Sets rows[0] and rows[1] to a small and a larger number of rows of a micro-batch, for probes.
 * Returns how many differ, 1 or 2; 0: the batch is not divided. */
int probe_rows(const SearchModel *model, int64_t rows[2]);
