/* multi_tensor.h: joins consecutive calls of one kernel into one launch over all tensors. C++ only.
 *
 *     call 0: 10000 elements     chunks 0 to 2
 *     call 1: 5000 elements      chunks 3 and 4
 *     block b of a launch takes chunks b, b + gridDim.x, ..., and finds each chunk's call by
 *     chunk_owner
 */
#pragma once

#include "cuda/views.h"

enum {
    COLLECT_THREADS = 256,
    COLLECT_CHUNK = 4096, // elements of a chunk
    COLLECT_BLOCKS = 8    // most blocks for each multiprocessor
};

/* Return the number of chunks of `count` elements, and the number of blocks for `chunks` chunks. */
static inline int64_t collect_chunks(int64_t count) {
    return (count + COLLECT_CHUNK - 1) / COLLECT_CHUNK;
}

static inline unsigned collect_blocks(int64_t chunks) {
    const int64_t most = (int64_t)COLLECT_BLOCKS * cuda_processors();
    return (unsigned)(chunks < most ? chunks : most);
}

/* Returns the call of a chunk: the last call whose first chunk is at or before `chunk`. */
template <typename Call>
static __device__ inline const Call &chunk_owner(const Call *calls, int64_t count, int64_t chunk) {
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (calls[middle].chunk <= chunk) low = middle;
        else high = middle;
    }
    return calls[low];
}

/* Launches all collected calls of one kernel. */
typedef void CollectLaunch(void);

inline CollectLaunch *collect_pending; // launches the waiting calls; nullptr: no calls wait

/* Launches the collected calls. ht_compute_stream calls it first: later work sees the results. */
inline void cuda_collected_launch(void) {
    CollectLaunch *launch = collect_pending;
    collect_pending = nullptr;
    if (launch) launch();
}

/* Starts collecting calls for `launch`; first launches collected calls of another kernel. */
inline void collect_for(CollectLaunch *launch) {
    if (collect_pending != launch) cuda_collected_launch();
    collect_pending = launch;
}
