#include "schedule/graph.h"

/* The edges of each visit at one end of them. */
static GraphSide side_of(Arena *arena, const StageGraph *graph, int end) {
    GraphSide side = {arena_array(arena, int, graph->visit_count + 2),
                      arena_array(arena, int, graph->edge_count + 1)};
    for (int e = 0; e < graph->edge_count; e++) side.first[graph->edge[e][end] + 2]++;
    for (int v = 0; v < graph->visit_count; v++) side.first[v + 2] += side.first[v + 1];
    for (int e = 0; e < graph->edge_count; e++)
        side.list[side.first[graph->edge[e][end] + 1]++] = e;
    return side;
}

/* Puts visits into order by how many that they need are not there yet; a graph that goes round is a
 * bug. */
static void sort_visits(Arena *arena, const StageGraph *graph, GraphLinks *links) {
    int *missing = arena_array(arena, int, graph->visit_count + 1), sorted = 0;
    for (int v = 0; v < graph->visit_count; v++)
        if (!(missing[v] = links->in.first[v + 1] - links->in.first[v])) links->order[sorted++] = v;
    for (int i = 0; i < sorted; i++) {
        int v = links->order[i];
        for (int k = links->out.first[v]; k < links->out.first[v + 1]; k++) {
            int next = graph->edge[links->out.list[k]][1];
            links->before[next] = links->before[v] + 1 > links->before[next] ? links->before[v] + 1
                                                                             : links->before[next];
            if (!--missing[next]) links->order[sorted++] = next;
        }
    }
    if (sorted != graph->visit_count) BUG("a graph of %d visits goes round", graph->visit_count);
}

GraphLinks graph_links(Arena *arena, const StageGraph *graph) {
    int count = graph->visit_count + 1;
    GraphLinks links = {side_of(arena, graph, 1), side_of(arena, graph, 0),
                        arena_array(arena, int, count), arena_array(arena, int, count),
                        arena_array(arena, int, count)};
    sort_visits(arena, graph, &links);
    for (int i = graph->visit_count - 1; i >= 0; i--) {
        int v = links.order[i];
        for (int k = links.out.first[v]; k < links.out.first[v + 1]; k++) {
            int far = links.after[graph->edge[links.out.list[k]][1]] + 1;
            links.after[v] = far > links.after[v] ? far : links.after[v];
        }
    }
    return links;
}
