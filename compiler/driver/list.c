/* Lists what a strategy may divide and which strategies there are (--strategies).
 *
 *     model loss, which ht_train runs          small.c:15
 *       dimensions
 *         rows        4
 *         width       6
 *       inputs        1 of 24 elements
 *       parameters    1 of 18 elements
 *       layers        none
 *
 *     strategies      devices  pipelines  stages  mesh       place
 *       dp2                 2          1       1  dp:2       small.c:10 */
#include "driver/compile.h"

#include "driver/object_sections.h"
#include "planner/search/search_model.h"

#include <errno.h>
#include <string.h>

enum { MOST_WIDTH = 40 };

/* ---- dimensions ---- */

/* A name of dimensions, and the different extents that tensors have under it. */
typedef struct NamedDim {
    const char *name;
    Array(int64_t) extents;
} NamedDim;
typedef Array(NamedDim) NamedDims;

static NamedDim *find_dim(Arena *arena, NamedDims *dims, const char *name) {
    for (int i = 0; i < dims->count; i++)
        if (!strcmp(dims->at[i].name, name)) return &dims->at[i];
    array_push(arena, dims, (NamedDim){.name = name});
    return &dims->at[dims->count - 1];
}

static void add_extent(Arena *arena, NamedDim *dim, int64_t extent) {
    for (int i = 0; i < dim->extents.count; i++)
        if (dim->extents.at[i] == extent) return;
    array_push(arena, &dim->extents, extent);
}

/* Adds a value's dimensions to `dims`. A dimension with one name gives its extent to the name.
 * Names that share a dimension are factors, whose extents are unknown before pass factor_dims. */
static void add_value(Arena *arena, NamedDims *dims, const Value *value) {
    for (int d = 0; value->dims && d < value->type.rank; d++)
        for (int k = 0; k < value->dims[d].count; k++) {
            const char *name = value->dims[d].names[k].name;
            NamedDim *dim = name ? find_dim(arena, dims, name) : NULL;
            if (dim && value->dims[d].count == 1) add_extent(arena, dim, value->type.extent[d]);
        }
}

/* After pass factor_dims, adds each name's extent: the product over its dimensions in the value. */
static void add_factors(Arena *arena, NamedDims *dims, const Value *value) {
    for (int i = 0; i < dims->count; i++) {
        int64_t extent = 1;
        bool found = false;
        for (int d = 0; value->dims && d < value->type.rank; d++) {
            DimName own = dim_name(value->dims, d);
            bool same = own.name && !strcmp(own.name, dims->at[i].name);
            extent *= same ? value->type.extent[d] : 1;
            found |= same && !own.part;
        }
        if (found) add_extent(arena, &dims->at[i], extent);
    }
}

static void for_values(Arena *arena, const Module *module, NamedDims *dims,
                       void (*add)(Arena *arena, NamedDims *dims, const Value *value)) {
    for (int i = 0; i < module->inputs.count; i++) add(arena, dims, module->inputs.at[i]);
    for (int i = 0; i < module->params.count; i++) add(arena, dims, module->params.at[i]->value);
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++)
            add(arena, dims, module->ops.at[i]->results[r]);
}

/* ---- models ---- */

/* The facts of a module that are listed; the passes change the module later. */
typedef struct ListedModel {
    const Module *module;
    NamedDims dims;
    int inputs, params, states;
    int64_t input_elements, param_elements, state_elements;
    const char *layers;
} ListedModel;
typedef Array(ListedModel) ListedModels;

static ListedModel list_module(Arena *arena, const Module *module) {
    ListedModel listed = {.module = module};
    SearchModel layers = {.module = module};
    for_values(arena, module, &listed.dims, add_value);
    for (int i = 0; i < module->inputs.count; i++, listed.inputs++)
        listed.input_elements += type_elements(module->inputs.at[i]->type);
    for (int i = 0; i < module->params.count; i++) {
        bool state = module->params.at[i]->state;
        int64_t elements = type_elements(module->params.at[i]->value->type);
        listed.states += state;
        listed.params += !state;
        *(state ? &listed.state_elements : &listed.param_elements) += elements;
    }
    model_find_layers(arena, &layers);
    listed.layers =
        layers.layer_count ? model_layers(arena, &layers, 0, layers.layer_count) : "none";
    return listed;
}

