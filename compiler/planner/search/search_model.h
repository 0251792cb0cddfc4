/* The model as the search sees it: the layers, rows and dimensions that a strategy may divide. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Arena Arena;
typedef struct Layer Layer;
typedef struct Module Module;
typedef struct Op Op;
typedef struct Unit Unit;

typedef struct SearchDim {
    const char *name;
    bool of_parameters; // some parameter has this dimension
} SearchDim;

typedef struct SearchModel {
    // the program that the search plans for: the first that trains, else the first
    const Module *module;
    bool trains;
    int layer_count;
    const Layer *const *layers; // in the model's order
    int64_t batch;              // rows; 0: no input has rows that could be divided
    bool batches_differ;        // another program trains on a batch of another size
    int64_t unit;               // rows are divided in multiples of this number
    const char *batch_dim;      // name of the batch's dimension; NULL: it has no name
    int dim_count;
    const SearchDim *dims; // all other named dimensions, first the dimensions of parameters
    int64_t parameter_bytes;
    int op_count; // number of operators of all modules
} SearchModel;

/* Returns a model with the module and its batch alone, from a unit as the frontend makes it. */
SearchModel model_begin(const Unit *unit);

/* Sets the layers, unit, batch_dim, dims and parameter_bytes of a model after pass factor_dims. */
void model_survey(Arena *arena, SearchModel *model);

/* Sets the layers of the model from its module alone, before or after any pass. */
void model_find_layers(Arena *arena, SearchModel *model);

/* Returns the layers [first, end) as a strategy lists them: "0-3, head". */
const char *model_layers(Arena *arena, const SearchModel *model, int first, int end);

/* Returns an operator's slot: 0 before all layers, l + 1 in layer l, layer_count + 1 after them. */
int model_slot(const SearchModel *model, const Op *op);
