/* Hydraulis (Li et al. 2024, "Hydraulis: balancing large Transformer model training via
 * co-designing parallel strategies and data assignment") decides on a set of strategies, lists of
 * pipelines of unequal schemes; each batch then picks one of them and distributes its sequences.
 *
 *     hydraulis          {gpus, strategies (at most), longest, schemes [{tp, pp, a, b, c, tokens}],
 *                        lengths (a sample)} -> {strategies [[{tp, pp, count}]], objective (ms of a
 *                        step, the mean of batches drawn from the sample)}
 *     hydraulis-batch    {schemes, strategies, lengths}
 *                        -> {strategy, pipelines [{tp, pp, microbatches [[sequence]]}], objective
 *                            (ms)}
 *
 * For example, on 16 devices: four pipelines of tp 4 for a batch with long sequences, and one of tp
 * 8 with eight of tp 1 for a batch of one long sequence and many short ones.
 *
 * A micro-batch of sequences of s tokens holds at most `tokens`, and weighs sum(a s^2 + b s) ms; a
 * pipeline takes (the heaviest + c) (pp - 1 + v) for v > 0 micro-batches, a step as long as the
 * slowest pipeline. The bound of kind hydraulis holds for every strategy of these devices, with its
 * lengths as one batch. */
#pragma once

#include "planner/kinds/kinds.h"

json_t *hydraulis_plan(Arena *arena, Field input, Budget *budget);
json_t *hydraulis_certify(Arena *arena, Field input, Budget *budget);
json_t *hydraulis_batch_plan(Arena *arena, Field input, Budget *budget);
json_t *hydraulis_batch_certify(Arena *arena, Field input, Budget *budget);
