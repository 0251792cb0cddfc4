/* Steps of a program as the runtime of CUDA runs them, on any number of ranks: numbers that change, kernels, conversions in a row, graphs,
 * faults.
 *
 *     cuda_steps           checks every step's values
 *     cuda_steps fault     in step 3 a kernel of the last rank finds a fault
 *     cuda_steps late      in step 3 rank 0 does not take part
 *     cuda_steps types     sums over micro-batches and fills, of every type
 */
#include "exchange/channel.h"
#include "exchange/copy_boxes.h"
#include "transport/world.h"
#include "device/device.h"
#include "cuda/streams.h"

#include <hetu/rt.h>

#include <stdio.h>
#include <string.h>
#include <string>
#include <unistd.h>
#include <vector>

static const int64_t COUNT = 1000;
static const int STEPS = 6, BAD = 3;

/* ---- a plan: every rank's tensor is summed up ---- */

static std::vector<int> ranks;
static ht_group group;
static const ht_block from_block = {HT_FROM, 0, 0, 0, COUNT}, to_block = {HT_TO, 0, 0, 0, COUNT};
static ht_reshard_step sum_step;
static std::vector<ht_reshard_device> parts;
static const ht_reshard_tensor tensor = {HT_F32, HT_SUM, 1};
static ht_reshard plan;

static void make_plan(void)
{
    sum_step.verb = HT_ALL_REDUCE;
    sum_step.dtype = HT_F32;
    sum_step.reduction = HT_SUM;
    sum_step.send_count = sum_step.receive_count = 1;
    sum_step.send = &from_block;
    sum_step.receive = &to_block;
    for (int rank = 0; rank < world_size(); rank++) {
        ranks.push_back(rank);
        parts.push_back({rank, 1, 0, &sum_step});
    }
    group = {world_size(), ranks.data()};
    plan = {"steps.c:30: all-reduce", -1, 1, 1, world_size(), &tensor, &group, parts.data(), 0, 0, NULL};
    const ht_reshard *const plans[] = {&plan};
    const unsigned queues[] = {0};
    const ChannelPlans prepared = {1, 0, plans, queues, NULL};
    if (channel_of_device()->prepare)
        channel_of_device()->prepare(&prepared);
}

/* ---- a step ---- */

struct Work {
    float *x, *y, *z;
    bool faulty;
};

static __global__ void begin_device(float *x, float *y, int64_t n, const CudaStep *step, float rank, bool faulty, CudaReport report)
{
    for (int64_t i = ht_thread(); i < n; i += ht_threads()) {
        x[i] = step->hyper[0] * (rank + 1);
        y[i] = (float)step->step + rank + (float)i;
        if (faulty && step->step == BAD && i == 7)
            cuda_fault(report, step->step, i, 0);
    }
}

static __global__ void add_device(float *z, const float *x, const float *y, int64_t n)
{
    for (int64_t i = ht_thread(); i < n; i += ht_threads())
        z[i] = x[i] + y[i];
}

static int issued; // how often

/* z = sum over ranks of x + sum over ranks of y; the conversions stand in a row. */
static void issue(void *argument)
{
    const Work *work = (const Work *)argument;
    issued++;
    fail_doing("steps.c:20 begin");
    ht_launch(begin_device, ht_blocks(COUNT, 128), 128, 0, work->x, work->y, COUNT, cuda_step(), (float)world_rank(), work->faulty,
              cuda_report("step %lld found element %lld wrong"));
    fail_doing("steps.c:30 sum");
    if (channel_of_device()->communicate) {
        ht_reshard_run(&plan, world_rank(), work->x, work->x, NULL);
        ht_reshard_run(&plan, world_rank(), work->y, work->y, NULL);
    }
    fail_doing("steps.c:40 add");
    ht_launch(add_device, ht_blocks(COUNT, 128), 128, 0, work->z, work->x, work->y, COUNT);
    fail_doing(NULL);
}

