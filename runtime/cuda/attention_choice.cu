/* Chooses who computes attention, cuDNN or attention.cu: cuDNN on GPUs of compute capability 9 or
 * later, if it can compute this shape; HETU_ATTENTION=own or cudnn overrides the choice. */
#include "cuda/attention_choice.h"

#include <stdlib.h>
#include <string.h>

#ifdef HETU_CUDNN
static bool is_recent(void) {
    int device = 0, major = 0;
    HT_CUDA(cudaGetDevice(&device));
    HT_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    return major >= 9;
}
#endif

static bool find_choice(void) {
    const char *choice = getenv("HETU_ATTENTION");
    if (choice && !strcmp(choice, "own")) return false;
    if (choice && *choice && strcmp(choice, "cudnn"))
        ht_fail("HETU_ATTENTION=%s: it is own or cudnn", choice);
#ifdef HETU_CUDNN
    return (choice && *choice) || is_recent();
#else
    if (choice && *choice)
        ht_fail("HETU_ATTENTION=cudnn, but this program was built without cuDNN; build it with "
                "make CUDNN=1");
    return false;
#endif
}

static bool wants_cudnn(void) {
    static const bool wants = find_choice();
    return wants;
}

bool attention_elsewhere(const AttentionShape &a, const ht_call *call) {
#ifdef HETU_CUDNN
    return wants_cudnn() && cudnn_attention(a, call);
#else
    (void)a, (void)call;
    return wants_cudnn();
#endif
}

bool attention_backward_elsewhere(const AttentionShape &a, const ht_call *call) {
#ifdef HETU_CUDNN
    return wants_cudnn() && cudnn_attention_gradient(a, call);
#else
    (void)a, (void)call;
    return wants_cudnn();
#endif
}
