/* Lanes: neighbouring elements that a CUDA thread computes at once, in loops.c and rows.c.
 *
 *     f32, 4 lanes:    float x_v[4]; ht_load(x_v, x + i0 * 4);
 *                      for (int e = 0; e < 4; e++) y_v[e] = x_v[e] + bias_v;
 */
#pragma once

#include "emit/kernel/loops.h"

enum {
    CUDA_THREADS = 256,                    // threads of a block
    CUDA_WARP = 32,                        // threads of a warp
    CUDA_WARPS = CUDA_THREADS / CUDA_WARP, // warps of a block
    CUDA_WARP_SUM = 1024                   // most elements of a sum that one warp adds up
};

/* `width` neighbouring elements along the innermost loop of a nest; nest NULL: single elements. */
typedef struct Lanes {
    const Nest *nest;
    int width;
} Lanes;

/* A __global__ function while it is written. */
typedef struct Device {
    Text *out;
    const LocalOp *local;
    const char *index; // C type of an index that can address every element
} Device;

Device device_of(Text *out, const LocalOp *local);

/* Returns the lanes along a nest. They are 16 bytes of the smallest type in the set `tensors`,
 * or fewer as the innermost extent or an alignment requires. `other` has the surrounding loops. */
Lanes lanes_along(const LocalOp *local, uint64_t tensors, const Nest *nest, const Nest *other);

/* Appends a tensor at the current lane: NAME_v[e] or NAME_v if loaded before, or the element. */
void text_lane(Text *out, const LocalOp *local, int tensor, const Lanes *lanes,
               const Around *around);

/* Appends the address of an element: NAME + INDEX; without the index if it is 0. */
void text_place(Text *out, const LocalOp *local, int tensor, const Around *around);

/* Appends loads of the tensors of a set, for text_lane. */
void emit_loads(const Device *device, uint64_t tensors, const Lanes *lanes, const Around *around,
                int depth);

/* Returns the variable that counts a nest's steps: the index of a single loop, or `number`. */
const char *counter(const Nest *nest, const Lanes *lanes, const char *number);

/* Returns the number of steps of a nest; a step computes all lanes. */
int64_t steps_of(const Nest *nest, const Lanes *lanes);

/* Appends the indices of a nest's loops, computed from `number`, which counts steps: "const int i0
 * = i / 192, i1 = i % 192 * 4;" */
void emit_indices(const Device *device, const Nest *nest, const Lanes *lanes, const char *number,
                  int depth);

/* Opens a loop that shares a nest's steps among all threads. Returns the launch: "grid, block". */
const char *open_steps(const Device *device, const Nest *nest, const Lanes *lanes);

/* Appends the number of a thread's one step: `const int i = blockIdx.x * EACH + THREAD;`. THREAD is
 * the number of the step among the `each` steps of the thread's block. */
void emit_own_step(const Device *device, const Nest *nest, const Lanes *lanes, int each,
                   const char *thread);

/* Append a nest's indices where a warp, or a block, computes each element. Surplus warps return. */
void emit_own_warp(const Device *device, const Nest *nest);
void emit_own_block(const Device *device, const Nest *nest);

/* Returns the launch of a function that begins with emit_own_warp. */
const char *launch_warps(Arena *arena, const Nest *nest);

/* The body of a __global__ function, and its launch: "grid, block". */
typedef struct DeviceText {
    const char *body, *launch;
} DeviceText;

/* Appends the __global__ function with this body to `before`, and its launch to `out`. */
void emit_launch(Text *before, Text *out, const LocalOp *local, const Kernel *kernel,
                 DeviceText text);
