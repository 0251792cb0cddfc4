/* rt.h: the interface between emitted code and the runtime.
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

#include <hetu/kernel.h>
#include <hetu/product.h>
#include <hetu/reshard.h>

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/* Declares a small function that host code and CUDA kernels call. */
#ifdef __CUDACC__
#define HT_INLINE static __host__ __device__ inline
#else
#define HT_INLINE static inline
#endif

/* ---- what emitted functions work with ---- */

struct ht_pipeline;

typedef struct ht_worker {
    char *arena;          // aligned to 64 bytes
    char *kept;           // activation buffer of the current micro-batch; aligned to 64 bytes
    void *const *slot;    // by slot: this rank's piece of the tensor

    const int64_t *piece; // numbers of this device that differ within a role: offsets of pieces, whether to add a bias
    const float *hyper;   // numbers of the optimizers: hyper[0] is the first learning rate

    int64_t step;
    int64_t microbatch; // index within this pipeline's step, from 0
    int64_t row;        // first row of the micro-batch within the batch
    int training;
    uint64_t seed;
    int device;
    const struct ht_pipeline *pipeline; // of this device
    int position;                       // of this device in ht_pipeline.device

    struct AsyncExchanges *async_exchanges;            // transfers under way; private to the runtime
    struct Window *window;              // observer for HETU_TRACE, HETU_PROFILE and HETU_NAN; NULL: none is on
} ht_worker;

#define HT_KEPT (INT64_C(1) << 62)

/* Declares a function that the C compiler neither inlines nor clones for constant arguments. */
#if defined __GNUC__ && !defined __clang__
#define HT_SHARED_BODY static __attribute__((noipa))
#else
#define HT_SHARED_BODY static __attribute__((noinline))
#endif

/* Return the address of a buffer: by byte offset in the arena, by slot, by byte offset in the
 * activation buffer, and of any buffer number. */
static inline ht_address ht_arena(const ht_worker *r, int64_t offset) { return HT_ADDRESS(r->arena + offset); }

static inline ht_address ht_slot(const ht_worker *r, int64_t slot) { return HT_ADDRESS(r->slot[slot]); }

static inline ht_address ht_kept(const ht_worker *r, int64_t offset) { return HT_ADDRESS(r->kept + offset); }

static inline ht_address ht_at(const ht_worker *r, int64_t buffer)
{
    return buffer < 0 ? ht_slot(r, -1 - buffer) : buffer & HT_KEPT ? ht_kept(r, buffer - HT_KEPT) : ht_arena(r, buffer);
}

/* Returns the current micro-batch's share of a buffer that holds all micro-batches, `bytes`
 * each. */
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

/* Sums the squares of all elements, and adds a given scalar where there is one. Gradient clipping
 * computes the global gradient norm with this kernel. */
ht_kernel ht_square_sum_kernel;

/* Converts `count` elements of f32 in `from` to bf16 in `to`. */
void ht_narrow(void *to, const void *from, int64_t count);

/* Runs a conversion between layouts. `scratch` has the bytes that the plan needs; NULL: none. */
void ht_convert(ht_worker *r, const ht_reshard *plan, const void *from, void *to, void *scratch, const char *where);

/* Tells the observer (ht_worker.window) that the next call of the current part has returned. */
void ht_window_call(ht_worker *r);
static inline void ht_did(ht_worker *r)
{
    if (r->window)
        ht_window_call(r);
}

/* Marks the current part's share of the operands of transfer `number` (of the role, of
 * HT_QUEUE_GRADIENTS) as computed. Does nothing before the last micro-batch. */
void ht_ready(const ht_worker *r, int number);

/* Begin transfer `number` of the role (of HT_QUEUE_AHEAD, a prefetch), and wait until the transfer
 * has ended. */
void ht_begin_ahead(const ht_worker *r, int number);
void ht_end_ahead(const ht_worker *r, int number);

/* Adds `count` elements of `from` to `to`; in the first micro-batch, copies them instead (gradient
 * accumulation). */
void ht_accumulate(const ht_worker *r, void *to, const void *from, int64_t count, ht_dtype dtype);

/* Sets `count` elements of a result whose operands are empty here: to 0, or to minus infinity (the
 * lowest number) for a maximum. */
