#include "threads.h"

#include "device/device.h"
#include "session/core/session.h"

void threads_take(void) {
    session_set_threads();
    device_open();
}
