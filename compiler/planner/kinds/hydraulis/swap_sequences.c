/* Moves and swaps sequences between micro-batches while the step gets shorter. */
#include "planner/kinds/hydraulis/pack_sequences.h"

#include <math.h>

enum { MOST_TRIALS = 200000 };

/* A micro-batch with the sequences that are in it. */
typedef struct Bin {
    double weight;
    int tokens, count; // number of its tokens; number of its sequences
} Bin;

typedef struct SequenceExchanges {
    const Schemes *schemes;
    const Batch *batch;
    const Dispatch *dispatch;
    SequencePlaces at;
    int *first; // by pipeline: the index of its first bin
    Bin *bins;
    double *times; // by pipeline: ms of a step
    int trials;
} SequenceExchanges;

static const Scheme *scheme_of(const SequenceExchanges *moves, int pipeline) {
    return &moves->schemes->at[moves->dispatch->schemes[pipeline]];
}

static Bin *bin_of(const SequenceExchanges *moves, int sequence) {
    return &moves->bins[moves->first[moves->at.pipelines[sequence]] +
                        moves->at.microbatches[sequence]];
}

/* Adds a sequence to its bin (sign 1), or removes it (sign -1). */
static void put(const SequenceExchanges *moves, int sequence, int sign) {
    Bin *bin = bin_of(moves, sequence);
    bin->weight +=
        sign *
        moves->batch->weights[moves->dispatch->schemes[moves->at.pipelines[sequence]]][sequence];
    bin->tokens += sign * moves->batch->lengths[sequence];
    bin->count += sign;
}

static void move_to(const SequenceExchanges *moves, int sequence, int pipeline, int microbatch) {
    put(moves, sequence, -1);
    moves->at.pipelines[sequence] = pipeline;
    moves->at.microbatches[sequence] = microbatch;
    put(moves, sequence, 1);
}

/* Returns a pipeline's ms: (heaviest + c) (pp - 1 + v), where v micro-batches are not empty. */
static double time_of(const SequenceExchanges *moves, int pipeline) {
    const Scheme *scheme = scheme_of(moves, pipeline);
    double heaviest = 0;
    int v = 0;
    for (int m = 0; m < moves->dispatch->microbatches[pipeline]; m++) {
        const Bin *bin = &moves->bins[moves->first[pipeline] + m];
        v += bin->count > 0;
        heaviest = fmax(heaviest, bin->count ? bin->weight : 0);
    }
    return v ? (heaviest + scheme->c) * (scheme->pp - 1 + v) : 0;
}

static bool has_room(const SequenceExchanges *moves, int sequence) {
    return bin_of(moves, sequence)->tokens <=
           scheme_of(moves, moves->at.pipelines[sequence])->tokens;
}

static int slowest(const SequenceExchanges *moves) {
    int most = 0;
    for (int p = 1; p < moves->dispatch->count; p++)
        most = moves->times[p] > moves->times[most] ? p : most;
    return most;
}

/* Returns whether both pipelines' new times are below the larger old time; if so, sets `times`. */
static bool is_faster(SequenceExchanges *moves, int a, int b) {
    double most = fmax(moves->times[a], moves->times[b]) * (1 - 1e-9), own = time_of(moves, a),
           other = time_of(moves, b);
    moves->trials++;
    if (own >= most || other >= most) return false;
    moves->times[a] = own;
    moves->times[b] = other;
    return true;
}

/* Moves a sequence to the first micro-batch for which is_faster holds; returns false if none. */
static bool move_helps(SequenceExchanges *moves, int sequence) {
    int pipeline = moves->at.pipelines[sequence], microbatch = moves->at.microbatches[sequence];
    for (int p = 0; p < moves->dispatch->count; p++)
        for (int m = 0; m < moves->dispatch->microbatches[p]; m++) {
            if (p == pipeline && m == microbatch) continue;
            move_to(moves, sequence, p, m);
            if (has_room(moves, sequence) && is_faster(moves, pipeline, p)) return true;
            move_to(moves, sequence, pipeline, microbatch);
        }
    return false;
}

static void change_places(const SequenceExchanges *moves, int a, int b) {
    int pipeline = moves->at.pipelines[a], microbatch = moves->at.microbatches[a];
    move_to(moves, a, moves->at.pipelines[b], moves->at.microbatches[b]);
    move_to(moves, b, pipeline, microbatch);
}

/* Swaps a sequence with the first one for which is_faster holds; returns false if none. */
static bool change_helps(SequenceExchanges *moves, int sequence) {
    for (int other = 0; other < moves->batch->count; other++) {
        int a = moves->at.pipelines[sequence], b = moves->at.pipelines[other];
        if (bin_of(moves, sequence) == bin_of(moves, other) ||
            moves->batch->lengths[sequence] == moves->batch->lengths[other])
            continue;
        change_places(moves, sequence, other);
        if (has_room(moves, sequence) && has_room(moves, other) && is_faster(moves, a, b))
            return true;
        change_places(moves, sequence, other);
    }
    return false;
}

/* Moves or swaps a sequence of the slowest pipeline to shorten the step, or returns false. */
static bool step(SequenceExchanges *moves) {
    int pipeline = slowest(moves);
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < moves->batch->count && moves->trials < MOST_TRIALS; i++)
            if (moves->at.pipelines[i] == pipeline && (way ? change_helps : move_helps)(moves, i))
                return true;
    return false;
}

double moves_make(Arena *arena, const Schemes *schemes, const Batch *batch,
                  const Dispatch *dispatch, SequencePlaces places) {
    SequenceExchanges moves = {schemes,
                               batch,
                               dispatch,
                               places,
                               arena_array(arena, int, dispatch->count),
                               .times = arena_array(arena, double, dispatch->count)};
    int bins = 0;
    for (int p = 0; p < dispatch->count; p++) {
        moves.first[p] = bins;
        bins += dispatch->microbatches[p];
    }
    moves.bins = arena_array(arena, Bin, bins);
    for (int i = 0; i < batch->count; i++) put(&moves, i, 1);
    for (int p = 0; p < dispatch->count; p++) moves.times[p] = time_of(&moves, p);
    while (step(&moves));
    return moves.times[slowest(&moves)];
}
