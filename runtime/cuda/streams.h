/* The streams of the CUDA runtime: a rank has a compute stream, and an exchange stream for
 * communication with other ranks.
 *
 * A conversion on the exchange stream begins when all earlier work of the compute stream is done.
 * The next work on the compute stream waits for the conversion; ht_compute_stream inserts the wait.
 * So consecutive conversions wait for each other, but the compute stream continues until something
 * new is put there. */
#ifndef CUDA_STREAMS_H
#define CUDA_STREAMS_H

#include "exchange/channel.h"
#include "base/fail.h"
#include "cuda/cuda.h"

cudaStream_t cuda_exchange_stream(void);

/* Begin and end the issue of work to the exchange stream. */
void cuda_exchange_begin(void);
void cuda_exchange_end(void);

/* Create the streams, destroy them, and wait until all work is done. The wait checks the other
 * ranks meanwhile. */
void cuda_streams_open(void);
void cuda_streams_close(void);
void cuda_streams_wait(void);

/* Records on a stream which collective begins there, for timeout messages. Both texts are
 * constants. The note is a small copy, not a kernel. */
void cuda_note(cudaStream_t stream, const char *what, const char *where);
const volatile FailNote *cuda_noted(void);

/* Numbers and faults of the step (cuda/step.cu). */
void cuda_step_open(void);
void cuda_step_close(void);
void cuda_step_finish(
    void); // waits for the step, and ends the program if a kernel has noted a fault

/* Puts the moves of a step on a stream (cuda/convert.cu). */
void cuda_move(const ChannelRun *run, const ht_reshard_step *step, cudaStream_t stream);

/* cuda_looked_at returns whether device_look is on, so that steps are issued call by call instead
 * of replayed. cuda_marks_close destroys the marks (cuda/marks.cu). */
bool cuda_looked_at(void);
void cuda_marks_close(void);

/* Frees scratch memory and constants (cuda/memory.cu). */
void cuda_memory_close(void);

#endif