void ht_fill_identity(void *to, ht_dtype dtype, int64_t count, bool maximum);

/* Return the larger or the smaller argument, as max and min in rules do: NaN where either argument
 * is NaN (unlike fmaxf). */
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
#ifdef __CUDA_ARCH__
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    union {
        float f;
        uint32_t i;
    } u = {value};
    if ((u.i & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u.i >> 16 | 0x40u);
    return (uint16_t)((u.i + 0x7fffu + (u.i >> 16 & 1u)) >> 16);
#endif
}

/* ---- images ---- */

/* Pieces of consecutive devices: device `device` + i has piece `piece` + i * `step`, for i from 0
 * to before `count`. */
typedef struct ht_run {
    int device, count, piece, step;
} ht_run;

/* Layout of a tensor: the boxes that each device holds. Boxes are ranges of indices in the shape
 * `extent`, a row-major reshape of the tensor. */
typedef struct ht_pieces {
    int rank, run_count, row_count;
    const int64_t *extent;
    const ht_run *run;  // ascending by device; devices in no run hold nothing; replicas share one piece
    const int *first;   // piece p has the boxes first[p] to first[p + 1] - 1; NULL: piece p is box p
    const int64_t *box; // row_count rows of 1 + 3 * rank numbers: number of the first box, then lo, hi and step of each dimension; box i of
                        // a row is shifted by i * step. No box is empty; a device stores its boxes one after another, each row-major
    const int64_t *placing; // NULL: contiguous boxes; else 1 + rank numbers a box, a part of a larger tensor in the device's storage:
                            // element at which the box begins, extents of the larger tensor
} ht_pieces;

enum { HT_MAX_STATES = 4 };

typedef struct ht_image_param {
    const char *name, *shape; // "(3, 4)"
    const ht_pieces *pieces;
    int init; // ht_init_kind of hetu.h
    double a; // the argument of ht_constant, ht_normal or ht_uniform
    int state_count;
    const ht_pieces *state[HT_MAX_STATES];
    bool changes; // whether a step updates the parameter
} ht_image_param;

/* Padding of an input (pragma padding): the elements that pipelines do not read. The caller must
 * feed `value` there, such as -100 for ignored targets. */
typedef struct ht_padding {
    double value;
    int rank, count;
    const int64_t *extent; // of the input; the first dimension is the batch's rows
    const int64_t *rows;   // by pipeline, 1 + rank numbers: first row, end of rows, and the length that is read of each other dimension
} ht_padding;

typedef struct ht_image_input {
    const char *name;
    ht_dtype dtype;
    const ht_pieces *pieces;
    const char *at;            // "gpt.c:30"
    const ht_padding *padding; // NULL: all elements are read, or elements that are not read may have any value
} ht_image_input;

typedef struct ht_image_output {
    const char *name;
    ht_dtype dtype;
    const ht_pieces *pieces;
    const int64_t *buffer; // by role
} ht_image_output;

typedef void ht_phase(ht_worker *r);

/* Kind of a transfer. Transfers do not wait for each other, with one exception: a message between
 * stages waits for the same message of the previous micro-batch. */
typedef enum ht_queue {
    HT_QUEUE_STAGES,    // messages between pipeline stages
    HT_QUEUE_GRADIENTS, // gradient buckets: exchanged once a step, after the last micro-batch
    HT_QUEUE_AHEAD,     // prefetches: gathers that begin and end within a part
    HT_QUEUES
} ht_queue;

/* A conversion that carries tensors between parts on different devices, beside computing.
 *
 * HT_QUEUE_STAGES: a sender begins the transfer when the sending part has run. A device that only
 * receives begins the transfer as soon as no earlier row uses the slot. The transfer ends before
 * the receiving part runs, and before a row reuses the slot for another micro-batch. Parts run
 * micro-batches in ascending order, so that sends and receives match by order. No row of the same
 * micro-batch reuses the transfer's memory before the transfer has ended.
 *
 * HT_QUEUE_GRADIENTS: the transfer runs once a step. A device begins the transfer in the last
 * micro-batch after `ready` calls of ht_ready. All devices begin these transfers in the order of
 * `number`, and do not wait until the previous transfer has ended.
 *
 * HT_QUEUE_AHEAD: the transfer runs within a part, from ht_begin_ahead to ht_end_ahead. */
