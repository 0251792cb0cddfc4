/* The upper level of Malleus: which devices form groups, and which groups a pipeline has, found by
 * simulated annealing. */
#ifndef PLANNER_KINDS_MALLEUS_SEARCH_H
#define PLANNER_KINDS_MALLEUS_SEARCH_H

#include "planner/kinds/budget.h"
#include "planner/kinds/malleus/problem.h"

/* A group of tp >> size devices: number `first` and the next ones of a node, by rate. */
typedef struct Group {
    int node, first, size;
    int owner; // a pipeline, or the number of pipelines: idle
} Group;

/* Every device is in one group; groups stand by node, and in it by `first`. */
typedef struct Grouping {
    int count;
    Group *groups;
} Grouping;

/* Groups of the least step time found; *time is INFINITY when no pipelines were found that hold all
 * layers. */
Grouping malleus_search(Arena *arena, const Malleus *malleus, const Budget *budget, double *time);

/* The groups of a pipeline as stages, into `stages` (up to MOST_STAGES); how many there are. */
int grouping_stages(const Malleus *malleus, const Grouping *grouping, int owner,
                    MalleusStage *stages);

#endif
