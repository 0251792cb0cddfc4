/* Asks cuDNN itself for plans of attention for GPUs that are not here.
 *
 *     plans CAPABILITY...      900: compute capability 9.0
 *
 * Prints a line for each capability and graph: the bytes of workspace of its plan, or why there is none; exit status 1 when one is missing.
 * The driver's functions that cuDNN calls while it makes a plan are those of driver.c.
 */
#include "cuda/cudnn_attention.h"

#include <stdio.h>
#include <stdlib.h>

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

/* q, k and v as slices of one tensor, as their gradients are. */
static CudnnAttention attention(int64_t rows, int64_t heads, int64_t groups, int64_t d, bool causal)
{
    const int64_t own = heads * d, all = own + 2 * groups * d;
    return {2, rows, rows, heads, groups, d, causal, 0.125f, {all, all, all, own, own, all, all, all}};
}

static bool shows(int capability, const CudnnDevice &device, const CudnnAttention &a, bool backward)
{
    CudnnGraph graph;
    if (backward)
        cudnn_attention_backward(&graph, a);
    else
        cudnn_attention_forward(&graph, a);
    const CudnnPlan plan(graph, device, true);
    printf("%d %s s %ld heads %ld/%ld d %ld%s: ", capability, backward ? "backward" : "forward", (long)a.s, (long)a.heads, (long)a.groups,
           (long)a.d, a.causal ? " causal" : "");
    if (plan.failed())
        printf("no plan: %s\n", plan.why().c_str());
    else
        printf("%ld bytes\n", (long)plan.workspace_bytes());
    return !plan.failed();
}

int main(int count, char **argument)
{
    const CudnnAttention cases[] = {attention(1024, 12, 12, 64, true), attention(77, 8, 2, 128, false)};
    bool all = true;
    printf("cuDNN %zu\n", cudnnGetVersion());
    for (int i = 1; i < count; i++) {
        const CudnnDevice device(described(atoi(argument[i])));
        for (const CudnnAttention &a : cases)
            for (bool backward : {false, true})
                all = shows(atoi(argument[i]), device, a, backward) && all;
    }
    return !all;
}
