/* Times the candidate algorithms on this rank and keeps the fastest. autotune_cache.cu makes all
 * ranks use the same one, and keeps it in a file. */
#include "cuda/autotune.h"
#include "cuda/cuda.h"

#include <algorithm>
#include <stdlib.h>
#include <string.h>

enum { TIMED = 2 }; // timed runs, after one that is not timed

static struct {
    std::map<std::string, int> settled;
    AutotuneTimes times;
    int depth; // nesting depth of runs that are being timed
} choices;

static bool wants_timing(void) {
    const char *tune = getenv("HETU_TUNE");
    return !(tune && !strcmp(tune, "0"));
}

static bool is_recorded(void) {
    cudaStreamCaptureStatus status;
    HT_CUDA(cudaStreamIsCapturing(ht_compute_stream(), &status));
    return status != cudaStreamCaptureStatusNone;
}

static std::string key_of(const char *kind, const std::vector<int64_t> &sizes, int ways) {
    std::string key = kind;
    key.append(" ").append(std::to_string(ways));
    for (int64_t size : sizes) key.append(" ").append(std::to_string(size));
    return key;
}

/* Returns the mean milliseconds of TIMED runs of a variant. */
static float time_of(AutotuneRun *run, void *context, int way) {
    float milliseconds = 0;
    cudaEvent_t begin, end;
    HT_CUDA(cudaEventCreate(&begin));
    HT_CUDA(cudaEventCreate(&end));
    run(way, context);
    HT_CUDA(cudaEventRecord(begin, ht_compute_stream()));
    for (int i = 0; i < TIMED; i++) run(way, context);
    HT_CUDA(cudaEventRecord(end, ht_compute_stream()));
    HT_CUDA(cudaEventSynchronize(end));
    HT_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    HT_CUDA(cudaEventDestroy(begin));
    HT_CUDA(cudaEventDestroy(end));
    return milliseconds / (float)TIMED;
}

static const std::vector<float> &timed(const std::string &key, int ways, AutotuneRun *run,
                                       void *context) {
    std::vector<float> times;
    choices.depth++;
    for (int way = 0; way < ways; way++) times.push_back(time_of(run, context, way));
    choices.depth--;
    return choices.times[key] = times;
}

/* Returns the settled variant; else 0, but inside other timed work the fastest on this rank. */
int autotune_choose(const char *kind, const std::vector<int64_t> &sizes, int ways, AutotuneRun *run,
                    void *context) {
    if (ways < 2) return 0;
    const std::string key = key_of(kind, sizes, ways);
    if (auto known = choices.settled.find(key); known != choices.settled.end())
        return known->second;
    auto found = choices.times.find(key);
    if (found == choices.times.end() && (!run || !wants_timing() || is_recorded())) return 0;
    const std::vector<float> &times =
        found != choices.times.end() ? found->second : timed(key, ways, run, context);
    return choices.depth ? (int)(std::min_element(times.begin(), times.end()) - times.begin()) : 0;
}

const AutotuneTimes &autotune_times(void) { return choices.times; }

void autotune_settle(const std::string &key, int way) {
    choices.settled[key] = way;
    choices.times.erase(key);
}
