/* Threads of kernels. */
#ifndef HETU_PROFILE_THREADS_H
#define HETU_PROFILE_THREADS_H

/* Sets the number of kernel threads of this rank as programs do. */
void threads_take(void);

#endif
