/* The shuffled order of an epoch, a permutation of the dataset's rows for each epoch. Every rank
 * computes the place of a row by counters (base/philox.h), without a table. */
#include "session/data/dataset.h"

#include "base/philox.h"

enum { ROUNDS = 8 };

/* Computes one pass of a Feistel network over 2 * `bits` bits. In each round the halves swap, and
 * one half is XORed with a hash of the other. */
static uint64_t feistel(uint64_t seed, uint64_t stream, int bits, uint64_t x) {
    uint64_t mask = ((uint64_t)1 << bits) - 1, left = x >> bits, right = x & mask;
    for (int round = 0; round < ROUNDS; round++) {
        RandomBlock block = random_block(seed, stream, (uint64_t)round << 32 | right);
        uint64_t mixed = left ^ (block.at[0] & mask);
        left = right;
        right = mixed;
    }
    return left << bits | right;
}

int64_t permutation_place(uint64_t seed, uint64_t stream, int64_t number, int64_t count,
                          int64_t index) {
    int bits = 1;
    while (bits < 31 && (int64_t)1 << 2 * bits < count) bits++;
    uint64_t place = (uint64_t)index, own = random_stream_of_step((int64_t)stream, number);
    do place = feistel(seed, own, bits, place);
    while (place >= (uint64_t)count);
    return (int64_t)place;
}

int64_t dataset_row(const RowsPlan *plan, int64_t row) {
    int64_t index = plan->position + row, epoch = index / plan->rows, place = index % plan->rows;
    return plan->in_order ? place
                          : permutation_place(plan->seed, plan->stream, epoch, plan->rows, place);
}
