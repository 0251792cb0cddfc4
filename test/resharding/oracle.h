/* What a conversion must do, element by element, from the regions alone; small tensors only. */
#ifndef RESHARDING_ORACLE_H
#define RESHARDING_ORACLE_H

#include "layout/layout.h"

/* Who holds what under a layout. */
typedef struct Held {
    int device_count, volume;
    const int *devices;
    const Region *regions; // by index in devices
    int **offset;          // by index in devices, by element: its place in the device's storage; -1: not held
    uint32_t **ids;        // by replica, by element: a bit for each contribution that is held
    int replica_count;
    StateKind partial;
} Held;

Held held_under(Arena *arena, const Layout *layout, Shape shape);

/* The value of an element, and a contribution to it: those of one replica sum up to the value, or have it as their maximum. */
float element_value(uint64_t seed, int element);
float contribution_value(const Held *held, uint64_t seed, int replica, int id, int element);

/* Elements that all devices together must receive at least, and how many more one standard collective in each set of duplicates may take.
 */
long lower_bound(const Held *from, const Held *to);
long textbook_slack(const Held *from, const Held *to);

/* Elements that the busiest device must send, and the busiest one must receive, whatever the plan, when the bytes are at the bound: for
 * each set of devices that alone can move some elements, these divided evenly. Device numbers are below 32. */
void must_move(Arena *arena, const Held *from, const Held *to, double *send, double *receive);

#endif