typedef struct ht_transfer {
    const ht_reshard *plan;   // one of the image's plans; HT_QUEUE_STAGES: no other transfer shares the plan
    const int64_t *from, *to; // by tensor: buffers; 0: the role holds nothing of the tensor
    const int64_t *turn; // by tensor: bytes of `from` a micro-batch, where `from` holds all micro-batches (an input); 0: `from` holds one
    int64_t scratch;     // a buffer
    ht_queue queue;
    int ready;         // HT_QUEUE_GRADIENTS: calls of ht_ready before the transfer begins; 0: the device only receives, from the step's begin
    int number;        // HT_QUEUE_GRADIENTS: number within the program, equal on all devices
    const char *where; // "gpt.c:42"
} ht_transfer;

/* Elements that a call of a part writes or reads: `count` elements of a buffer, at byte offset
 * `turn` * micro-batch. */
typedef struct ht_made {
    int64_t turn, count;
    ht_dtype dtype;
} ht_made;

/* Description of equal calls of a part, without their buffers. HETU_TRACE, HETU_PROFILE and
 * HETU_NAN alone read it. */
typedef struct ht_called {
    const char *at, *name, *value; // "gpt.c:42", "ht_linear", "y"; "": none
    double operations, bytes;      // floating-point operations and bytes of one call, by the operator's rule
    bool product, converts;        // whether the call runs at the rate of matrix products; whether it is a conversion
    bool endless;                  // HETU_NAN ignores infinities: an attribute is infinite, or the call copies its operands
    int first, count, read_count;  // entries of ht_part.made: `count` results from `first` on, then `read_count` operands
} ht_called;

/* Scope ("h3") and pragma layer of the calls of a part from call `first` on; "": none. */
typedef struct ht_whose {
    int first;
    const char *scope, *layer;
} ht_whose;

/* A part of a step (a phase): work that a device runs without waiting for another stage. */
typedef struct ht_part {
    const char *name; // "forward", "backward of visit 1", "update"
    ht_phase *run;    // NULL: nothing to compute
    int receive_count, send_count;
    const int *receive, *send; // transfers of the role: `receive` end before the part runs, `send` begin after the part has run
    int call_count;
    const unsigned short *call; // by call, in order of execution: index into `calls`
    const ht_called *calls;
    const ht_made *made;   // of `calls`
    const int64_t *buffer; // buffers of each call in order: its results, then its operands
    int whose_count;
    const ht_whose *whose; // one entry for the first call, and one for each change
} ht_part;

/* One run of a part for a micro-batch. `slot` is the number of the activation buffer; -1: none. */
typedef struct ht_row {
    int part, microbatch, slot;
} ht_row;

/* Rows that each device of a pipeline stage runs in a step, in order. */
typedef struct ht_schedule {
    int row_count, slot_count;
    const ht_row *row;
} ht_schedule;

/* Devices that share a program. */
typedef struct ht_image_role {
    int64_t arena_bytes, slot_bytes;
    int part_count, transfer_count;
    const ht_part *parts;
    const ht_transfer *transfers;
} ht_image_role;

/* A pipeline: the stages that run the model for some rows of the batch. Pipelines of one kind share
 * roles and conversion plans, which name devices by position. */
typedef struct ht_pipeline {
    int kind;
    int64_t microbatches, rows, first_row; // micro-batches a step; rows a micro-batch; the pipeline's first row within the batch
    int device_count;
    const int *device; // by position
} ht_pipeline;

/* A range of a C variable that hetucc read while it evaluated the model. The values must not change
 * while the program runs this strategy. */
typedef enum ht_number { HT_SIGNED, HT_UNSIGNED, HT_FLOATING } ht_number;

typedef struct ht_image_read {
    const char *name, *at; // "seq", "gpt.c:30"
    int64_t first, count;  // index of the first element, and how many; `first` -1: the variable is no array
    ht_number kind;
    int size;         // bytes of an element
    const void *then; // the values that hetucc read
} ht_image_read;

