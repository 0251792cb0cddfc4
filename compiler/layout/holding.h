/* Holdings: the devices of a layout that hold the same elements of the same contribution. */
#ifndef LAYOUT_HOLDING_H
#define LAYOUT_HOLDING_H

#include "layout/layout.h"
#include "support/array.h"

/* Devices with the same region, replica and contribution. */
typedef struct Holding {
    int replica, partial; // named by their smallest device, so that numbering does not matter; 0
                          // where nothing is partial
    Array(int) devices;   // in the layout's order
    const Layout *layout;
    const Region *region;
} Holding;

/* A device and the number of its holding. */
typedef struct Member {
    int device, holding;
} Member;

/* What the devices of a layout hold. */
typedef struct Holdings {
    StateKind partial; // as layout_partial says
    Array(Holding) list;
    int device_count;
    Member *members; // in ascending order
} Holdings;

/* Returns the holdings of a checked layout of a tensor of `shape`, in the order of their first
 * devices. */
Holdings holdings_of(Arena *arena, const Layout *layout, Shape shape);

/* Returns the number of a device's holding; -1 when the device stands nowhere in the layout. */
int holdings_find(const Holdings *holdings, int device);

#endif
