/* Holdings: sets of devices of a layout that hold the same elements of the same contribution.
 *
 *     [0-3]{0:2,dup:2}: two holdings, devices {0, 1} with the first half and {2, 3} with the second
 */
#pragma once

#include "layout/layout.h"
#include "support/array.h"

/* A holding: devices with the same region, replica and contribution. */
typedef struct Holding {
    int replica, partial; // replica: its smallest device; partial: the smallest device of the
                          // replica with this contribution; both 0 if no reduction is pending
    Array(int) devices;   // devices, in the layout's order
    const Layout *layout;
    const Region *region;
} Holding;

/* A device and the number of its holding. */
typedef struct Member {
    int device, holding;
} Member;

/* All holdings of a layout. */
typedef struct Holdings {
    StateKind partial; // kind of pending reduction, STATE_DUP if none (layout_partial)
    Array(Holding) list;
    int device_count;
    Member *members; // members, by ascending device number
} Holdings;

/* Returns the holdings of a checked layout of a tensor of `shape`, in the layout's device order. */
Holdings holdings_of(Arena *arena, const Layout *layout, Shape shape);

/* Returns the index of a device's holding; -1 when the device is not in the layout. */
int holdings_find(const Holdings *holdings, int device);
