/* A candidate: a strategy as the search handles it. A candidate has pipelines of stages, each with
 * a mesh of at most two axes, dp and tp.
 *
 *     candidate   splits {heads, ffn}, zero 1, one pipeline, 8 micro-batches of 4 rows,
 *                 stages: 8 devices, data 2, tensor 4, layers 0-5; 8 devices, layers 6-11
 *     strategy    split batch:dp heads:tp ffn:tp   zero 1   pipeline microbatches(8) rows(4)
 *                   stage devices(0-7) mesh(dp:2, tp:4) layers(0-5)
 *                   stage devices(8-15) mesh(dp:2, tp:4) layers(6-11)
 */
#pragma once

#include <stdint.h>

typedef struct Arena Arena;
typedef struct EvaluationContext EvaluationContext;
typedef struct Fleet Fleet;
typedef struct Text Text;

typedef enum Recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_SELECTIVE,
    RECOMPUTE_FULL,
    RECOMPUTES
} Recompute;

enum { STAGE_MOST = 64 }; // limit of the stages of a pipeline

typedef struct SearchStage {
    int device_count;
    const int *devices;
    int data, tensor;          // degrees of dp and tp; tp is the inner axis
    const int *data_weights;   // `data` weights of positions along dp; NULL: equal
    const int *tensor_weights; // `tensor` weights of positions along tp; NULL: equal
    int first, end;            // layers [first, end)
    Recompute recompute;
} SearchStage;

typedef struct SearchPipeline {
    int64_t microbatches, rows; // rows: of one micro-batch; 0: the batch runs as a whole
    int stage_count;
    SearchStage *stages;
} SearchPipeline;

/* The names of the dimensions that tensor parallelism cuts, in the order of its rules. */
typedef struct SplitList {
    int count;
    const char *const *dims;
} SplitList;

typedef struct Candidate {
    const SplitList *splits;
    int zero, pipeline_count;
    SearchPipeline *pipelines;
    double seconds; // seconds of a step, by closed form
    double need;    // the largest ratio of a device's predicted bytes to its allowed bytes
} Candidate;

/* Prints strategy `name`. Unused devices below `count`, or before the last used one, are idle. */
void candidate_print(Text *out, const Candidate *candidate, const EvaluationContext *context,
                     int count, const char *name);

/* Prints one line for people, without a line end: "8 h100 dp2 tp4 6 layers full > 8 h100 dp2 tp4 6
 * layers; 16 x 4 rows; zero 1; tp cuts heads ffn". */
void candidate_describe(Text *out, const Candidate *candidate, const Fleet *devices);

/* Returns a text that is equal for candidates of the same kind. Such candidates differ only in
 * ZeRO, recomputation, layers by stage, weights and cut dimensions. */
const char *candidate_kind(Arena *arena, const Candidate *candidate, const Fleet *devices);

/* Returns a copy in an arena; it shares `splits` with the original. */
Candidate candidate_copy(Arena *arena, const Candidate *candidate);
