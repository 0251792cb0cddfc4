/* The device of this rank: its memory, and running a program's work on it. Each backend implements
 * this (cpu/device.c, cuda/device.cu).
 *
 * Tensors lie in device memory. Where the device is the host, they are host memory and nothing is
 * copied; elsewhere the host sees them through device_map.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DEVICE_HYPER = 64 };

/* Takes this rank's device. NULL, or why there is none: one line for the user. */
const char *device_open(void);

/* Connects the devices of all ranks, which have all one; and leaves them. All ranks together. */
void device_connect(void);
void device_close(void);

/* Storage of tensors, aligned to 64 bytes at least, not zeroed. Running out ends the program. */
void *device_alloc(int64_t bytes);
void device_free(void *memory);
void device_zero(void *memory, int64_t bytes);

/* Host memory with the bytes of device memory, to read them; or to write all of them, which the
 * device has after device_unmap. Where the device is the host, both are one. */
typedef enum DeviceAccess { DEVICE_READ, DEVICE_WRITE } DeviceAccess;
void *device_map(void *memory, int64_t bytes, DeviceAccess access);
void device_unmap(void *memory, void *host, int64_t bytes, DeviceAccess access);

/* Host memory that the device copies to and from. */
void *device_alloc_host(int64_t bytes);
void device_free_host(void *memory);

/* Begin to copy between device memory and host memory, after all work that was issued before; done
 * when device_wait returns. */
void device_upload(void *to, const void *from, int64_t bytes);
void device_download(void *to, const void *from, int64_t bytes);
void device_wait(void);

/* Seconds of a small product on this rank's device, the least of a few; 0: it cannot tell. */
double device_trial(void);

/* Whether tensors lie in host memory, and work is done when it is issued. */
bool device_is_host(void);

/* Operations a second of a product, and bytes a second read and written by a copy, as this rank's
 * device does them now; 0: it cannot tell.
 */
typedef struct DeviceRates {
    double operations, bytes;
} DeviceRates;
DeviceRates device_rates(void);

/* Looking at work that is not done when it is issued (session/observe/hooks.h). From device_look on
 * all of it is issued call by call; device_mark puts a mark behind what was issued so far, and
 * returns its number, 0, 1, ...; device_marked gives the seconds from mark 0 to a mark, when
 * device_wait has returned; device_marks_clear has the numbers begin anew. Where the device is the
 * host they do nothing. */
void device_look(void);
int device_mark(void);
double device_marked(int mark);
void device_marks_clear(void);

/* Names what is issued from now on, for a profiler of the device; NULL: nothing has a name any
 * more. False where there is no such thing. */
bool device_name(const char *name);

/* Numbers that may differ between the steps of a program. */
typedef struct StepNumbers {
    float hyper[DEVICE_HYPER];
    int64_t step;
    int64_t run; // runs of the program under its strategy before this one, whatever the step is
    uint64_t seed;
    int training;
} StepNumbers;

/* Puts them where the kernels of the next step read them; returns the address of `hyper` there.
 * `numbers` stays until the step is over. */
const float *device_numbers(const StepNumbers *numbers);

/* Runs what `issue` puts on the device, to its end. The work of a program is the same at every step
 * but for the numbers, so a device may record it in *recording, which begins as NULL and is
 * forgotten by device_forget. */
typedef struct DeviceRecording DeviceRecording;
void device_run(DeviceRecording **recording, void (*issue)(void *argument), void *argument);
void device_forget(DeviceRecording *recording);

#ifdef __cplusplus
}
#endif

#endif
