/* What schedules ask of a graph of visits: who is next to whom, and how far the ends are. */
#ifndef SCHEDULE_GRAPH_H
#define SCHEDULE_GRAPH_H

#include "schedule/schedule.h"

/* The edges of each visit v: list[first[v]] to list[first[v + 1] - 1]. */
typedef struct GraphSide {
    int *first, *list;
} GraphSide;

typedef struct GraphLinks {
    GraphSide in, out;
    int *order;  // visits, each behind those that it needs
    int *before; // by visit: the most edges on a way that ends there
    int *after;  // by visit: the most edges on a way that begins there
} GraphLinks;

GraphLinks graph_links(Arena *arena, const StageGraph *graph);

#endif
