/* A strategy as the search handles it: pipelines of stages of devices, each with a mesh of at most
 * two axes, dp and tp. */
#ifndef PLANNER_SEARCH_CANDIDATE_H
#define PLANNER_SEARCH_CANDIDATE_H

#include "planner/search/devices.h"
#include "planner/search/model_limits.h"
#include "support/text.h"

typedef enum Recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_SELECTIVE,
    RECOMPUTE_FULL,
    RECOMPUTES
} Recompute;

enum { STAGE_MOST = 64 }; // of a pipeline

typedef struct SearchStage {
    int device_count;
    const int *devices;
    int data, tensor;          // of the mesh, the latter the faster
    const int *data_weights;   // NULL: equal
    const int *tensor_weights; // NULL: equal
    int first, end;            // layers
    Recompute recompute;
} SearchStage;

typedef struct SearchPipeline {
    int64_t microbatches, rows; // rows of a micro-batch
    int stage_count;
    SearchStage *stages;
} SearchPipeline;

/* The dimensions that tensor parallelism cuts, in the order of the rules. */
typedef struct SplitList {
    int count;
    const char *const *dims;
} SplitList;

typedef struct Candidate {
    const SplitList *splits;
    int zero, pipeline_count;
    SearchPipeline *pipelines;
    double seconds; // of a step by closed form
    double need;    // the most that a device is predicted to need, over what it may have
} Candidate;

/* The strategy's text, which hetucc takes: for the first `count` devices at least, of which those
 * that do not work are idle. */
void candidate_print(Text *out, const Candidate *candidate, const SearchModel *model,
                     const Fleet *devices, int count, const char *name);

/* A line for people: "2 stages [8, 4], dp 2 x tp 4, 16 micro-batches of 4 rows, zero 1, recompute
 * full". */
void candidate_describe(Text *out, const Candidate *candidate, const Fleet *devices);

/* Returns what a candidate is beside ZeRO, recomputing, layers by stage, weights and names: the
 * same text for those of one kind. */
const char *candidate_kind(Arena *arena, const Candidate *candidate, const Fleet *devices);

/* Returns a copy in an arena. */
Candidate candidate_copy(Arena *arena, const Candidate *candidate);

#endif
