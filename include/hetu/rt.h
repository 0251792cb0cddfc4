/* rt.h: all that emitted code may call.
 *
 * hetucc writes an image for each model: constant tables (ht_image) and, for each role, functions
 * that run the operators of a phase in order. A constructor registers the image with the model
 * function that it stands for; ht_train and ht_infer find it by that function. Every emitted
 * function gets the ht_worker of its program: where the arena and the parameters of this rank are,
 * and what differs between the devices of a role.
 *
 * A buffer is a number that all ranks of a role share. When it is negative, it is -1 - slot: slots
 * are the tensors that outlive a step: the parameters, then the optimizer's states (those of a
 * parameter in a row), then the inputs. With HT_KEPT set it is bytes into what is kept of the
 * micro-batch at work, from one part of the step to a later one; else bytes into the arena.
 *
 * What a device does in a step is a table of rows: a part, which is an emitted function, and a
 * micro-batch that it runs for. What parts hand over to each other across devices are transfers,
 * which begin and end beside the computing.
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

/* Where a tensor is: void * in C; in C++, which emitted CUDA C is, something that becomes a pointer
 * to anything. */
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

struct ht_pipeline;

typedef struct ht_worker {
    char *arena;          // aligned to 64 bytes
    char *kept;           // the slot of the micro-batch at work; aligned to 64 bytes
    void *const *slot;    // pieces of this rank
    const int64_t *piece; // this device's row of numbers that differ within a role: offsets of pieces, whether to add a bias
    const float *hyper;   // of the optimizer
    int64_t step;
    int64_t microbatch; // of this pipeline's in the step
    int64_t row;        // of the batch, at which the micro-batch begins
    int training;
    uint64_t seed;
    int device;
    const struct ht_pipeline *pipeline; // of this device
    int position;                       // in it
    struct AsyncExchanges *async_exchanges;            // of the schedule at work: the library's
    struct Window *window;              // what looks on; NULL: nobody does
} ht_worker;

#define HT_KEPT (INT64_C(1) << 62)

/* A function that is compiled as it is, not once more for the numbers that it is called with. */
#if defined __GNUC__ && !defined __clang__
#define HT_SHARED_BODY static __attribute__((noipa))
#else
#define HT_SHARED_BODY static __attribute__((noinline))
#endif

/* The storage of a buffer in the arena, in what is kept of a micro-batch, of a slot, and of any of
 * them. */
static inline ht_address ht_arena(const ht_worker *r, int64_t offset) { return HT_ADDRESS(r->arena + offset); }

static inline ht_address ht_slot(const ht_worker *r, int64_t slot) { return HT_ADDRESS(r->slot[slot]); }

static inline ht_address ht_kept(const ht_worker *r, int64_t offset) { return HT_ADDRESS(r->kept + offset); }

static inline ht_address ht_at(const ht_worker *r, int64_t buffer)
{
    return buffer < 0 ? ht_slot(r, -1 - buffer) : buffer & HT_KEPT ? ht_kept(r, buffer - HT_KEPT) : ht_arena(r, buffer);
}

/* The part of an input, or of collected rows, that belongs to the micro-batch at work: `bytes` of
 * its buffer. */