static void check(const Work &work, const StepNumbers &numbers)
{
    float *z = (float *)device_map(work.z, COUNT * (int64_t)sizeof(float), DEVICE_READ);
    float n = (float)world_size(), triangle = n * (n - 1) / 2;
    for (int64_t i = 0; i < COUNT; i++) {
        float wanted = numbers.hyper[0] * (triangle + n) + n * ((float)numbers.step + (float)i) + triangle;
        if (z[i] != wanted)
            ht_fail("step %lld: element %lld is %g, not %g", (long long)numbers.step, (long long)i, (double)z[i], (double)wanted);
    }
    device_unmap(work.z, z, COUNT * (int64_t)sizeof(float), DEVICE_READ);
}

static void run_steps(const std::string &mode)
{
    Work work = {(float *)device_alloc(COUNT * 4), (float *)device_alloc(COUNT * 4), (float *)device_alloc(COUNT * 4),
                 mode == "fault" && world_rank() == world_size() - 1};
    DeviceRecording *recording = NULL;
    for (int step = 0; step < STEPS; step++) {
        StepNumbers numbers = {{0.5f * (float)step}, step, step, 1, 1};
        fail_step(step);
        if (mode == "late" && step == BAD && world_rank() == 0)
            sleep(60);
        device_numbers(&numbers);
        device_run(&recording, issue, &work);
        check(work, numbers);
    }
    device_forget(recording);
    for (float *memory : {work.x, work.y, work.z})
        device_free(memory);
}

/* ---- sums over micro-batches, and fills ---- */

/* Puts values on the device, works on them there, and compares with what the host's functions make of them. */
static void check_types(ht_dtype dtype)
{
    const int64_t counts[] = {1, 7, 4096, 100003};
    ht_worker first = {}, later = {};
    later.microbatch = 1;
    for (int64_t count : counts) {
        int64_t bytes = count * (int64_t)ht_dtype_bytes(dtype);
        std::vector<char> a((size_t)bytes), b((size_t)bytes), found((size_t)bytes);
        for (int64_t i = 0; i < bytes; i++) {
            a[(size_t)i] = (char)(i * 7 % 61);
            b[(size_t)i] = (char)(i * 5 % 63);
        }
        void *x = device_alloc(bytes), *y = device_alloc(bytes);
        device_upload(x, a.data(), bytes);
        device_upload(y, b.data(), bytes);
        ht_accumulate(&later, y, x, count, dtype);
        ht_combine(dtype, HT_SUM, b.data(), a.data(), count);
        device_download(found.data(), y, bytes);
        device_wait();
        if (found != b)
            ht_fail("type %d: a sum of %lld elements differs", (int)dtype, (long long)count);
        ht_accumulate(&first, y, x, count, dtype);
        device_download(found.data(), y, bytes);
        device_wait();
        if (found != a)
            ht_fail("type %d: the first of %lld elements' sums differs", (int)dtype, (long long)count);
        for (bool maximum : {false, true}) {
            ht_fill_identity(y, dtype, count, maximum);
            ht_fill(dtype, maximum ? HT_MAX : HT_SUM, b.data(), count);
            device_download(found.data(), y, bytes);
            device_wait();
            if (found != b)
                ht_fail("type %d: a fill of %lld elements differs", (int)dtype, (long long)count);
        }
        device_free(x);
        device_free(y);
    }
}

int main(int argc, char **argv)
{
    std::string mode = argc > 1 ? argv[1] : "";
    world_open(&argc, &argv, WORLD_HEARTBEAT);
    const char *missing = device_open();
    if (missing)
        ht_fail("%s", missing);
    device_connect();
    make_plan();
    if (mode == "types")
        for (ht_dtype dtype : {HT_F32, HT_BF16, HT_F64, HT_I32, HT_I64})
            check_types(dtype);
    else
        run_steps(mode);
    printf("rank %d of %d is done, steps were issued %d times\n", world_rank(), world_size(), issued);
    fflush(stdout);
    device_close();
    world_close();
    return 0;
}
