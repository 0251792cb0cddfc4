/* Device memory that is not a tensor: scratch memory of operators, and tables that operators read.
 * device_alloc of device.cu allocates tensors' memory, with offsets of compiler/passes/memory. */
#include "device/device.h"
#include "cuda/streams.h"

#include <string>
#include <unordered_map>
#include <vector>

static struct {
    void *scratch;
    int64_t scratch_bytes;
    std::vector<void *> outgrown; // smaller buffers, which recorded graphs may still use
    std::unordered_map<std::string, void *> constants;
} memory;

void *cuda_scratch(int64_t bytes) {
    if (bytes <= memory.scratch_bytes) return memory.scratch;
    if (memory.scratch) memory.outgrown.push_back(memory.scratch);
    memory.scratch_bytes = bytes + bytes / 4;
    memory.scratch = device_alloc(memory.scratch_bytes);
    return memory.scratch;
}

const void *cuda_constant(const void *data, int64_t bytes) {
    std::string content((const char *)data, (size_t)bytes);
    auto found = memory.constants.find(content);
    if (found != memory.constants.end()) return found->second;
    void *copy = device_alloc(bytes);
    device_upload(copy, data, bytes);
    device_wait();
    memory.constants.emplace(std::move(content), copy);
    return copy;
}

void cuda_memory_close(void) {
    for (void *scratch : memory.outgrown) device_free(scratch);
    for (auto &constant : memory.constants) device_free(constant.second);
    device_free(memory.scratch);
    memory = {};
}
