/* The streams of the CUDA runtime, and which collectives run on which:
 *
 *     kernels, conversions without communication          the compute stream
 *     conversions that computing waits for                the exchange stream
 *     gradient buckets (HT_QUEUE_GRADIENTS)               one side stream
 *     prefetches (HT_QUEUE_AHEAD)                         one side stream
 *     messages between pipeline stages (HT_QUEUE_STAGES)  one side stream for each plan, since a
 *                                                         message may begin at any time, and waits
 *                                                         for no message of another plan
 *
 * Without NCCL, each thread of async exchanges has a stream (exchange_threads.cu).
 *
 * A conversion on the exchange stream begins when all earlier work of the compute stream is done.
 * The next work on the compute stream waits for the conversion; ht_compute_stream inserts the wait.
 * So conversions wait for each other, but earlier work of the compute stream does not wait. */
#pragma once

#include "exchange/channel.h"
#include "base/fail.h"
#include "cuda/cuda.h"

#include <hetu/schedule.h>

cudaStream_t cuda_exchange_stream(void);

/* Begin and end issuing work to the exchange stream. */
void cuda_exchange_begin(void);
void cuda_exchange_end(void);

/* A stream for async exchanges (exchange/async_exchange.h) of one owner. nccl.cu issues them. */
typedef struct SideStream {
    const ht_reshard *owner; // see side_stream_owner
    cudaStream_t stream;
} SideStream;

/* Returns the owner of the side stream and of the communicators for a plan in a queue. In
 * HT_QUEUE_STAGES each plan is its own owner; in each other queue all plans share one owner. */
const ht_reshard *side_stream_owner(const ht_reshard *plan, ht_queue queue);

/* Return an owner's side stream (NULL: none), create it if there is none, and destroy all. */
const SideStream *side_stream_find(const ht_reshard *owner);
void side_stream_add(const ht_reshard *owner);
void side_streams_close(void);

/* Create the streams, destroy them, and wait until all work is done. While it waits,
 * cuda_streams_wait checks the other ranks. */
void cuda_streams_open(void);
void cuda_streams_close(void);
void cuda_streams_wait(void);

/* cuda_note records which collective begins on a stream, by a small copy instead of a kernel. The
 * two texts are constants. cuda_noted returns the last note, for timeout messages. */
void cuda_note(cudaStream_t stream, const char *what, const char *where);
const volatile FailNote *cuda_noted(void);

/* Allocate and free memory for a step's numbers and faults (cuda/step.cu). cuda_step_finish waits
 * for the step, and ends the program if a kernel has recorded a fault. */
void cuda_step_open(void);
void cuda_step_close(void);
void cuda_step_finish(void);

/* Issues the local moves of a conversion's step on a stream (cuda/copy_boxes.cu). */
void cuda_move(const ChannelRun *run, const ht_reshard_step *step, cudaStream_t stream);

/* cuda_looked_at returns whether device_look is on, so that steps are issued call by call instead
 * of replayed. cuda_marks_close destroys the marks (cuda/profiler_marks.cu). */
bool cuda_looked_at(void);
void cuda_marks_close(void);

/* Frees scratch memory and constants (cuda/memory.cu). */
void cuda_memory_close(void);
