/* Numbers that kernels read and that differ between steps, and faults that kernels report. */
#include "device/device.h"
#include "cuda/autotune.h"
#include "cuda/streams.h"

#include <string.h>
#include <vector>

static_assert((int)CUDA_HYPER == (int)DEVICE_HYPER, "a step has the numbers of an optimizer");

/* A message with which a kernel ends the program: cuda_report's text, and the operator that ran. */
struct Report {
    const char *format, *where;
    ht_view piece; // piece.rank 0: no piece
};

static struct {
    CudaStep *device, *host;     // host: pinned memory
    CudaFault *fault, *seen;     // seen: pinned copy of *fault
    std::vector<Report> reports; // report number n is reports[n - 1]
} step;

void cuda_step_open(void) {
    HT_CUDA(cudaMalloc(&step.device, sizeof *step.device));
    HT_CUDA(cudaMallocHost(&step.host, sizeof *step.host));
    HT_CUDA(cudaMalloc(&step.fault, sizeof *step.fault));
    HT_CUDA(cudaMallocHost(&step.seen, sizeof *step.seen));
    HT_CUDA(cudaMemsetAsync(step.fault, 0, sizeof *step.fault, ht_compute_stream()));
}

void cuda_step_close(void) {
    HT_CUDA(cudaFree(step.device));
    HT_CUDA(cudaFreeHost(step.host));
    HT_CUDA(cudaFree(step.fault));
    HT_CUDA(cudaFreeHost(step.seen));
    step = {};
}

const CudaStep *cuda_step(void) { return step.device; }

/* Copies the numbers of a step to the device. In the second run (run 1), all ranks agree on
 * variants, which the first run measured (cuda/autotune.h). So the second run is recorded with
 * these variants, even if the program continues from a saved step or under another strategy. */
extern "C" const float *device_numbers(const StepNumbers *numbers) {
    if (numbers->run == 1) autotune_agree();
    memcpy(step.host->hyper, numbers->hyper, sizeof step.host->hyper);
    step.host->step = numbers->step;
    step.host->seed = numbers->seed;
    step.host->training = numbers->training;
    HT_CUDA(cudaMemcpyAsync(step.device, step.host, sizeof *step.device, cudaMemcpyHostToDevice,
                            ht_compute_stream()));
    return step.device->hyper;
}

static bool same_piece(const ht_view *a, const ht_view *b) {
    bool same = a->rank == b->rank;
    for (int d = 0; d < a->rank && same; d++)
        same = a->extent[d] == b->extent[d] && a->offset[d] == b->offset[d] &&
               a->fold[d] == b->fold[d] && a->gap[d] == b->gap[d] && a->global[d] == b->global[d];
    return same;
}

CudaReport cuda_report(const char *format, const ht_view *piece) {
    const Report report = {format, fail_doing_what(), piece ? *piece : ht_view()};
    for (size_t i = 0; i < step.reports.size(); i++)
        if (step.reports[i].format == format && step.reports[i].where == report.where &&
            same_piece(&step.reports[i].piece, &report.piece))
            return {step.fault, i + 1};
    step.reports.push_back(report);
    return {step.fault, step.reports.size()};
}

void cuda_step_finish(void) {
    HT_CUDA(cudaMemcpyAsync(step.seen, step.fault, sizeof *step.seen, cudaMemcpyDeviceToHost,
                            ht_compute_stream()));
    cuda_streams_wait();
    if (!step.seen->number) return;
    const Report &report = step.reports[step.seen->number - 1];
    fail_doing(report.where);
    const long long second = report.piece.rank ? ht_view_element(&report.piece, step.seen->value[1])
                                               : step.seen->value[1];
    ht_fail(report.format, step.seen->value[0], second, step.seen->value[2]);
}