/* Finds the extents that add_value leaves open, by running the passes up to factor_dims. */
static void complete(const Driver *driver, Unit *unit, ListedModels *models) {
    PassOptions passes = {
        .compile = compile_options(driver->options), .stop_after = "factor_dims", .out = stdout};
    bool complete = true;
    for (int m = 0; m < models->count; m++)
        for (int i = 0; i < models->at[m].dims.count; i++)
            complete &= models->at[m].dims.at[i].extents.count > 0;
    if (complete || !passes_run(unit, &passes)) return;
    for (int m = 0; m < models->count; m++) {
        NamedDims factored = {0}, *dims = &models->at[m].dims;
        for (int i = 0; i < dims->count; i++) find_dim(unit->arena, &factored, dims->at[i].name);
        for_values(unit->arena, models->at[m].module, &factored, add_factors);
        for (int i = 0; i < dims->count; i++)
            if (!dims->at[i].extents.count) dims->at[i] = factored.at[i];
    }
}

static const char *place_of(Arena *arena, Position at) {
    return arena_format(arena, "%s:%d", at.file, at.line);
}

static void print_count(Text *out, const char *what, int count, int64_t elements) {
    text_print(out, "  %-14s  %d of %lld elements\n", what, count, (long long)elements);
}

/* Returns the width of a column with this text added. A text above MOST_WIDTH does not count. */
static int wider(int width, const char *text) {
    int length = (int)strlen(text);
    return length > MOST_WIDTH ? width : length > width ? length : width;
}

static void print_model(Text *out, const ListedModel *model) {
    const Module *module = model->module;
    text_print(out, "model %s, which %s runs, %s\n", module->name,
               module->kind == MODULE_TRAIN ? "ht_train" : "ht_infer",
               place_of(out->arena, module->source->at));
    int width = 12;
    for (int i = 0; i < model->dims.count; i++) width = wider(width, model->dims.at[i].name);
    text_print(out, "  dimensions%s\n", model->dims.count ? "" : "      none");
    for (int i = 0; i < model->dims.count; i++) {
        const NamedDim *dim = &model->dims.at[i];
        text_print(out, "    %-*s  %s", width, dim->name, dim->extents.count ? "" : "-");
        for (int e = 0; e < dim->extents.count; e++) text_item(out, !e, dim->extents.at[e]);
        text_string(out, "\n");
    }
    print_count(out, "inputs", model->inputs, model->input_elements);
    print_count(out, "parameters", model->params, model->param_elements);
    if (model->states) print_count(out, "states", model->states, model->state_elements);
    text_print(out, "  %-14s  %s\n\n", "layers", model->layers);
}

/* ---- strategies ---- */

/* Returns the number of stages of each pipeline, "2, 1", or one number if all are equal: "2". */
static const char *stages_of(Arena *arena, const Strategy *strategy) {
    Text text = {.arena = arena};
    bool alike = true;
    for (int p = 1; p < strategy->pipelines.count; p++)
        alike &= strategy->pipelines.at[p].stages.count == strategy->pipelines.at[0].stages.count;
    for (int p = 0; p < (alike ? 1 : strategy->pipelines.count); p++)
        text_item(&text, !p, strategy->pipelines.at[p].stages.count);
    return text_bytes(&text);
}

/* Returns a mesh's axes with the weights of unequal pieces, "dp:2 by 3:1 tp:2"; "1": no mesh. */
static const char *mesh_of(Arena *arena, const Stage *stage) {
    Text text = {.arena = arena};
    for (int a = 0; a < stage->mesh.count; a++) {
        const MeshAxis *axis = &stage->mesh.at[a];
        text_print(&text, "%s%s:%d", a ? " " : "", axis->name, axis->count);
        for (int w = 0; axis->weights && w < axis->count; w++)
            text_print(&text, "%s%lld", w ? ":" : " by ", (long long)axis->weights[w]);
    }
    return stage->mesh.count ? text_bytes(&text) : "1";
}

/* Returns the rows of a micro-batch of each pipeline: "6, 2"; "": no clause `rows` gives them. */
static const char *rows_of(Arena *arena, const Strategy *strategy) {
    Text text = {.arena = arena};
    bool given = false;
    for (int p = 0; p < strategy->pipelines.count; p++) {
        const Pipeline *pipeline = &strategy->pipelines.at[p];
        given |= pipeline->rows > 0;
        text_item(&text, !p, pipeline->rows);
    }
    return given ? text_bytes(&text) : "";
}

/* Returns the different meshes of a strategy's stages: "dp:2 tp:2; tp:3". */
static const char *meshes_of(Arena *arena, const Strategy *strategy) {
    Array(const char *) known = {0};
    Text text = {.arena = arena};
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++) {
            const char *mesh = mesh_of(arena, &strategy->pipelines.at[p].stages.at[s]);
            bool new = true;
            for (int i = 0; i < known.count; i++) new &= strcmp(known.at[i], mesh) != 0;
            if (!new) continue;
            text_print(&text, "%s%s", known.count ? "; " : "", mesh);
            array_push(arena, &known, mesh);
        }
    return text_bytes(&text);
}

