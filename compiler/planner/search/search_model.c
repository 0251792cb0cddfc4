/* Finds what of a model can be divided: layers, rows of the batch, named dimensions. */
#include "planner/search/search_model.h"

#include "ir/unit.h"
#include "support/text.h"

#include <string.h>

static int find_layer(const SearchModel *model, const Layer *layer) {
    for (int l = model->layer_count - 1; l >= 0; l--)
        if (layer_same(model->layers[l], layer)) return l;
    return -1;
}

typedef Array(const Layer *) LayerList;

static bool has_layer(const LayerList *list, const Layer *layer) {
    for (int i = list->count - 1; i >= 0; i--)
        if (layer_same(list->at[i], layer)) return true;
    return false;
}

void model_find_layers(Arena *arena, SearchModel *model) {
    LayerList list = {0};
    for (int i = 0; i < model->module->ops.count; i++) {
        const Op *op = model->module->ops.at[i];
        if (op->section == SECTION_FORWARD && op->source->layer &&
            !has_layer(&list, op->source->layer))
            array_push(arena, &list, op->source->layer);
    }
    model->layer_count = list.count;
    model->layers = list.at;
}

const char *model_layers(Arena *arena, const SearchModel *model, int first, int end) {
    Text text = {.arena = arena};
    for (int l = first, next; l < end; l = next) {
        const Layer *layer = model->layers[l];
        for (next = l + 1;
             next < end && layer_follows(model->layers[next - 1], model->layers[next]);)
            next++;
        text_string(&text, l == first ? "" : ", ");
        if (layer->tower) text_print(&text, "%s: ", layer->tower);
        if (layer->name) text_string(&text, layer->name);
        else if (next - l > 1)
            text_print(&text, "%d-%d", layer->number, model->layers[next - 1]->number);
        else text_print(&text, "%d", layer->number);
    }
    return text_bytes(&text);
}

/* Returns the number in the model (source->op) of the first operator in a layer; -1: none. */
static int first_layered(const SearchModel *model) {
    for (int i = 0; i < model->module->ops.count; i++)
        if (model->module->ops.at[i]->source->layer) return model->module->ops.at[i]->source->op;
    return -1;
}

int model_slot(const SearchModel *model, const Op *op) {
    if (op->source->layer) {
        int layer = find_layer(model, op->source->layer);
        return layer < 0 ? 0 : layer + 1;
    }
    int first = first_layered(model);
    return op->source->op >= 0 && op->source->op < first ? 0 : model->layer_count + 1;
}

typedef Array(SearchDim) DimList;

static void note_names(Arena *arena, DimList *list, const SearchModel *model, const Value *value,
                       bool parameter) {
    for (int d = 0; value->dims && d < value->type.rank; d++)
        for (int k = 0; k < value->dims[d].count; k++) {
            const char *name = value->dims[d].names[k].name;
            bool known = !name || (model->batch_dim && !strcmp(name, model->batch_dim)) ||
                         value->type.extent[d] < 2;
            for (int i = 0; i < list->count && !known; i++) known = !strcmp(list->at[i].name, name);
            if (!known) array_push(arena, list, (SearchDim){name, parameter});
        }
}

static void find_dims(Arena *arena, SearchModel *model) {
    DimList list = {0};
    const Module *module = model->module;
    for (int i = 0; i < module->params.count; i++)
        note_names(arena, &list, model, module->params.at[i]->value, true);
    for (int i = 0; i < module->inputs.count; i++)
        note_names(arena, &list, model, module->inputs.at[i], false);
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++)
            note_names(arena, &list, model, module->ops.at[i]->results[r], false);
    model->dim_count = list.count;
    model->dims = list.at;
}

/* Returns the name of dimension 0, the batch, of the first input that names it; NULL: none. */
static const char *batch_name(const Module *module) {
    for (int i = 0; i < module->inputs.count; i++) {
        const Value *input = module->inputs.at[i];
        if (input->type.rank && dim_name(input->dims, 0).name) return dim_name(input->dims, 0).name;
    }
    return NULL;
}

static int64_t parameter_bytes(const Module *module) {
    int64_t bytes = 0;
    for (int i = 0; i < module->params.count; i++)
        bytes += type_elements(module->params.at[i]->value->type) *
                 dtype_size(module->params.at[i]->value->type.dtype);
    return bytes;
}

/* Returns the rows of a program's batch, which are those of its first input with rows; 0: none. */
static int64_t batch_rows(const Module *module) {
    for (int i = 0; i < module->inputs.count; i++)
        if (module->inputs.at[i]->type.rank && module->inputs.at[i]->type.extent[0])
            return module->inputs.at[i]->type.extent[0];
    return 0;
}

SearchModel model_begin(const Unit *unit) {
    SearchModel model = {.module = unit->modules.at[0], .unit = 1};
    for (int m = unit->modules.count - 1; m >= 0; m--) {
        model.op_count += unit->modules.at[m]->ops.count;
        if (unit->modules.at[m]->kind == MODULE_TRAIN) model.module = unit->modules.at[m];
    }
    model.trains = model.module->kind == MODULE_TRAIN;
    model.batch = batch_rows(model.module);
    for (int m = 0; m < unit->modules.count; m++)
        model.batches_differ |= unit->modules.at[m]->kind == MODULE_TRAIN &&
                                batch_rows(unit->modules.at[m]) != model.batch;
    return model;
}

void model_survey(Arena *arena, SearchModel *model) {
    model->unit = model->module->templates->row_unit > 0 ? model->module->templates->row_unit : 1;
    model->batch_dim = model->batch > 1 ? batch_name(model->module) : NULL;
    model->parameter_bytes = parameter_bytes(model->module);
    model_find_layers(arena, model);
    find_dims(arena, model);
}
