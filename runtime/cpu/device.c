/* The host as device: tensors lie in its memory, and work is done when it is issued. */
#include "device/device.h"

#include "exchange/moves.h"
#include "base/memory.h"

#include <hetu/rt.h>

#include <omp.h>
#include <stdlib.h>
#include <string.h>

void openblas_set_num_threads(int threads);

const char *device_open(void)
{
    openblas_set_num_threads(omp_get_max_threads());
    return NULL;
}

void device_connect(void) {}

void device_close(void) {}

void *device_alloc(int64_t bytes) { return memory_storage(bytes); }

void device_free(void *memory) { free(memory); }

void device_zero(void *memory, int64_t bytes) { memset(memory, 0, (size_t)bytes); }

void *device_map(void *memory, int64_t bytes, DeviceAccess access)
{
    (void)bytes, (void)access;
    return memory;
}

void device_unmap(void *memory, void *host, int64_t bytes, DeviceAccess access) { (void)memory, (void)host, (void)bytes, (void)access; }

void *device_alloc_host(int64_t bytes) { return memory_storage(bytes); }

void device_free_host(void *memory) { free(memory); }

void device_upload(void *to, const void *from, int64_t bytes) { memcpy(to, from, (size_t)bytes); }

void device_download(void *to, const void *from, int64_t bytes) { memcpy(to, from, (size_t)bytes); }

void device_wait(void) {}

const float *device_numbers(const StepNumbers *numbers) { return numbers->hyper; }

void device_run(DeviceRecording **recording, void (*issue)(void *argument), void *argument)
{
    (void)recording;
    issue(argument);
}

void device_forget(DeviceRecording *recording) { (void)recording; }

/* ---- what emitted code calls ---- */

void ht_accumulate(const ht_worker *r, void *to, const void *from, int64_t count, ht_dtype dtype)
{
    if (r->microbatch)
        ht_combine(dtype, HT_SUM, to, from, count);
    else
        memmove(to, from, (size_t)count * ht_dtype_bytes(dtype));
}

void ht_fill_identity(void *to, ht_dtype dtype, int64_t count, bool maximum) { ht_fill(dtype, maximum ? HT_MAX : HT_SUM, to, count); }
