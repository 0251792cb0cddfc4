/* Threads of kernels. */
#ifndef HETU_PROFILE_THREADS_H
#define HETU_PROFILE_THREADS_H

/* This rank has as many threads for kernels as in a program. */
void threads_take(void);

#endif
