/* Asks cuDNN itself for plans of attention for GPUs that are not here.
 *
 *     plans [--all] CAPABILITY...      900: compute capability 9.0; --all: more shapes
 *
 * Prints a line for each capability and graph: the bytes of workspace of its plan, or why there is none; exit status 1 when one is missing.
 * The driver's functions that cuDNN calls while it makes a plan are those of Inputs/driver.c.
 */
#include "cuda/cudnn_attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What cuDNN would write of a GPU with this capability: the figures of an H100. */
static std::string described(int capability)
{
    char text[2048];
    snprintf(
        text, sizeof text,
        "{\"version\":1,\"deviceName\":\"a GPU\",\"deviceVer\":%d,\"driverVer\":13000,\"regsPerBlock\":65536,\"multiProcessorCount\":132,"
        "\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,"
        "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"
        "\"maxBlockSize\":[1024,1024,64],\"maxGridSize\":[2147483647,65535,65535],\"pciDeviceId\":0,\"isTccDriver\":0,"
        "\"supportCoopLaunch\":1,\"totalGlobalMem\":85029158912,\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,"
        "\"l2CacheSize\":52428800,\"cudaDeviceId\":0}",
        capability);
    return text;
}

/* q, k and v with the strides of slices of one tensor, as their gradients. */
static CudnnAttention attention(int64_t s, int64_t t, int64_t heads, int64_t groups, int64_t d, bool causal)
{
    const int64_t own = heads * d, all = own + 2 * groups * d;
    return {2, s, t, heads, groups, d, causal, 0.125f, {all, all, all, own, own, all, all, all}};
}

static bool shows(int capability, const CudnnDevice &device, const CudnnAttention &a, bool backward)
{
    CudnnGraph graph;
    if (backward)
        cudnn_attention_backward(&graph, a);
    else
        cudnn_attention_forward(&graph, a);
    const CudnnPlan plan(graph, device, true);
    printf("%d %s s %ld t %ld heads %ld/%ld d %ld%s: ", capability, backward ? "backward" : "forward", (long)a.s, (long)a.t, (long)a.heads,
           (long)a.groups, (long)a.d, a.causal ? " causal" : "");
    if (plan.failed())
        printf("no plan: %s\n", plan.why().c_str());
    else
        printf("%ld bytes\n", (long)plan.workspace_bytes());
    return !plan.failed();
}

/* The first two are those of every test. */
static const CudnnAttention cases[] = {
    attention(1024, 1024, 12, 12, 64, true), attention(77, 77, 8, 2, 128, false), attention(12, 12, 4, 2, 8, true),
    attention(1, 1, 2, 2, 16, true),         attention(200, 200, 6, 3, 24, true), attention(130, 70, 3, 1, 40, true),
    attention(65, 129, 4, 4, 80, false),     attention(1, 200, 4, 2, 128, false), attention(2048, 2048, 32, 8, 128, true),
    attention(100, 260, 5, 5, 72, true),     attention(16, 16, 2, 2, 112, true),  attention(4096, 4096, 16, 16, 128, false),
};

int main(int count, char **argument)
{
    const bool more = count > 1 && !strcmp(argument[1], "--all");
    const size_t shown = more ? sizeof cases / sizeof cases[0] : 2;
    bool all = true;
    printf("cuDNN %zu\n", cudnnGetVersion());
    for (int i = more ? 2 : 1; i < count; i++) {
        const CudnnDevice device(described(atoi(argument[i])));
        for (size_t n = 0; n < shown; n++)
            for (bool backward : {false, true})
                all = shows(atoi(argument[i]), device, cases[n], backward) && all;
    }
    return !all;
}