static inline ht_address ht_turn(const ht_worker *r, int64_t buffer, int64_t bytes)
{
    char *first = ht_at(r, buffer);
    return HT_ADDRESS(first + r->microbatch * bytes);
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

/* Runs a kernel. `call` has the operands, results and attributes; step, training and seed are
 * filled in from `r`. `where` is the place in the source: "gpt.c:42 h3". */
void ht_run_kernel(ht_worker *r, ht_kernel *kernel, ht_call *call, const char *where);

/* The sum of the squares of all elements, and of a number where there is one: what the norm of all
 * gradients is made of. */
ht_kernel ht_square_sum_kernel;

/* `count` elements of f32 as bf16. */
void ht_narrow(void *to, const void *from, int64_t count);

/* Runs a conversion between layouts; `scratch` is NULL when the plan needs none. */
void ht_convert(ht_worker *r, const ht_reshard *plan, const void *from, void *to, void *scratch, const char *where);

/* The next call of the part at work has been made (ht_part.calls). */
void ht_window_call(ht_worker *r);
static inline void ht_did(ht_worker *r)
{
    if (r->window)
        ht_window_call(r);
}

/* What transfer `number` of the role, one of HT_QUEUE_GRADIENTS, reads is there as far as the part
 * at work makes it; nothing before the last micro-batch. */
void ht_ready(const ht_worker *r, int number);

/* Begins transfer `number` of the role, one of HT_QUEUE_AHEAD; and what comes behind ht_end_ahead
 * finds it ended. */
void ht_begin_ahead(const ht_worker *r, int number);
void ht_end_ahead(const ht_worker *r, int number);

/* Adds `count` elements of `from` to `to`; in the first micro-batch they are its first value. */
void ht_accumulate(const ht_worker *r, void *to, const void *from, int64_t count, ht_dtype dtype);

/* Sets `count` elements of a result whose operands are empty here: to 0, or to minus infinity (the
 * lowest number) for a maximum. */
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

/* `count` devices from `device` on: the first has piece `piece`, each other one the piece `step`
 * behind that of the device before it. */
typedef struct ht_run {
    int device, count, piece, step;
} ht_run;

/* What every device holds of a tensor: boxes of the tensor seen in the shape `extent`, which has
 * its elements in the same row-major order.
 */
typedef struct ht_pieces {
    int rank, run_count, row_count;
    const int64_t *extent;
    const ht_run *run;  // the pieces of devices, ascending; devices in no run hold nothing; devices that hold the same have one piece
    const int *first;   // piece p is the boxes first[p] to before first[p + 1]; NULL: box p
    const int64_t *box; // row_count rows of 1 + 3 * rank numbers: the number of a box, and lo, hi and step of each dimension; the boxes up
                        // to that of the next row lie by the steps behind the one in front of them. Empty boxes are left out, a device's
                        // boxes lie one after another in its storage
    const int64_t *placing; // NULL; or where boxes lie otherwise, as parts of larger tensors: 1 + rank numbers a box, the element of the
                            // device's storage at which it begins and the extents of its tensor
} ht_pieces;

enum { HT_MAX_STATES = 4 };

typedef struct ht_image_param {
    const char *name, *shape; // "(3, 4)"
    const ht_pieces *pieces;
    int init; // ht_init_kind of hetu.h
    double a; // its number
    int state_count;
    const ht_pieces *state[HT_MAX_STATES];
    bool changes; // a step gives it another value
} ht_image_param;

/* What of an input is not read, where pipelines read its rows only so far: it must be `value`,
 * which stands for nothing. */
typedef struct ht_padding {
    double value;
    int rank, count;
    const int64_t *extent; // of the input; the first dimension is the batch's rows
    const int64_t *rows;   // of each such pipeline its first row, the one behind its last, and how far it reads the other dimensions
} ht_padding;

typedef struct ht_image_input {
    const char *name;
    ht_dtype dtype;
    const ht_pieces *pieces;
    const char *at;            // "gpt.c:30"
    const ht_padding *padding; // NULL: all is read, or what is not may be anything
} ht_image_input;

typedef struct ht_image_output {
    const char *name;
    ht_dtype dtype;
    const ht_pieces *pieces;
    const int64_t *buffer; // by role
} ht_image_output;

typedef void ht_phase(ht_worker *r);

/* Transfers of different queues never wait for each other; those of one do not either, but a
 * message between stages for the one of the micro-batch before. */
typedef enum ht_queue {
    HT_QUEUE_STAGES,    // messages between stages
    HT_QUEUE_GRADIENTS, // what is exchanged once a step
    HT_QUEUE_AHEAD,     // what is gathered within a part, before it is read
    HT_QUEUES
} ht_queue;

/* What parts hand over to each other across devices, planned together.
 *
 * On a device it begins when a part that sends it has run; where none does, as soon as no row is
 * left to run before that uses its slot. It has ended before a part runs that receives it, and
 * before a row runs that uses its slot for another micro-batch. Micro-batches go through a part in
 * ascending order, so the messages of a transfer match in their order. What it reads and writes
 * stays as it is until it has ended: no row of its own micro-batch uses that memory for anything
 * else.
 *
 * One of HT_QUEUE_GRADIENTS runs once a step: when its parts have called ht_ready for it, in the
 * last micro-batch, as often as `ready` says, and those before it in the role's list have begun, so
 * that all devices begin them in one order, which is that of `number`. They do not wait for each
 * other.
 *
 * One of HT_QUEUE_AHEAD runs within a part: ht_begin_ahead begins it, and behind ht_end_ahead it
 * has ended. */
typedef struct ht_transfer {
    const ht_reshard *plan;   // one of the image's; of HT_QUEUE_STAGES of this transfer alone
    const int64_t *from, *to; // by tensor: buffers; 0 where the role holds nothing of it
    const int64_t *turn; // by tensor: bytes of `from`, a part of an input, that belong to each micro-batch; 0: it is of the one at work
    int64_t scratch;     // a buffer
    ht_queue queue;
    int ready;         // HT_QUEUE_GRADIENTS: calls of ht_ready; 0: it only receives, and begins with the step
    int number;        // HT_QUEUE_GRADIENTS: among all of the program, the same on all devices
    const char *where; // "gpt.c:42"
} ht_transfer;

/* What a call of a part makes, or reads: so many elements of a buffer, from `turn` bytes times the
 * number of the micro-batch on. */
typedef struct ht_made {
    int64_t turn, count;
    ht_dtype dtype;
} ht_made;

/* What calls of a part have in common but for their buffers, as HETU_TRACE, HETU_PROFILE and
 * HETU_NAN speak of it; nothing else reads this.
 */
typedef struct ht_called {
    const char *at, *name, *value; // "gpt.c:42", "ht_linear", "y"; "": none
    double operations, bytes;      // of a call of an operator, as its rule says
    bool product, converts;        // at the rate of products; a conversion
    bool endless;                  // infinities are no news: one of its numbers is infinite, or it gives on what it gets
    int first, count, read_count;  // what it makes, and behind that what it reads: of ht_part.made
} ht_called;

/* Where calls of a part belong, from one of them on: "h3", and the pragma's layer; "": none. */
typedef struct ht_whose {
    int first;
    const char *scope, *layer;
} ht_whose;

/* A part of a step: what a device does without waiting for another stage. */
typedef struct ht_part {
    const char *name; // "forward", "backward of visit 1", "update"
    ht_phase *run;    // NULL: nothing to compute
    int receive_count, send_count;
    const int *receive, *send; // of the role's transfers: those that have ended before it runs; those that begin when it has run
    int call_count;
    const unsigned short *call; // by call, in their order: which of `calls` it is
    const ht_called *calls;
    const ht_made *made;   // of `calls`
    const int64_t *buffer; // what each call makes, and behind that what it reads, one call after the other
    int whose_count;
    const ht_whose *whose; // of the first call, and wherever it changes
} ht_part;

/* A part that runs for a micro-batch; `slot` is where values of the micro-batch are kept, -1:
 * nowhere. */
typedef struct ht_row {
    int part, microbatch, slot;
} ht_row;

/* What the devices of one stage of a pipeline do in a step. */
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

/* Devices that take micro-batches through the model. Pipelines of one kind share roles, and plans
 * that name devices by their positions. */
typedef struct ht_pipeline {
    int kind;
    int64_t microbatches, rows, first_row; // of a step; of a micro-batch; of the batch, at which the pipeline's begin
    int device_count;
    const int *device; // by position
} ht_pipeline;

/* Numbers in a row that the model's evaluation read of a variable; as long as the program runs it,
 * they stay the same. */
typedef enum ht_number { HT_SIGNED, HT_UNSIGNED, HT_FLOATING } ht_number;

typedef struct ht_image_read {
    const char *name, *at; // "seq", "gpt.c:30"
    int64_t first, count;  // the index of the first one; -1: it is in no array
    ht_number kind;
    int size;         // of one, in bytes
    const void *then; // what was read
} ht_image_read;

/* The output that has the square of the norm of all gradients, where the source calls
 * ht_grad_norm. */
#define HT_GRADIENT_NORM "ht_grad_norm"

/* What an image is like, and what emitted code may call: another number when that changes. */
enum { HT_IMAGE_VERSION = 14 };

typedef struct ht_image {
    int version;                           // HT_IMAGE_VERSION when it was compiled; this and the fingerprint come first in every version
    const char *fingerprint;               // of the source file's images; equal where all that hetucc wrote for it is, for a reader too
    const char *model, *source, *strategy; // the model function; the file; the strategy's name, NULL for one device
    bool trains, clipped;                  // whether gradients are clipped
    ht_dtype dtype;                        // what it computes in
    int device_count;                      // ranks 0 .. device_count - 1
    int state_count;                       // states a parameter
    bool averaged;                         // it reads averages of parameters
    int group_count;                       // of parameters with optimizers of their own, and one of the others
    const char *const *groups;             // patterns of names; of the others, who are first, NULL
    const char *const *rule_names;         // two a group: of the optimizer's rule and of what comes behind; NULL: it is known by its address
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
    const int *pipeline_of;             // by device; -1: it is in none
    const int *schedule_of;             // by device; -1: it is idle
    const ht_schedule *const *schedule; // by number
    int plan_count;
    const ht_reshard *const *plan; // its conversions
    uint64_t digest;               // of what the model is under the strategy; 0 where the program does not call ht_prepare
    uint64_t strategy_digest;      // of the strategy's text; 0 for one device
} ht_image;

/* Tensors of a program that go together from one strategy to another: parameters and states, by the
 * slots that they have under either. */
typedef struct ht_migration_window {
    const ht_reshard *plan;
    const int *from, *to; // by tensor
} ht_migration_window;

/* How a program goes from one strategy to another: window by window. What is in none of them lies
 * alike under both. */
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

/* Registers an image before main; `updates` are the functions of its optimizers, two a group: the
 * operator or rule, and what comes behind; `now` is where the program has the numbers of the
 * image's reads. */
void ht_register(const ht_image *image, ht_model *model, void (*const *updates)(void), const volatile void *const *now);

/* Registers the migrations between images. */
void ht_register_migrations(const ht_migrations *migrations);

/* What a shared object that ht_prepare loads has under the name ht_arriving: images of further
 * strategies, and how programs go to them and back. Of images that the program has, `known` has the
 * model, the strategy and the digest alone, in the order of their registration; fresh image i is
 * the same program as known one like[i]. */
typedef struct ht_arrival {
    int version; // HT_IMAGE_VERSION
    int known_count, fresh_count;
    const ht_image *const *known, *const *fresh;
    const int *like;
    const ht_migrations *migrations;
} ht_arrival;

/* Registers how the images of a fingerprint are compiled with further strategies: the folder, the
 * variable CC, and the command, NULL at its end; or why they cannot be, a line alone and NULL. */
void ht_register_source(const char *fingerprint, const char *const *words);

/* Registers the files that the source registered last was read from, NULL at their end: hetucc's
 * answer is another only when one of them is. */
void ht_register_files(const char *const *files);

#ifdef __cplusplus
}
#endif

#endif
