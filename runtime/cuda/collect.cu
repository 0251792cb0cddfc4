#include "cuda/collect.h"

static CollectLaunch *pending; // what launches the calls that wait; nullptr: none wait

void collect_for(CollectLaunch *launch) {
    if (pending != launch) cuda_collected_launch();
    pending = launch;
}

void cuda_collected_launch(void) {
    CollectLaunch *launch = pending;
    pending = nullptr;
    if (launch) launch();
}
