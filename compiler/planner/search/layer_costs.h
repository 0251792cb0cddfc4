/* The profile of a model: what its layers cost on each class of devices, for any degree of tensor
 * parallelism, rows of a micro-batch and kind of recomputing, from a few probes.
 *
 * Between two probed numbers of rows all is linear in the rows, between two probed degrees t linear
 * in 1/t: what is cut, and what is not, are told apart by that. How recomputing changes a layer is
 * taken from one probe each.
 */
#ifndef PLANNER_SEARCH_LAYER_COSTS_H
#define PLANNER_SEARCH_LAYER_COSTS_H

#include "planner/search/candidate.h"
#include "planner/search/probe.h"

/* By slot (model_slot). */
typedef struct Costs {
    int group;
    double tensor, rows;
    SlotCost *slots[RECOMPUTES];
    double inputs; // bytes of the whole batch
} Costs;

typedef struct Profile {
    Arena *arena;
    const EvaluationContext *shop;
    const SplitList *splits;
    struct Grid *grids; // by group of devices
    bool cuts;          // the batch may run in micro-batches
    bool
        wide; // tensors may be cut across hosts and classes, and ZeRO cut what copies along tp have
    const Probe *modes[RECOMPUTES]; // NULL: hetucc refuses it
    const Probe *plain;             // what those of modes are beside
    Array(Costs *) known;
} Profile;

/* Probes the model under these splits, on the devices of a host at most, or with `wide` on more of
 * them. False after an error: what keeps all probes from being taken. */
bool profile_run(Arena *arena, const EvaluationContext *shop, const SplitList *splits, bool wide,
                 Profile *profile);

/* Returns whether stages may recompute so. */
bool profile_allows(const Profile *profile, Recompute recompute);

/* Returns the costs on a device of a group that has 1 / tensor of what is cut, and so many rows
 * of a micro-batch. */
const Costs *profile_costs(Profile *profile, int group, double tensor, double rows);

/* Returns the highest degree of tensor parallelism on devices of a group. */
int profile_most_tensor(const Profile *profile, int group);

/* Returns a strategy of one stage on the first devices of a group: `tensor` along tp,
 * micro-batches of `rows` rows; 0: the batch as a whole. */
const char *probe_text(Arena *arena, const EvaluationContext *shop, const SplitList *splits,
                       int group, int tensor, int64_t rows, Recompute recompute, int zero);

/* Returns the rows for small and larger micro-batches of which a batch is made, as probes use
 * them; how many of the two there are. */
int probe_rows(const SearchModel *model, int64_t rows[2]);

#endif
