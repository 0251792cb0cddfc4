/* Reads memory of other ranks of this machine (process_vm_readv): large messages take one copy.
 *
 * Linux allows it if the two processes have one user. Yama (ptrace_scope 1) also demands that the
 * reader is an ancestor of the rank that is read, or has its permission (PR_SET_PTRACER). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Permits the other ranks of this machine to read this rank's memory, if Yama demands that and one
 * permission suffices. Yama keeps one: for a process and its descendants. `processes` are the ranks
 * of this machine, in order; `parents` their parents. `rank` is this rank's index. */
void peer_memory_permit(const pid_t *processes, const pid_t *parents, int count, int rank);

/* Withdraws the permission. */
void peer_memory_forbid(void);

/* Returns the process that rank `rank` permits to read its memory; 0: no process suffices. */
pid_t peer_memory_reader(const pid_t *processes, const pid_t *parents, int count, int rank);

/* Copies `bytes` bytes at an address of another process. Returns false on failure; then some bytes
 * of `data` may have been written. */
bool peer_memory_read(pid_t process, uint64_t address, void *data, size_t bytes);
