/* Growing arrays in an arena.
 *
 *     Array(int) devices = {0};
 *     array_push(arena, &devices, 3);
 *     for (int i = 0; i < devices.count; i++) use(devices.at[i]);
 *
 * Growing doubles the capacity. Old storage stays in the arena; in all it is less than the new. */
#pragma once

#include "support/arena.h"

#define Array(T)                                                                                   \
    struct {                                                                                       \
        T *at;                                                                                     \
        int count, capacity;                                                                       \
    }

#define array_push(arena, array, ...)                                                              \
    ((array)->count == (array)->capacity                                                           \
         ? (void)((array)->at = array_grown((arena), (array)->at, (array)->count,                  \
                                            &(array)->capacity, sizeof *(array)->at))              \
         : (void)0,                                                                                \
     (void)((array)->at[(array)->count++] = (__VA_ARGS__)))

/* Comparators for qsort and bsearch: negative, zero or positive as *a is less, equal or greater. */
static inline int compare_ints(const void *a, const void *b) {
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}
static inline int compare_int64s(const void *a, const void *b) {
    return (*(const int64_t *)a > *(const int64_t *)b) -
           (*(const int64_t *)a < *(const int64_t *)b);
}
static inline int compare_doubles(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Returns storage for twice `count` elements of `size` bytes, at least one, with the old elements
 * copied; sets *capacity. For array_push only. */
void *array_grown(Arena *arena, const void *old, int count, int *capacity, size_t size);
