/* CUDA graphs: the first step issues calls one by one, the second records them, later ones replay.
 *
 * A recording depends only on data that are fixed with its program: the addresses of parameters,
 * inputs and arena, the roles' call lists, the channel. Numbers that differ between steps are in
 * CudaStep. HETU_GRAPH=0 turns recording off. */
#include "transport/watchdog/watchdog.h"
#include "device/device.h"
#include "cuda/streams.h"

#include <stdlib.h>
#include <string.h>

struct DeviceRecording {
    cudaGraphExec_t exec; // NULL: not recorded yet
};

static bool may_record(void) {
    const char *choice = getenv("HETU_GRAPH");
    return channel_of_device()->records && !cuda_looked_at() && !(choice && !strcmp(choice, "0"));
}

static void record(DeviceRecording *recording, void (*issue)(void *), void *argument) {
    cudaGraph_t graph;
    HT_CUDA(cudaStreamBeginCapture(ht_compute_stream(), cudaStreamCaptureModeThreadLocal));
    issue(argument);
    HT_CUDA(cudaStreamEndCapture(ht_compute_stream(), &graph));
    HT_CUDA(cudaGraphInstantiate(&recording->exec, graph, 0));
    HT_CUDA(cudaGraphDestroy(graph));
}

extern "C" void device_run(DeviceRecording **recording, void (*issue)(void *), void *argument) {
    fail_noted(cuda_noted());
    watchdog_begin_wait();
    if (*recording && !(*recording)->exec) record(*recording, issue, argument);
    if (*recording) HT_CUDA(cudaGraphLaunch((*recording)->exec, ht_compute_stream()));
    else issue(argument);
    if (!*recording && may_record()) *recording = new DeviceRecording();
    cuda_step_finish();
    watchdog_end_wait();
    fail_noted(NULL);
}

extern "C" void device_forget(DeviceRecording *recording) {
    if (recording && recording->exec) HT_CUDA(cudaGraphExecDestroy(recording->exec));
    delete recording;
}
