/* Divisions of a value by hosts: where hosts divide it differently, the borders of all together
 * give the finest slices. */
#ifndef RESHARD_HIERARCHICAL_DIVISION_H
#define RESHARD_HIERARCHICAL_DIVISION_H

#include "reshard/plan_builder.h"

/* A host's part in a value that is divided among some of its devices. */
typedef struct Division {
    int host;
    Devices devices;
    int64_t *shares; // elements, by device
    int at;          // the device that has the slice at hand
    int64_t left;    // elements of its share behind that slice
} Division;

typedef Array(Division) Divisions;

/* Cuts [lo, hi) at all borders of the divisions: after begin_slices, each call gives the end of the
 * slice that begins at `lo`. */
void begin_slices(Divisions *divisions);
int64_t next_slice(Divisions *divisions, int64_t lo, int64_t hi);

/* The device that has the slice at hand. */
int slice_device(const Division *division);

#endif
