/* Placement: which visit (model chunk) of which stage runs each layer of a model, and in which
 * order data passes the visits.
 *
 *     stage devices(0) layers(0-1, 4-5)      visits of stage 0: layers 0-1, layers 4-5
 *     stage devices(1) layers(2-3, 6-7)      visits of stage 1: layers 2-3, layers 6-7
 */
#ifndef STRATEGY_PLACE_H
#define STRATEGY_PLACE_H

#include "strategy/strategy.h"

/* A visit (model chunk): layers that a micro-batch passes on a stage before it goes on to another
 * stage. */
typedef struct Visit {
    int stage;
    int item;    // index of its first item in the stage's list of layers; 0 without a list
    Position at; // position of that item, or of the stage
} Visit;

/* The assignment of a model's layers to the visits of a pipeline. */
typedef struct Placement {
    int visit_count;
    // in the model's order of their first layers, or, after strategy_sort, in data order
    const Visit *visits;
    int layer_count;
    const Layer *const *layers;
    int *visit_of; // by layer: its visit
} Placement;

/* Places the layers of a model, each once and in the order in which the model runs them, in a
 * pipeline of a strategy. A stage without a list has them all, in one visit. Otherwise
 * each range of its list is a visit; a name belongs to the visit of the layer that the model runs
 * before it, or else after it, on the same stage, and names that have no such layer beside them are
 * a visit of their own. What the list has and the model does not (strategy_check_layers) is in no
 * visit. A model without layers has a visit of the first stage. NULL after an error: layers that no
 * stage has. */
Placement *strategy_place(Arena *arena, Diag *diag, const Pipeline *pipeline,
                          const Layer *const *layers, int count);

/* Reports layers and towers that the strategy lists and no model of the program has. Returns
 * whether there are none. */
bool strategy_check_layers(Diag *diag, const Strategy *strategy, const Layer *const *layers,
                           int count);

/* Reports what contradicts the order of data, which goes from visit edge[i][0] to visit edge[i][1]:
 * visits that wait for each other, and ranges or stages that are listed behind others that need
 * their data. Returns whether there is nothing. */
bool strategy_check_order(Diag *diag, const Pipeline *pipeline, const Placement *placement,
                          const int (*edge)[2], int edge_count);

/* Sorts visits by data order (edges as above); visits that do not need each other keep the
 * strategy's order. Visits in a cycle, which strategy_check_order reports, come last. */
void strategy_sort(Arena *arena, Placement *placement, const int (*edge)[2], int edge_count);

/* Merges visits of one stage when one sends data to the other and none of it passes another stage;
 * then sorts as strategy_sort does. The placement must have passed strategy_check_order. Returns,
 * by old visit number, the new number. */
const int *strategy_join(Arena *arena, Placement *placement, const int (*edge)[2], int edge_count);

/* Reports rows(...) that do not add up to the batch, at the strategy's first pipeline. Returns
 * whether they do. */
bool strategy_check_rows(Diag *diag, const Strategy *strategy, int64_t batch);

#endif
