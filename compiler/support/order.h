/* Comparators for qsort and bsearch: negative, zero or positive as *a is below, at or above *b. */
#ifndef SUPPORT_ORDER_H
#define SUPPORT_ORDER_H

static inline int compare_ints(const void *a, const void *b) {
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

#endif
