/* The device of this rank: its memory, and the execution of a program's work. Each backend
 * implements these functions (cpu/device.c, cuda/device.cu).
 *
 * Tensors are in device memory. If the device is the host, this is host memory and nothing is
 * copied; otherwise the host accesses tensors by device_map. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DEVICE_HYPER = 64 }; // most hyper-parameters of all optimizers of a program

/* Opens this rank's device. Returns NULL, or a line for the user on why there is none. */
const char *device_open(void);

/* device_connect creates the communication between the devices of all ranks; device_close destroys
 * it. All ranks call these functions together. */
void device_connect(void);
void device_close(void);

/* Allocate, free and zero device memory for tensors. device_alloc aligns to at least 64 bytes and
 * does not zero the memory; it ends the program when memory runs out. */
void *device_alloc(int64_t bytes);
void device_free(void *memory);
void device_zero(void *memory, int64_t bytes);

/* device_map returns host memory for access to device memory: DEVICE_READ copies the bytes to the
 * host. With DEVICE_WRITE the caller writes all bytes, and device_unmap copies them to the device.
 * On a CPU, device_map returns `memory` itself. */
typedef enum DeviceAccess { DEVICE_READ, DEVICE_WRITE } DeviceAccess;
void *device_map(void *memory, int64_t bytes, DeviceAccess access);
void device_unmap(void *memory, void *host, int64_t bytes, DeviceAccess access);

/* Allocate and free host memory for copies to and from the device (pinned on a GPU). */
void *device_alloc_host(int64_t bytes);
void device_free_host(void *memory);

/* Start an asynchronous copy between host and device memory, after all work issued before.
 * device_wait returns when all copies are done. */
void device_upload(void *to, const void *from, int64_t bytes);
void device_download(void *to, const void *from, int64_t bytes);
void device_wait(void);

/* Returns the shortest measured seconds of a small matrix product on this device; 0: unknown. */
double device_trial(void);

/* Returns whether the device is the CPU: tensors are in host memory, and calls are synchronous. */
bool device_is_host(void);

/* Measured rates of this rank's device: operations a second of a matrix product, and bytes a second
 * that a copy reads and writes; 0: not known. */
typedef struct DeviceRates {
    double operations, bytes;
} DeviceRates;
DeviceRates device_rates(void);

/* Marks for observers (session/observe/hooks.h), on devices that work asynchronously. After
 * device_look, all work is issued call by call. device_mark sets a mark after the work issued so
 * far and returns its number, 0, 1, ... After device_wait, device_marked returns the seconds from
 * mark 0 to a mark. device_marks_clear restarts numbers. On the host, these do nothing. */
void device_look(void);
int device_mark(void);
double device_marked(int mark);
void device_marks_clear(void);

/* Names work issued from now on for NVTX; NULL ends the name. Returns false without a profiler. */
bool device_name(const char *name);

/* Numbers that may differ between the steps of a program. */
typedef struct StepNumbers {
    float hyper[DEVICE_HYPER];
    int64_t step;
    int64_t run; // number of earlier runs of the program under its strategy
    uint64_t seed;
    int training;
} StepNumbers;

/* Copies the step's numbers to memory that kernels read; returns the address of `hyper` in it. The
 * caller keeps `numbers` unchanged until the step is over. */
const float *device_numbers(const StepNumbers *numbers);

/* Runs the work that `issue` puts on the device, and waits for it. A program's work is the same at
 * every step except for the numbers. So a device may record the work in *recording, which is NULL
 * at first. device_forget frees a recording. */
typedef struct DeviceRecording DeviceRecording;
void device_run(DeviceRecording **recording, void (*issue)(void *argument), void *argument);
void device_forget(DeviceRecording *recording);

#ifdef __cplusplus
}
#endif
