/* Conversions between layouts, as emitted programs carry them.
 *
 * The compiler plans every conversion (compiler/reshard) and writes it as constant tables: for each
 * device a short list of steps over three buffers: the tensor before (`from`) and after (`to`) the
 * conversion, and scratch. A tensor's storage is the device's boxes, one after another, each
 * row-major. A plan converts one tensor, or several of different shapes and types together.
 *
 *     ht_reshard_run(&gradient_sum, device, from, to, scratch);
 *     ht_reshard_run_all(&new_strategy, device, weights, new_weights, scratch);
 *
 * All devices of the plan call ht_reshard_run, in the same order of plans. On a device that is not
 * in the plan, the call does nothing.
 */
#ifndef HETU_RESHARD_H
#define HETU_RESHARD_H

#include <hetu/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ht_place { HT_FROM, HT_TO, HT_SCRATCH } ht_place;

typedef enum ht_reduction { HT_NO_REDUCTION, HT_SUM, HT_MAX } ht_reduction;

/* Kind of a step. In a collective with several blocks, block i of a list is for group member i. */
typedef enum ht_verb {
    HT_COPY,           /* moves: to = from */
    HT_COMBINE,        /* moves: to = to (+ or max) from */
    HT_FILL,           /* moves: to = the reduction's identity; `from` is not read */
    HT_ALL_REDUCE,     /* send[0] to receive[0], the same count on all members */
    HT_REDUCE_SCATTER, /* send[i] is for member i, one block after another; receive[0] is the result */
    HT_ALL_GATHER,     /* send[0] goes to all members; receive[i] comes from member i; all receive[i] are in one buffer, one after another if their counts are equal */
    HT_ALL_TO_ALL,     /* send[i] is for member i, receive[i] comes from it; all send[i] are in one buffer, all receive[i] in one */
    HT_BROADCAST,      /* send[0] on the root, receive[0] on the other members */
    HT_REDUCE,         /* send[0] on all members, receive[0] on the root */
    HT_EXCHANGE        /* batched send and receive; `peer` of each block is a device */
} ht_verb;

/* One dimension of a move. */
typedef struct ht_stride {
    int64_t extent, from, to;
} ht_stride;

/* A strided copy of a box of a tensor, with dimensions from the outermost to the innermost. Offsets
 * (from the start of the buffer) and strides are in elements of the tensor. */
typedef struct ht_move {
    ht_place from, to;
    int tensor;
    int64_t from_offset, to_offset;
    int rank;
    const ht_stride *dim;
} ht_move;

/* A contiguous piece of a buffer that is sent or received, counted in elements of the step's type.
 * A block in scratch may hold parts of several tensors. */
typedef struct ht_block {
    ht_place place;
    int tensor; /* HT_FROM, HT_TO: index of the tensor whose buffer this is */
    int peer;   /* HT_EXCHANGE: the other device */
    int64_t offset, count;
} ht_block;

typedef struct ht_reshard_step {
    ht_verb verb;
    ht_dtype dtype;         /* element type of the blocks; for tensors of several types, the smallest type */
    ht_reduction reduction; /* of collectives that reduce */
    int move_count, send_count, receive_count;
    int group, root; /* index into the plan's groups; position of the root in that group */
    const ht_move *move;
    const ht_block *send, *receive;
} ht_reshard_step;

/* Devices that act together, in order. */
typedef struct ht_group {
    int count;
    const int *device;
} ht_group;

/* The steps of one device. */
typedef struct ht_reshard_device {
    int device, step_count;
    int64_t scratch; /* bytes */
    const ht_reshard_step *step;
} ht_reshard_device;

/* A tensor that is converted. */
typedef struct ht_reshard_tensor {
    ht_dtype dtype;
    ht_reduction reduction;
    int in_place; /* its `from` and `to` may be the same buffer */
} ht_reshard_tensor;

typedef struct ht_reshard {
    const char *name; /* for messages: "gpt.c:42: all-reduce" */
    int kind;         /* -1: devices are ranks; else positions in each pipeline with this `kind` (schedule.h) */
    int tensor_count, group_count, device_count;
    const ht_reshard_tensor *tensor;
    const ht_group *group;
    const ht_reshard_device *device; /* ascending by number */
    int replica_group_count, replica_group_size;
    const int *replica_group; /* devices of the replica groups, one group after another; each group runs the same plan, whose other device numbers are positions in a group. NULL: no replica groups, plain device numbers */
} ht_reshard;

/* Runs `device`'s part of a plan of one tensor; device numbers are ranks of MPI_COMM_WORLD.
 * `scratch` has ht_reshard_scratch bytes, aligned to 64. Ends the program with a message when
 * communication fails. */
void ht_reshard_run(const ht_reshard *plan, int device, const void *from, void *to, void *scratch);

/* Runs a plan of any number of tensors, with one buffer for each. A buffer may be NULL if the
 * device holds nothing of the tensor. */
void ht_reshard_run_all(const ht_reshard *plan, int device, const void *const *from, void *const *to, void *scratch);

/* Returns the bytes that `device` receives in one run, by the usual count of bus bandwidth: (n-1)/n
 * of the result of an all-gather, and so on. */
int64_t ht_reshard_received(const ht_reshard *plan, int device);

/* Returns the bytes of scratch that a device needs. */
int64_t ht_reshard_scratch(const ht_reshard *plan, int device);

#ifdef __cplusplus
}
#endif

#endif
