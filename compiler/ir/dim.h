/* What dimensions are called. */
#ifndef IR_DIM_H
#define IR_DIM_H

#include <stdbool.h>
#include <string.h>

/* Where a dimension of one name is a product, its first factor has part 0 of the name and those
 * that follow have 1, 2, ...; in the text `heads` and `heads:1`. */
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

/* Whether both are one name; what has none is equal to nothing. */
static inline bool dim_equal(DimName a, DimName b) {
    return a.name && b.name && a.part == b.part && !strcmp(a.name, b.name);
}

/* The one name of dimension d of what has factored `dims`, which may be NULL. */
static inline DimName dim_name(const Dim *dims, int d) {
    return dims && dims[d].count ? dims[d].names[0] : (DimName){0};
}

#endif
