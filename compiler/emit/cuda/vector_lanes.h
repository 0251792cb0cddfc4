/* Lanes: neighbouring elements that a CUDA thread computes at once, for bodies (loops.c) and
 * equations (rows.c). */
#ifndef EMIT_CUDA_VECTOR_LANES_H
#define EMIT_CUDA_VECTOR_LANES_H

#include "emit/kernel/loops.h"

enum {
    CUDA_THREADS = 256,                    // of a block
    CUDA_WARP = 32,                        // threads
    CUDA_WARPS = CUDA_THREADS / CUDA_WARP, // of a block
    CUDA_WARP_SUM = 1024                   // elements that a warp still adds up alone
};

/* So many neighbours along the innermost loop of a nest; NULL: one element. */
typedef struct Lanes {
    const Nest *nest;
    int width;
} Lanes;

/* A __global__ function that is being written. */
typedef struct Device {
    Text *out;
    const LocalOp *local;
    const char *index; // type of an index that reaches every element
} Device;

Device device_of(Text *out, const LocalOp *local);

/* As many lanes along a nest as fill a vector of the smallest type, or fewer where a tensor of the
 * set (of numbers) does not allow so many; `other` has the loops around. */
Lanes lanes_along(const LocalOp *local, uint64_t tensors, const Nest *nest, const Nest *other);

/* A tensor at one of the lanes: NAME_v[e] or NAME_v where it is loaded before, or the element that
 * lies apart. */
void text_lane(Text *out, const LocalOp *local, int tensor, const Lanes *lanes,
               const Around *around);

/* NAME + INDEX */
void text_place(Text *out, const LocalOp *local, int tensor, const Around *around);

/* Loads the tensors of a set for text_lane. */
void emit_loads(const Device *device, uint64_t tensors, const Lanes *lanes, const Around *around,
                int depth);

/* The variable that counts steps of a nest: the loop's own where there is one loop and one lane,
 * else `number`. */
const char *counter(const Nest *nest, const Lanes *lanes, const char *number);

/* Steps of as many lanes. */
int64_t steps_of(const Nest *nest, const Lanes *lanes);

/* The indices of a nest's loops out of `number`, which counts steps: "const int i0 = i / 192, i1 =
 * i % 192 * 4;" */
void emit_indices(const Device *device, const Nest *nest, const Lanes *lanes, const char *number,
                  int depth);

/* Opens the loop in which all threads share the steps of a nest; returns how the function is
 * launched: "grid, block". */
const char *open_steps(const Device *device, const Nest *nest, const Lanes *lanes);

/* The indices of a nest where each thread has its own step: that of `thread` among the `each` of a
 * block. */
void emit_own_step(const Device *device, const Nest *nest, const Lanes *lanes, int each,
                   const char *thread);

/* The indices of a nest where each element has a warp, or a block. */
void emit_own_warp(const Device *device, const Nest *nest);
void emit_own_block(const Device *device, const Nest *nest);

/* How a function is launched that begins with emit_own_warp. */
const char *launch_warps(Arena *arena, const Nest *nest);

/* The __global__ function with this body, to `before`, and its launch, to `out`: "grid, block". */
void emit_launch(Text *before, Text *out, const LocalOp *local, const Kernel *kernel,
                 const char *body, const char *launch);

#endif
