#include "transport/transfer.h"

#include <string.h>

void transfer_copy_own(int rank, const HostTransfer *sends, int send_count,
                       const HostTransfer *receives, int receive_count) {
    int r = 0;
    for (int s = 0; s < send_count; s++) {
        if (sends[s].rank != rank) continue;
        while (r < receive_count && receives[r].rank != rank) r++;
        if (sends[s].bytes) memmove(receives[r].data, sends[s].data, sends[s].bytes);
        r++;
    }
}
