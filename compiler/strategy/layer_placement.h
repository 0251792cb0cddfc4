/* Placement: finds which visit (model chunk) runs each layer, and in which order data passes them.
 *
 *     stage devices(0) layers(0-1, 4-5)      visits of stage 0: layers 0-1, layers 4-5
 *     stage devices(1) layers(2-3, 6-7)      visits of stage 1: layers 2-3, layers 6-7
 */
#pragma once

#include "strategy/strategy.h"

/* A visit (model chunk): layers that a micro-batch passes on a stage before another stage. */
typedef struct Visit {
    int stage;
    int item;    // index of the visit's item in the stage's layers(...); 0 without such a list
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

/* Returns the placement of a model's layers in a pipeline; `layers` has each layer once, in the
 * order in which the model runs them. An only stage without a list of layers runs all layers, in
 * one visit. Otherwise each range of a list is a visit. A named layer joins the visit of the
 * numbered layer that runs before it on the same stage, or else after it; named layers with no such
 * neighbour are a visit of their own. A model without layers has one visit, of the first stage.
 * Returns NULL after an error: some layers are in no stage. */
Placement *strategy_place(Arena *arena, Diag *diag, const Pipeline *pipeline,
                          const Layer *const *layers, int count);

/* Reports layers and towers that the strategy lists although no model of the program has them.
 * Returns false if it reported any. */
bool strategy_check_layers(Diag *diag, const Strategy *strategy, const Layer *const *layers,
                           int count);

/* Checks the strategy's order against the data, which goes from visit edge[i][0] to edge[i][1].
 * Reports two visits that need each other's data, and a range or stage that is listed after another
 * that needs its data. Returns false if it reported any. */
bool strategy_check_order(Diag *diag, const Pipeline *pipeline, const Placement *placement,
                          const int (*edge)[2], int edge_count);

/* Sorts visits by data order (edges as above); visits that do not need each other keep the
 * strategy's order. Visits in a cycle, which strategy_check_order reports, come last. */
void strategy_sort(Arena *arena, Placement *placement, const int (*edge)[2], int edge_count);

/* Merges two visits of a stage if one sends data to the other, and none by way of a third visit.
 * Then sorts like strategy_sort. The placement must have passed strategy_check_order. Returns an
 * array of new visit numbers by old number. */
const int *strategy_join(Arena *arena, Placement *placement, const int (*edge)[2], int edge_count);

/* Reports rows(...) that do not add up to the batch, at the strategy's first pipeline. Returns true
 * if they add up, or if a pipeline has no rows(...). */
bool strategy_check_rows(Diag *diag, const Strategy *strategy, int64_t batch);
