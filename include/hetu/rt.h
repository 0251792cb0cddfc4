/* rt.h: the interface between emitted code and the runtime; image.h has its tables.
 *
 * hetucc writes an image for each model: constant tables (ht_image) and, for each role, functions
 * that run the operators of a phase in order. A constructor registers the image under its model
 * function; ht_train and ht_infer look the image up by that function. Every emitted function gets
 * its program's ht_worker: the addresses of this rank's arena and parameters, and the numbers that
 * differ between devices of a role.
 *
 * A buffer is a 64-bit number that all ranks of a role share; ht_at returns its address. A negative
 * buffer is -1 - slot. Slots hold the tensors that outlive a step: parameters, then optimizer
 * states (parameter by parameter), then inputs. A buffer with bit HT_KEPT is a byte offset into the
 * micro-batch's activation buffer (ht_worker.kept). Any other buffer is a byte offset into the
 * arena: buffer 256 is arena + 256, buffer -3 is slot 2.
 *
 * A device's schedule (ht_schedule) is a list of rows; a row runs one part, an emitted function,
 * for one micro-batch. Transfers (ht_transfer) carry values between parts on different devices and
 * overlap with computing.
 */
#ifndef HETU_RT_H
#define HETU_RT_H

#include <hetu/image.h>
#include <hetu/numbers.h>
#include <hetu/product.h>

#include <string.h>

/* Address of a tensor: void * in C. Emitted CUDA C is C++, where ht_address converts implicitly to
 * a pointer to any type. */
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

/* ---- arguments of emitted functions ---- */

typedef struct ht_worker {
    char *arena;          // aligned to 64 bytes
    char *kept;           // activation buffer of the current micro-batch; aligned to 64 bytes
    void *const *slot;    // by slot: this rank's piece of the tensor
    const int64_t *piece; // numbers that differ between devices of a role: offsets of pieces, whether to add a bias
    const float *hyper;   // hyper-parameters of all optimizers: hyper[0] is the first learning rate

    int64_t step;
    int64_t microbatch; // index within this pipeline's step, from 0
    int64_t row;        // first row of the micro-batch within the batch
    int training;
    uint64_t seed;
    int device;
    const ht_pipeline *pipeline; // pipeline of this device
    int position;                // index of this device in ht_pipeline.device

    struct AsyncExchanges *async_exchanges; // transfers under way; private to the runtime
    struct Observer *observer;                  // observer for HETU_TRACE, HETU_PROFILE or HETU_NAN; NULL: no observer is on
} ht_worker;

/* ---- buffers ---- */

#define HT_KEPT (INT64_C(1) << 62)

typedef enum ht_buffer_kind { HT_BUFFER_ARENA, HT_BUFFER_SLOT, HT_BUFFER_KEPT } ht_buffer_kind;

/* Return the buffer number of a slot, and of a byte offset in the activation buffer. A byte offset
 * in the arena is its own buffer number. */
static inline int64_t ht_buffer_of_slot(int64_t slot) { return -1 - slot; }

static inline int64_t ht_buffer_of_kept(int64_t offset) { return offset | HT_KEPT; }

/* Return the kind of a buffer, and its slot or byte offset. */
static inline ht_buffer_kind ht_buffer_kind_of(int64_t buffer) { return buffer < 0 ? HT_BUFFER_SLOT : buffer & HT_KEPT ? HT_BUFFER_KEPT : HT_BUFFER_ARENA; }

static inline int64_t ht_buffer_place(int64_t buffer) { return buffer < 0 ? -1 - buffer : buffer & ~HT_KEPT; }

/* Declares a function that the C compiler neither inlines nor clones for constant arguments. */
#if defined __GNUC__ && !defined __clang__
#define HT_SHARED_BODY static __attribute__((noipa))
#else
#define HT_SHARED_BODY static __attribute__((noinline))
#endif

/* Return an address: ht_arena in the arena and ht_kept in the activation buffer, by byte offset;
 * ht_slot by slot; ht_at by any buffer number. */
static inline ht_address ht_arena(const ht_worker *r, int64_t offset) { return HT_ADDRESS(r->arena + offset); }

static inline ht_address ht_slot(const ht_worker *r, int64_t slot) { return HT_ADDRESS(r->slot[slot]); }

static inline ht_address ht_kept(const ht_worker *r, int64_t offset) { return HT_ADDRESS(r->kept + offset); }

static inline ht_address ht_at(const ht_worker *r, int64_t buffer)
{
    const int64_t place = ht_buffer_place(buffer);
    switch (ht_buffer_kind_of(buffer)) {
    case HT_BUFFER_SLOT: return ht_slot(r, place);
    case HT_BUFFER_KEPT: return ht_kept(r, place);
    default: return ht_arena(r, place);
    }
}

/* Returns the current micro-batch's share of a buffer with all micro-batches, `bytes` each. */
static inline ht_address ht_turn(const ht_worker *r, int64_t buffer, int64_t bytes)
{
    char *first = ht_at(r, buffer);
    return HT_ADDRESS(first + r->microbatch * bytes);
}

/* Copies `bytes` from one buffer to another; does nothing when both are the same address. */
#ifdef __cplusplus
void ht_copy(void *to, const void *from, size_t bytes);
#else
static inline void ht_copy(void *to, const void *from, size_t bytes)
{
    if (to != from)
        memcpy(to, from, bytes);
}
#endif

/* Runs a kernel. The caller fills in the operands, results and attributes of `call`; ht_run_kernel
 * fills in step, training and seed from `r`. `where` is the source line and scope for messages:
 * "gpt.c:42 h3". */
void ht_run_kernel(ht_worker *r, ht_kernel *kernel, ht_call *call, const char *where);

/* Computes the sum of the squares of all elements, plus an optional scalar operand. Gradient
 * clipping computes the square of the global gradient norm with this kernel. */
ht_kernel ht_square_sum_kernel;

/* Converts `count` elements of f32 in `from` to bf16 in `to`. */
void ht_narrow(void *to, const void *from, int64_t count);

/* Runs a conversion between layouts. `scratch` has the bytes that the plan needs; NULL if none. */
void ht_convert(ht_worker *r, const ht_reshard *plan, const void *from, void *to, void *scratch, const char *where);

/* Tells the observer (ht_worker.observer) that the call which it expects next in the current part
 * has returned. */
void ht_observe_call(ht_worker *r);
static inline void ht_did(ht_worker *r)
{
    if (r->observer)
        ht_observe_call(r);
}

/* Marks the current part's share of the operands of transfer `number` of the role (of
 * HT_QUEUE_GRADIENTS) as computed; begins a transfer whose operands all are. Does nothing before
 * the last micro-batch. */
void ht_ready(const ht_worker *r, int number);

/* Begin transfer `number` of the role (of HT_QUEUE_AHEAD, a prefetch), and wait until the transfer
 * has ended. */
void ht_begin_ahead(const ht_worker *r, int number);
void ht_end_ahead(const ht_worker *r, int number);

/* Adds `count` elements of `from` to `to`, a gradient; copies them in the first micro-batch. */
void ht_accumulate(const ht_worker *r, void *to, const void *from, int64_t count, ht_dtype dtype);

/* Fills `count` elements of a result whose operands are empty on this device, with 0. For a
 * maximum, fills in the lowest value (minus infinity for floating point). */
void ht_fill_identity(void *to, ht_dtype dtype, int64_t count, bool maximum);

#ifdef __cplusplus
}
#endif

#endif
