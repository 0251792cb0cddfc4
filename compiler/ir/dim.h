/* Names of dimensions, from the pragma `dims` of the source. */
#pragma once

#include <stdbool.h>
#include <string.h>

/* The name of a dimension. If pass factor_dims splits a named dimension, its factors are parts 0,
 * 1, ... of the name: `heads` and `heads:1` in IR text. */
typedef struct DimName {
    const char *name; // NULL: none
    int part;
} DimName;

/* A dimension's names: none, one, or, before pass factor_dims, one for each factor in a reshape. */
typedef struct Dim {
    int count;
    const DimName *names;
} Dim;

/* Returns whether two names are equal; a missing name equals no name, not even a missing one. */
static inline bool dim_equal(DimName a, DimName b) {
    return a.name && b.name && a.part == b.part && !strcmp(a.name, b.name);
}

/* Returns the name of dimension d after pass factor_dims. Its `name` is NULL if there is none. */
static inline DimName dim_name(const Dim *dims, int d) {
    return dims && dims[d].count ? dims[d].names[0] : (DimName){0};
}
