/* host.h: what the CUDA kernels need of a runtime, for programs that run kernels alone: twins and speed.
 */
#ifndef TWINS_HOST_H
#define TWINS_HOST_H

#include "cuda/cuda.h"

#include <hetu/kernel.h>

/* Takes the device; false, after one line on standard error, when there is none. */
bool host_open(void);

/* What kernels find at cuda_step() from now on; `hyper` may be nullptr. Returns the address of the hyper-parameters on the device. */
const float *host_step(const float *hyper, int64_t step, uint64_t seed, int training);

/* Waits for all work; ends the program when something failed. */
void host_wait(void);

/* The message of the first fault since the last call; nullptr when there was none. Waits for all work. */
const char *host_fault(void);

/* Device memory of exactly so many bytes that begins `shift` bytes behind a multiple of 256. */
void *host_alloc(int64_t bytes, int64_t shift);
void host_free(void *memory, int64_t shift);

/* Attributes of a kernel's call. */
inline ht_attr integer_attr(int64_t i)
{
    ht_attr attr = {};
    attr.i = i;
    return attr;
}

inline ht_attr real_attr(double f)
{
    ht_attr attr = {};
    attr.f = f;
    return attr;
}

void host_upload(void *to, const void *from, int64_t bytes);
void host_download(void *to, const void *from, int64_t bytes);

#endif