/* Returns how many devices a strategy has, idle ones included. Classes may name the devices. */
static int devices_of(const Strategy *strategy) {
    int count = strategy->idle.count;
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++)
            count += strategy->pipelines.at[p].stages.at[s].devices.count;
    return count;
}

static void print_strategies(Text *out, const Unit *unit) {
    int name = 14, mesh = 4, stages = 6, rows = 0;
    if (!unit->strategies.count) {
        text_print(out, "strategies        none\n");
        return;
    }
    for (int i = 0; i < unit->strategies.count; i++) {
        name = wider(name, unit->strategies.at[i]->name);
        mesh = wider(mesh, meshes_of(out->arena, unit->strategies.at[i]));
        stages = wider(stages, stages_of(out->arena, unit->strategies.at[i]));
        rows = wider(rows, rows_of(out->arena, unit->strategies.at[i]));
    }
    rows = rows ? wider(rows + 2, "  rows") : 0; // with the blanks before the column
    text_print(out, "%-*s  devices  pipelines  %*s  %-*s%*s  place\n", name + 2, "strategies",
               stages, "stages", mesh, "mesh", rows, rows ? "rows" : "");
    for (int i = 0; i < unit->strategies.count; i++) {
        const Strategy *strategy = unit->strategies.at[i];
        text_print(out, "  %-*s  %7d  %9d  %*s  %-*s%*s  %s\n", name, strategy->name,
                   devices_of(strategy), strategy->pipelines.count, stages,
                   stages_of(out->arena, strategy), mesh, meshes_of(out->arena, strategy), rows,
                   rows_of(out->arena, strategy), place_of(out->arena, strategy->at));
    }
}

/* ---- sources ---- */

static bool is_listed(const ListedModels *models, const Module *module) {
    for (int i = 0; i < models->count; i++)
        if (models->at[i].module->kind == module->kind &&
            !strcmp(models->at[i].module->name, module->name))
            return true;
    return false;
}

/* Appends the list of a source that has models or strategies to `out`. False after errors. */
static bool list_source(Driver *driver, const char *source, Text *out) {
    FrontendOptions options = frontend_options(driver, source, NULL);
    ListedModels models = {0};
    Frontend *frontend = sections_give(driver, &options)
                             ? frontend_open(driver->arena, driver->diag, &options)
                             : NULL;
    Unit *unit = frontend ? frontend_survey(frontend) : NULL;
    for (int m = 0; unit && m < unit->modules.count; m++)
        if (!is_listed(&models, unit->modules.at[m]))
            array_push(driver->arena, &models, list_module(driver->arena, unit->modules.at[m]));
    if (models.count) complete(driver, unit, &models);
    for (int m = 0; m < models.count; m++) print_model(out, &models.at[m]);
    if (models.count || (unit && unit->strategies.count)) print_strategies(out, unit);
    if (frontend) frontend_close(frontend);
    return unit;
}

/* Appends the lists of the sources that objects and archives keep to `out`. False after errors. */
static bool list_objects(Driver *driver, Text *out) {
    const PortionList *parts = driver_sections(driver);
    bool good = parts;
    for (int i = 0; good && i < parts->count; i++) {
        Driver *own = parts->at[i]->object ? section_driver(driver, parts->at[i]) : driver;
        if (parts->at[i]->object) good = own && list_source(own, parts->at[i]->front.file, out);
    }
    return good;
}

int list_make(Driver *driver) {
    const Options *options = driver->options;
    Text out = {.arena = driver->arena};
    bool good = true;
    options_refuse(options, "--strategies prints a list and writes no file",
                   "-o --plan --memory -c --emit --report --known --resume --print-after "
                   "--stop-after");
    for (int i = 0; i < options->cc.items.count && good; i++) {
        const Item *item = &options->cc.items.at[i];
        if (item->kind == ITEM_SOURCE && source_is_ours(driver, item->text))
            good = list_source(driver, item->text, &out);
    }
    good = good && list_objects(driver, &out) && !diag_errors(driver->diag);
    if (good && !out.length) complain("nothing that --strategies is given trains or runs a model");
    if (!good || !out.length) return 1;
    if (fputs(text_bytes(&out), stdout) >= 0 && !fflush(stdout)) return 0;
    complain("cannot write to standard output: %s", strerror(errno));
    return 1;
}
