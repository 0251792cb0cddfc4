/* Names of dimensions, from the source's `dims`. */
#ifndef IR_DIM_H
#define IR_DIM_H

#include <stdbool.h>
#include <string.h>

/* The name of a dimension. If a named dimension is split into factors, the first has part 0 of the
 * name, the next ones 1, 2, ...; in IR text `heads` and `heads:1`. */
typedef struct DimName {
    const char *name; // NULL: none
    int part;
} DimName;

/* The names of one dimension: none, one, or before pass factor_dims those of the factors that a
 * reshape splits it into. */
typedef struct Dim {
    int count;
    const DimName *names;
} Dim;

/* Returns whether two names are equal; no name equals nothing. */
static inline bool dim_equal(DimName a, DimName b) {
    return a.name && b.name && a.part == b.part && !strcmp(a.name, b.name);
}

/* Returns the name of dimension d after pass factor_dims. `dims` may be NULL: no names. */
static inline DimName dim_name(const Dim *dims, int d) {
    return dims && dims[d].count ? dims[d].names[0] : (DimName){0};
}

#endif
