/* What a model lets a strategy say. */
#ifndef PLANNER_SEARCH_MODEL_LIMITS_H
#define PLANNER_SEARCH_MODEL_LIMITS_H

#include "ir/unit.h"

typedef struct SearchDim {
    const char *name;
    bool of_parameters; // some parameter has it
} SearchDim;

typedef struct SearchModel {
    // of the program that the plan is for: the first that trains, else the first
    const Module *module;
    bool trains;
    int layer_count;
    const Layer *const *layers; // in the order in which the model runs them
    int64_t batch;              // rows; 0: there is no input whose rows could be shared
    bool batches_differ;        // some other program trains on a batch of another number of rows
    int64_t unit;               // rows that stay together
    const char *batch_dim;      // the name of the batch's dimension; NULL: none
    int dim_count;
    const SearchDim *dims; // the other names, those of parameters first
    int64_t parameter_bytes;
    int op_count; // of all modules
} SearchModel;

/* Returns the model that a plan is for, and its batch: of a unit as the frontend makes it. */
SearchModel model_begin(const Unit *unit);

/* The rest, once the unit has come through pass factor_dims. */
void model_survey(Arena *arena, SearchModel *model);

/* Returns the layers [first, end) as a strategy lists them: "0-3, head". */
const char *model_layers(Arena *arena, const SearchModel *model, int first, int end);

/* Returns the place of an operator among the layers: 0 before them, l + 1 in layer l,
 * layer_count + 1 behind them. */
int model_slot(const SearchModel *model, const Op *op);

#endif
