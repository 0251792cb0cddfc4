/* Chooses the GPU of a rank: the rank's slot modulo the number of GPUs of its machine.
 *
 *     4 GPUs, slots 0 1 2 3 4 5  ->  GPUs 0 1 2 3 0 1 (ranks that share a GPU exchange through the
 *                                    host, device.cu)
 */
#include "cuda/cuda.h"

#include "transport/world.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns the slot that heturun gave to this rank (HETU_SLOT), which does not change when other
 * slots are lost; else the rank's number on its machine. */
static int slot_number(void) {
    const char *text = getenv("HETU_SLOT");
    char *end = nullptr;
    const long slot = text ? strtol(text, &end, 10) : 0;
    if (text && (end == text || *end || slot < 0 || slot > 1 << 20))
        ht_fail("HETU_SLOT=%s is no number of a slot", text);
    return text ? (int)slot : world_node_rank();
}

const char *choose_gpu(int *number) {
    static char missing[256];
    int count = 0;
    cudaError_t found = cudaGetDeviceCount(&count);
    if (found != cudaSuccess || count == 0) {
        snprintf(missing, sizeof missing,
                 "no CUDA device was found (%s); run this program where there is one, or compile "
                 "it with --backend=cpu",
                 found == cudaSuccess ? "there are none" : cudaGetErrorString(found));
        return missing;
    }
    *number = slot_number() % count;
    return NULL;
}
