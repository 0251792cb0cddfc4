/* collect.h: calls of one kernel that follow one another, run by one launch over chunks of all
 * their tensors. C++ only.
 *
 * A kernel notes its call, with how many chunks the calls before it have; a block takes every so
 * many-th chunk, and finds its call by chunk_owner.
 */
#ifndef CUDA_COLLECT_H
#define CUDA_COLLECT_H

#include "cuda/views.h"

enum {
    COLLECT_THREADS = 256,
    COLLECT_CHUNK = 4096,
    COLLECT_BLOCKS = 8
}; // elements of a chunk; blocks of a multiprocessor

/* Chunks of so many elements, and blocks for so many chunks. */
static inline int64_t collect_chunks(int64_t count) {
    return (count + COLLECT_CHUNK - 1) / COLLECT_CHUNK;
}

static inline unsigned collect_blocks(int64_t chunks) {
    const int64_t most = (int64_t)COLLECT_BLOCKS * cuda_processors();
    return (unsigned)(chunks < most ? chunks : most);
}

/* The call that a chunk belongs to: the last one whose first chunk, `chunk`, is that or one
 * before. */
template <typename Call>
static __device__ inline const Call &chunk_owner(const Call *calls, int64_t count, int64_t chunk) {
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (calls[middle].chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    return calls[low];
}

/* Launches all collected calls of one kernel. */
typedef void CollectLaunch(void);

/* Starts collecting calls for `launch`; first launches collected calls of another kernel. */
void collect_for(CollectLaunch *launch);

/* Launches what was collected. ht_compute_stream does it before it answers, so that all work that
 * comes after such a kernel finds it done.
 */
void cuda_collected_launch(void);

#endif
