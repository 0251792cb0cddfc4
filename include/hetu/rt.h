/* rt.h: all that emitted code may call.
 *
 * hetucc writes an image for each model: constant tables (ht_image) and, for each role, functions that run the operators of a phase in
 * order. A constructor registers the image with the model function that it stands for; ht_train and ht_infer find it by that function.
 * Every emitted function gets the ht_worker of its program: where the arena and the parameters of this rank are, and what differs between
 * the devices of a role.
 *
 * A buffer is a number that all ranks of a role share: bytes into the arena when it is not negative, else -1 - slot. Slots are the tensors
 * that outlive a step: the parameters, then the optimizer's states (those of a parameter in a row), then the inputs.
 */
#ifndef HETU_RT_H
#define HETU_RT_H

#include <hetu/kernel.h>
#include <hetu/product.h>
#include <hetu/reshard.h>

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where a tensor is: void * in C; in C++, which emitted CUDA C is, something that becomes a pointer to anything. */
#ifdef __cplusplus
struct ht_address {
    void *at;
    template <typename T> operator T *() const { return static_cast<T *>(at); }
};
#define HT_ADDRESS(pointer)                                                                                                                \
    ht_address { pointer }
extern "C" {
#else
typedef void *ht_address;
#define HT_ADDRESS(pointer) (pointer)
#endif

/* In front of a small function that CUDA kernels call, too. */
#ifdef __CUDACC__
#define HT_INLINE static __host__ __device__ inline
#else
#define HT_INLINE static inline
#endif

/* ---- what emitted functions work with ---- */

typedef struct ht_worker {
    char *arena;          // aligned to 64 bytes
    void *const *slot;    // pieces of this rank
    const int64_t *piece; // this device's row of numbers that differ within a role: offsets of pieces, whether to add a bias
    const float *hyper;   // of the optimizer
    int64_t step;
    int64_t microbatch; // of the step
    int training;
    uint64_t seed;
    int device;
} ht_worker;

/* The storage of a buffer in the arena, of a slot, and of either. */
static inline ht_address ht_arena(const ht_worker *r, int64_t offset) { return HT_ADDRESS(r->arena + offset); }

static inline ht_address ht_slot(const ht_worker *r, int64_t slot) { return HT_ADDRESS(r->slot[slot]); }

static inline ht_address ht_at(const ht_worker *r, int64_t buffer) { return buffer >= 0 ? ht_arena(r, buffer) : ht_slot(r, -1 - buffer); }

/* The part of an input that belongs to the micro-batch at work: `bytes` of its slot. */
static inline ht_address ht_turn(const ht_worker *r, int64_t slot, int64_t bytes)
{
    return HT_ADDRESS((char *)r->slot[slot] + r->microbatch * bytes);
}

/* Copies bytes between two buffers; nothing when they are one. */
#ifdef __cplusplus
void ht_copy(void *to, const void *from, size_t bytes);
#else
static inline void ht_copy(void *to, const void *from, size_t bytes)
{
    if (to != from)
        memcpy(to, from, bytes);
}
#endif

/* Runs a kernel. `call` has the operands, results and attributes; step, training and seed are filled in from `r`. `where` is the place in
 * the source: "gpt.c:42 h3". */
void ht_run_kernel(ht_worker *r, ht_kernel *kernel, ht_call *call, const char *where);

/* Runs a conversion between layouts; `scratch` is NULL when the plan needs none. */
void ht_convert(ht_worker *r, const ht_reshard *plan, const void *from, void *to, void *scratch, const char *where);

/* Adds `count` elements of `from` to `to`; in the first micro-batch they are its first value. */
void ht_accumulate(const ht_worker *r, void *to, const void *from, int64_t count, ht_dtype dtype);

/* Sets `count` elements of a result whose operands are empty here: to 0, or to minus infinity (the lowest number) for a maximum. */
void ht_fill_identity(void *to, ht_dtype dtype, int64_t count, bool maximum);

/* fmaxf, fminf and their twins of double as rules mean them: NaN where either argument is. */
HT_INLINE float ht_fmaxf(float a, float b) { return b <= a || a != a ? a : b; }

HT_INLINE float ht_fminf(float a, float b) { return b >= a || a != a ? a : b; }

HT_INLINE double ht_fmax(double a, double b) { return b <= a || a != a ? a : b; }

HT_INLINE double ht_fmin(double a, double b) { return b >= a || a != a ? a : b; }

/* bf16 is stored as the upper half of an f32. */
HT_INLINE float ht_bf16_load(uint16_t bits)
{
    union {
        uint32_t i;
        float f;
    } u = {(uint32_t)bits << 16};
    return u.f;
}

HT_INLINE uint16_t ht_bf16_store(float value)
{
    union {
        float f;
        uint32_t i;
    } u = {value};
    if ((u.i & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u.i >> 16 | 0x40u);
    return (uint16_t)((u.i + 0x7fffu + (u.i >> 16 & 1u)) >> 16);
}

/* ---- images ---- */

/* What every device holds of a tensor: boxes of the tensor seen in the shape `extent`, which has its elements in the same row-major order.
 */
typedef struct ht_pieces {
    int rank;
    const int64_t *extent;
    const int *first;   // device d holds the boxes first[d] to before first[d + 1]
    const int64_t *box; // a box: lo and hi of each dimension, 2 * rank numbers; empty boxes are left out, a device's boxes lie one after
                        // another in its storage
} ht_pieces;

enum { HT_MAX_STATES = 4 };

typedef struct ht_image_param {
    const char *name, *shape; // "(3, 4)"
    const ht_pieces *pieces;
    int init; // ht_init_kind of hetu.h
    double a; // its number
    int state_count;
    const ht_pieces *state[HT_MAX_STATES];
} ht_image_param;

typedef struct ht_image_input {
    const char *name;
    ht_dtype dtype;
    const ht_pieces *pieces;
    const char *at; // "gpt.c:30"
} ht_image_input;

typedef struct ht_image_output {
    const char *name;
    ht_dtype dtype;
    const ht_pieces *pieces;
    const int64_t *buffer; // by role
} ht_image_output;

typedef void ht_phase(ht_worker *r);

/* Devices that share a program. */
typedef struct ht_image_role {
    int64_t arena_bytes;
    ht_phase *before;             // once a step; NULL, here and below: nothing to do
    ht_phase *forward, *backward; // once a micro-batch
    ht_phase *update;             // once a step
} ht_image_role;

/* Numbers in a row that the model's evaluation read of a variable; as long as the program runs it, they stay the same. */
typedef enum ht_number { HT_SIGNED, HT_UNSIGNED, HT_FLOATING } ht_number;

typedef struct ht_image_read {
    const char *name, *at; // "seq", "gpt.c:30"
    int64_t first, count;  // the index of the first one; -1: it is in no array
    ht_number kind;
    int size;         // of one, in bytes
    const void *then; // what was read
} ht_image_read;

/* What an image is like, and what emitted code may call: another number when that changes. */
enum { HT_IMAGE_VERSION = 3 };

typedef struct ht_image {
    int version;                           // HT_IMAGE_VERSION when it was compiled; this and the fingerprint come first in every version
    const char *fingerprint;               // of the source file's images; equal where all that hetucc wrote for it is, for a reader too
    const char *model, *source, *strategy; // the model function; the file; the strategy's name, NULL for one device
    bool trains, clipped; // whether gradients are clipped
    ht_dtype dtype;       // what it computes in
    int device_count;     // ranks 0 .. device_count - 1
    int64_t microbatches; // of a step
    int state_count;      // states a parameter
    int param_count, input_count, output_count, role_count, read_count;
    const ht_image_param *params;
    const ht_image_input *inputs;
    const ht_image_output *outputs;
    int loss; // index into outputs; -1 when it does not train
    const ht_image_role *roles;
    const ht_image_read *reads;
    const int *role_of;          // by device; -1: the device is idle
    const int64_t *const *piece; // by device: its ht_worker.piece
    int plan_count;
    const ht_reshard *const *plan; // its conversions
} ht_image;

struct ht_tensor;
typedef struct ht_tensor ht_model(void);

/* Registers an image before main; `update` is the optimizer's operator, NULL when it does not train, and `now` where the program has the
 * numbers of the image's reads. */
void ht_register(const ht_image *image, ht_model *model, void (*update)(void), const volatile void *const *now);

#ifdef __cplusplus
}
#endif

#endif
