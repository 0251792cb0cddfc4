/* schedule.h: what a device runs in a step: parts, the rows of its schedule, and transfers.
 *
 *     row 0: forward, micro-batch 0       row 1: forward, micro-batch 1
 *     row 2: backward, micro-batch 0      row 3: backward, micro-batch 1      row 4: update
 */
#ifndef HETU_SCHEDULE_H
#define HETU_SCHEDULE_H

#include <hetu/reshard.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct ht_worker ht_worker;
typedef void ht_phase(ht_worker *r);

/* Kind of a transfer. Transfers wait for no other, but a message between stages waits for the same
 * message of the previous micro-batch, and for sends that still read the memory that it fills. */
typedef enum ht_queue {
    HT_QUEUE_STAGES,    // messages between pipeline stages
    HT_QUEUE_GRADIENTS, // gradient buckets: exchanged once a step, after the last micro-batch
    HT_QUEUE_AHEAD,     // prefetches: gathers that begin and end within a part
    HT_QUEUES
} ht_queue;

/* A conversion that carries tensors between parts on different devices and overlaps with computing.
 *
 * HT_QUEUE_STAGES: a sender begins the transfer when the sending part has run. A device that only
 * receives begins the transfer as soon as no earlier row uses the activation buffer (slot) that
 * receives. The transfer ends before the receiving part runs, and before a row reuses the slot for
 * another micro-batch. Parts run micro-batches in ascending order, so that sends and receives match
 * by order. No row of the same micro-batch reuses the transfer's memory before the transfer ends.
 *
 * HT_QUEUE_GRADIENTS: the transfer runs once a step. A device begins the transfer in the last
 * micro-batch after `ready` calls of ht_ready. All devices begin these transfers in the order of
 * `number`, and do not wait until the previous transfer has ended.
 *
 * HT_QUEUE_AHEAD: the transfer runs within a part, from ht_begin_ahead to ht_end_ahead. */
typedef struct ht_transfer {
    const ht_reshard *plan;   // one of the image's plans; HT_QUEUE_STAGES: no other transfer shares the plan
    const int64_t *from, *to; // buffer numbers by tensor; 0: the role holds nothing of the tensor
    const int64_t *turn; // by tensor: bytes of one micro-batch, if `from` holds all micro-batches (an input); 0: `from` holds one
    int64_t scratch;     // buffer number of the plan's scratch memory
    ht_queue queue;
    int ready;         // HT_QUEUE_GRADIENTS: calls of ht_ready before the transfer begins; 0: the device only receives, and begins with the step
    int number;        // HT_QUEUE_GRADIENTS: number within the program, equal on all devices
    const char *where; // "gpt.c:42"
} ht_transfer;

/* Elements of one buffer that a call of a part writes or reads: `count` elements at byte offset
 * `turn` * micro-batch. */
typedef struct ht_made {
    int64_t turn, count;
    ht_dtype dtype;
} ht_made;

/* Description of equal calls of a part, without their buffers. Only HETU_TRACE, HETU_PROFILE and
 * HETU_NAN read the description. */
typedef struct ht_called {
    const char *at, *name, *value; // "gpt.c:42", "ht_linear", "y"; "": not known
    double operations, bytes;      // floating-point operations and bytes of one call, by the operator's rule
    bool product, converts;        // whether the call runs at the rate of matrix products; whether it is a conversion
    bool endless;                  // HETU_NAN ignores infinities: an attribute is infinite, or the call copies its operands
    int first, count, read_count;  // entries of ht_part.made from `first` on: `count` results, then `read_count` operands
} ht_called;

/* Scope ("h3") and pragma layer of the calls of a part from call `first` on; "" if unknown. */
typedef struct ht_whose {
    int first;
    const char *scope, *layer;
} ht_whose;

/* A part of a step (a phase): work that a device runs without waiting for another stage. */
typedef struct ht_part {
    const char *name; // "forward", "backward of visit 1", "update"
    ht_phase *run;    // NULL: the part computes nothing
    int receive_count, send_count;
    const int *receive, *send; // transfers of the role: `receive` end before the part runs, `send` begin after the part has run
    int call_count;
    const unsigned short *call; // by call, in order of execution: index into `calls`
    const ht_called *calls;
    const ht_made *made;   // the elements that `calls` write and read
    const int64_t *buffer; // buffers of each call in order: its results, then its operands
    int whose_count;
    const ht_whose *whose; // one entry for the first call, and one for each change
} ht_part;

/* One run of a part for a micro-batch. `slot` numbers its activation buffer; -1: no buffer. */
typedef struct ht_row {
    int part, microbatch, slot;
} ht_row;

/* Rows that each device of a pipeline stage runs in a step, in order. */
typedef struct ht_schedule {
    int row_count, slot_count;
    const ht_row *row;
} ht_schedule;

/* A role: devices that share a program. slot_bytes: bytes of one activation buffer. */
typedef struct ht_image_role {
    int64_t arena_bytes, slot_bytes;
    int part_count, transfer_count;
    const ht_part *parts;
    const ht_transfer *transfers;
} ht_image_role;

/* A pipeline: the stages that run the model for some rows of the batch. Pipelines of one template,
 * which `kind` numbers, share roles and conversion plans, which name devices by position. */
typedef struct ht_pipeline {
    int kind;
    int64_t microbatches, rows, first_row; // micro-batches a step; rows a micro-batch; the pipeline's first row within the batch
    int device_count;
    const int *device; // by position
} ht_pipeline;

#endif
