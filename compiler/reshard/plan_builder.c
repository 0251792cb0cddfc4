#include "reshard/devices.h"

void push_transfer(PlanBuilder *planner, Transfers *list, Segment segment, Devices holders,
                   Devices receivers) {
    if (receivers.count && segment.lo < segment.hi)
        array_push(planner->arena, list, (Transfer){segment, holders, receivers});
}

void push_result(PlanBuilder *planner, Transfers *list, Segment segment, int holder,
                 const Devices *targets) {
    Devices holders = {0};
    array_push(planner->arena, &holders, holder);
    push_transfer(planner, list, segment, holders,
                  devices_without(planner->arena, targets, holder));
}
