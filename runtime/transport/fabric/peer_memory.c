/* Permits reads by other processes under Yama (a Linux module), and repeats reads cut short. */
#include "transport/fabric/peer_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

static bool permitted;

/* Returns whether Yama restricts reads to ancestors and permitted processes. */
static bool needs_permission(void) {
    char scope = 0;
    int file = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    bool known = read(file, &scope, 1) == 1;
    close(file);
    return known && scope == '1';
}

pid_t peer_memory_reader(const pid_t *processes, const pid_t *parents, int count, int rank) {
    if (count == 2) return processes[!rank];
    for (int i = 1; i < count; i++)
        if (parents[i] != processes[0]) return 0;
    return count > 2 ? processes[0] : 0;
}

void peer_memory_permit(const pid_t *processes, const pid_t *parents, int count, int rank) {
    pid_t reader = peer_memory_reader(processes, parents, count, rank);
    if (reader <= 0 || !needs_permission()) return;
    permitted = !prctl(PR_SET_PTRACER, (unsigned long)reader, 0, 0, 0);
}

void peer_memory_forbid(void) {
    if (permitted) prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    permitted = false;
}

bool peer_memory_read(pid_t process, uint64_t address, void *data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        struct iovec to = {(char *)data + done, bytes - done},
                     from = {(char *)(uintptr_t)address + done, bytes - done};
        ssize_t moved = process_vm_readv(process, &to, 1, &from, 1, 0);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return false;
        done += (size_t)moved;
    }
    return true;
}