/* Name of the output with the square of the global gradient norm; exists where the source calls
 * ht_grad_norm. */
#define HT_GRADIENT_NORM "ht_grad_norm"

/* Version of the interface between emitted code and the runtime; changes with every change of
 * rt.h. */
enum { HT_IMAGE_VERSION = 14 };

typedef struct ht_image {
    int version;                           // HT_IMAGE_VERSION at compile time; version and fingerprint are the first fields in every version
    const char *fingerprint;               // digest of all that hetucc wrote for the source file
    const char *model, *source, *strategy; // the model function; the file; the strategy's name, NULL for one device
    bool trains, clipped;                  // whether gradients are clipped
    ht_dtype dtype;                        // the program's dtype: HT_F32 or HT_BF16
    int device_count;                      // ranks 0 .. device_count - 1
    int state_count;                       // states a parameter
    bool averaged;                         // whether the program reads averages of parameters (ht_averaged)
    int group_count;                       // parameter groups, with one for the parameters of no group
    const char *const *groups;             // name patterns; groups[0] is NULL, for parameters that match none
    const char *const *rule_names;         // two a group: names of `rule` and `after` (ht_optimizer); NULL: compared by address
    int param_count, input_count, output_count, role_count, read_count;
    const ht_image_param *params;
    const ht_image_input *inputs;
    const ht_image_output *outputs;
    int loss; // index into outputs; -1 when it does not train
    const ht_image_role *roles;
    const ht_image_read *reads;
    const int *role_of;          // by device; -1: the device is idle
    const int *piece_of;         // by device: the number of its ht_worker.piece; -1: it has none
    const int64_t *const *piece; // by number
    int pipeline_count;
    const ht_pipeline *pipelines;
    const int *pipeline_of;             // by device; -1: in no pipeline
    const int *schedule_of;             // by device; -1: it is idle
    const ht_schedule *const *schedule; // by number
    int plan_count;
    const ht_reshard *const *plan; // conversions of the program
    uint64_t digest;               // of the evaluated model under the strategy; 0: the program does not call ht_prepare
    uint64_t strategy_digest;      // of the strategy's text; 0 for one device
} ht_image;

/* Parameters and states that one conversion moves in a switch of strategies; `from` and `to` are
 * their slots under the old and the new strategy. */
typedef struct ht_migration_window {
    const ht_reshard *plan;
    const int *from, *to; // by tensor
} ht_migration_window;

/* Migration of a program from one strategy to another, window by window. Tensors in no window have
 * the same layout under both strategies. */
typedef struct ht_migration {
    const ht_image *from, *to;
    int window_count;
    const ht_migration_window *window;
} ht_migration;

typedef struct ht_migrations {
    int count;
    const ht_migration *at;
} ht_migrations;

struct ht_tensor;
typedef struct ht_tensor ht_model(void);

/* Registers an image before main. `updates` has two functions a group: the optimizer's operator or
 * rule, and its `after`. `now` has, by read of the image, the variable's address in the program. */
void ht_register(const ht_image *image, ht_model *model, void (*const *updates)(void), const volatile void *const *now);

/* Registers the migrations between images. */
void ht_register_migrations(const ht_migrations *migrations);

/* Content of a shared object that ht_prepare loads (symbol ht_arriving): images of new strategies,
 * and the migrations to and from them. `known` lists the program's own images in order of
 * registration, with model, strategy and digest alone. Image fresh[i] belongs to the same program
 * as known[like[i]]. */
typedef struct ht_arrival {
    int version; // HT_IMAGE_VERSION
    int known_count, fresh_count;
    const ht_image *const *known, *const *fresh;
    const int *like;
    const ht_migrations *migrations;
} ht_arrival;

/* Registers the command by which ht_prepare compiles new strategies for the images of a
 * fingerprint. `words` has the folder, the variable CC and the command; or one line that says why
 * compiling is impossible. NULL ends the list. */
void ht_register_source(const char *fingerprint, const char *const *words);

/* Registers the source and header files of the last ht_register_source, ended by NULL. The output
 * of hetucc changes only when one of these files changes. */
void ht_register_files(const char *const *files);

#ifdef __cplusplus
}
#endif

#endif
