/* Launches the collected calls before other work. Who collects: casts.cu, optimizer.cu,
 * gradient_norm.cu. */
#include "cuda/multi_tensor.h"

static CollectLaunch *pending; // launches the waiting calls; nullptr: no calls wait

void collect_for(CollectLaunch *launch) {
    if (pending != launch) cuda_collected_launch();
    pending = launch;
}

void cuda_collected_launch(void) {
    CollectLaunch *launch = pending;
    pending = nullptr;
    if (launch) launch();
}
