/* What the files of the CUDA runtime know of its streams. Work of a rank goes to two of them: one
 * computes, the other exchanges with other ranks.
 *
 * A conversion begins on the exchange stream when all that was issued to the compute stream before
 * is done, and the compute stream waits for it before its next work (ht_compute_stream puts the
 * wait there). So conversions in a row wait for each other, but the compute stream goes on until
 * something new is put there.
 */
#ifndef CUDA_STREAMS_H
#define CUDA_STREAMS_H

#include "exchange/channel.h"
#include "base/fail.h"
#include "cuda/cuda.h"

cudaStream_t cuda_exchange_stream(void);

/* Called before and after work is issued to the exchange stream. */
void cuda_exchange_begin(void);
void cuda_exchange_end(void);

/* Makes and ends the streams; waits until all work is done, while it looks after other ranks. */
void cuda_streams_open(void);
void cuda_streams_close(void);
void cuda_streams_wait(void);

/* Records on a stream what begins there, for timeout messages; both texts are constants. A small
 * copy does it, without a kernel. */
void cuda_note(cudaStream_t stream, const char *what, const char *where);
const volatile FailNote *cuda_noted(void);

/* The step's numbers and faults: cuda/step.cu. */
void cuda_step_open(void);
void cuda_step_close(void);
void cuda_step_finish(void); // waits for the step, and ends the program when a kernel noted a fault

/* Puts the moves of a step on a stream: cuda/convert.cu. */
void cuda_move(const ChannelRun *run, const ht_reshard_step *step, cudaStream_t stream);

/* cuda_looked_at returns whether device_look is on, so that steps are issued call by call instead
 * of replayed. cuda_marks_close destroys the marks (cuda/marks.cu). */
bool cuda_looked_at(void);
void cuda_marks_close(void);

/* Frees scratch and constants: cuda/memory.cu. */
void cuda_memory_close(void);

#endif
