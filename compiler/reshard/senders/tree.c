#include "reshard/senders/tree.h"

#include <stdlib.h>

typedef struct Node {
    int degree, node;
} Node;

static int compare_nodes(const void *a, const void *b) {
    const Node *x = a, *y = b;
    return x->degree != y->degree ? y->degree - x->degree : x->node - y->node;
}

void tree_arrange(PlanBuilder *planner, int tops, int count, const int *degree, int *parent,
                  int *depth) {
    Node *order = arena_array(planner->arena, Node, count);
    for (int i = 0; i < count; i++) order[i] = (Node){degree[i], i};
    qsort(order + tops, (size_t)(count - tops), sizeof *order, compare_nodes);
    for (int i = 0; i < tops; i++) {
        parent[i] = -1;
        depth[i] = 0;
    }
    for (int i = 0, next = tops; i < count; i++)
        for (int k = 0; k < order[i].degree; k++, next++) {
            parent[order[next].node] = order[i].node;
            depth[order[next].node] = depth[order[i].node] + 1;
        }
}
