/* Computes the work and the bytes of a model's layers from their operators. */
#include "planner/rebalance/layer_work.h"

#include "ir/programs/device_programs.h"
#include "cost/cost.h"

#include <math.h>
#include <string.h>

/* The state while the operators of a module are read. */
typedef struct Reader {
    Arena *arena;
    Module *module;
    ModelWork *work;
    Array(const Layer *) layers;
    int *layer_of; // by operator: the layer that its work is added to
} Reader;

/* ---- layers of operators ---- */

static int find_layer(const Reader *reader, const Layer *layer) {
    for (int l = 0; l < reader->layers.count; l++)
        if (layer_same(reader->layers.at[l], layer)) return l;
    return -1;
}

static void list_layers(Reader *reader) {
    for (int i = 0; i < reader->module->ops.count; i++) {
        const Op *op = reader->module->ops.at[i];
        if (op->section == SECTION_FORWARD && op->source->layer &&
            find_layer(reader, op->source->layer) < 0)
            array_push(reader->arena, &reader->layers, op->source->layer);
    }
    if (!reader->layers.count) array_push(reader->arena, &reader->layers, NULL);
}

/* Assigns each operator to a layer. An operator outside of layers belongs to the layer before it,
 * or to the first; an operator of a gradient belongs to the layer of its forward operator. */
static void place_ops(Reader *reader) {
    const Module *module = reader->module;
    int most = -1, last = 0;
    for (int i = 0; i < module->ops.count; i++)
        most = module->ops.at[i]->source->op > most ? module->ops.at[i]->source->op : most;
    int *of_unit = arena_array(reader->arena, int, most + 1);
    bool *known = arena_array(reader->arena, bool, most + 1);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        bool unit = op->source->op >= 0 && known[op->source->op];
        if (op->source->layer && find_layer(reader, op->source->layer) >= 0)
            last = find_layer(reader, op->source->layer);
        else if (unit) last = of_unit[op->source->op];
        reader->layer_of[i] = last;
        if (op->source->op >= 0 && !unit && op->section == SECTION_FORWARD) {
            known[op->source->op] = true;
            of_unit[op->source->op] = last;
        }
    }
}

/* ---- work of layers ---- */

static bool computes(Module *module, const Role *role, const Op *op) {
    return op->section != SECTION_UPDATE && !op->convert.plan && op->def->rule->kind != RULE_VIEW &&
           role_runs(module, role, op);
}

/* Sets by_layer to the seconds that all devices compute together as if all were of one class (NULL:
 * operations), and work->weights. Returns the sum over layers; NAN if the class lacks a rate. */
static double sum_work(const Reader *reader, const DeviceClass *class, double *by_layer) {
    double sum = 0, weights = 0;
    memset(by_layer, 0, sizeof *by_layer * (size_t)reader->layers.count);
    for (int r = 0; r < reader->module->devices->roles->role_count; r++) {
        const Role *role = &reader->module->devices->roles->at[r];
        for (int i = 0; i < reader->module->ops.count; i++) {
            const Op *op = reader->module->ops.at[i];
            if (!computes(reader->module, role, op)) continue;
            Work work = op_device_work(reader->module, op, role->devices[0]);
            double own =
                (class ? work_seconds(class, &work) : work.operations) * role->device_count;
            by_layer[reader->layer_of[i]] += own;
            weights += op->is_wgrad ? own : 0;
            sum += own;
        }
    }
    reader->work->weights = sum > 0 ? weights / sum : 0;
    return sum;
}

/* Sets the slowness of each device's class, and each layer's fraction of the work. Work is seconds
 * of the fastest class if the cluster has rates, else operations. */
static void weigh(Reader *reader) {
    ModelWork *work = reader->work;
    const Cluster *cluster = reader->module->devices->target.cluster;
    double *own = arena_array(reader->arena, double, work->count), fastest = INFINITY,
           sum = sum_work(reader, NULL, work->work);
    for (int d = 0; d < work->device_count; d++) {
        const DeviceClass *class = cluster_class(cluster, d),
                          *before = d ? cluster_class(cluster, d - 1) : NULL;
        work->slow[d] = !class                 ? NAN
                        : d && class == before ? work->slow[d - 1]
                                               : sum_work(reader, class, own);
        if (work->slow[d] < fastest) {
            fastest = sum = work->slow[d];
            memcpy(work->work, own, sizeof *own * (size_t)work->count);
        }
    }
    for (int d = 0; d < work->device_count; d++)
        work->slow[d] =
            isnan(work->slow[d]) || isinf(fastest) || !(fastest > 0) ? 1 : work->slow[d] / fastest;
    for (int l = 0; l < work->count; l++)
        work->work[l] = sum > 0 ? work->work[l] / sum : 1.0 / work->count;
}

/* ---- bytes of layers ---- */

/* Returns the layer of a value's first reader; looks through slices and conversions. */
static int layer_reading(const Reader *reader, const Value *value) {
    for (int i = 0; i < reader->module->ops.count; i++) {
        const Op *op = reader->module->ops.at[i];
        bool reads = false;
        for (int k = 0; k < op->operand_count; k++) reads |= op->operands[k] == value;
        if (reads && (op->convert.plan || op->def == reader->module->builtin->local_part))
            return layer_reading(reader, op->results[0]);
        if (reads) return reader->layer_of[i];
    }
    return 0;
}

static void weigh_parameters(const Reader *reader) {
    for (int p = 0; p < reader->module->params.count; p++) {
        const Parameter *parameter = reader->module->params.at[p];
        reader->work->bytes[layer_reading(reader, parameter->value)] +=
            4.0 * (double)type_elements(parameter->value->type) * (1 + parameter->state_count);
    }
}

/* ---- batch, dimensions and hosts ---- */

/* Sets the batch's rows and name, by the first input that has dimensions, and the row unit. */
static void find_batch(Reader *reader) {
    ModelWork *work = reader->work;
    work->unit = reader->module->templates->row_unit > 1 ? reader->module->templates->row_unit : 1;
    for (int i = 0; i < reader->module->inputs.count && !work->batch; i++) {
        const Value *input = reader->module->inputs.at[i];
        if (!input->type.rank) continue;
        work->batch = input->type.extent[0];
        work->batch_name = dim_name(input->dims, 0).name;
    }
}

static void note_dim(const Reader *reader, const char *name, int64_t extent) {
    ModelWork *work = reader->work;
    int d = 0;
    while (d < work->dim_count && strcmp(work->dims[d], name)) d++;
    if (d < work->dim_count) {
        work->extents[d] = extent < work->extents[d] ? extent : work->extents[d];
        return;
    }
    work->dims[work->dim_count] = name;
    work->extents[work->dim_count++] = extent;
}

static int count_dims(const Module *module) {
    int count = 1;
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++)
            count += module->ops.at[i]->results[r]->type.rank;
    for (int p = 0; p < module->params.count; p++) count += module->params.at[p]->value->type.rank;
    return count;
}

static void note_dims(const Reader *reader, const Value *value) {
    for (int d = 0; d < value->type.rank; d++)
        if (dim_name(value->dims, d).name)
            note_dim(reader, dim_name(value->dims, d).name, value->type.extent[d]);
}

/* Collects the named dimensions, each with its least extent. */
static void find_dims(Reader *reader) {
    int most = count_dims(reader->module);
    reader->work->dims = arena_array(reader->arena, const char *, most);
    reader->work->extents = arena_array(reader->arena, int64_t, most);
    for (int p = 0; p < reader->module->params.count; p++)
        note_dims(reader, reader->module->params.at[p]->value);
    for (int i = 0; i < reader->module->ops.count; i++)
        for (int r = 0; r < reader->module->ops.at[i]->result_count; r++)
            note_dims(reader, reader->module->ops.at[i]->results[r]);
}

/* Returns the number of hosts if all have the same number of consecutive devices; else 1. */
static int count_hosts(const Cluster *cluster, int devices) {
    int count = 1;
    for (int d = 1; d < devices; d++)
        count += cluster_host(cluster, d) != cluster_host(cluster, d - 1);
    for (int d = 1; d < devices; d++)
        if (devices % count || (cluster_host(cluster, d) != cluster_host(cluster, d - 1)) !=
                                   (d % (devices / count) == 0))
            return 1;
    return count;
}

static double least_bandwidth(const Cluster *cluster) {
    const double usual = 1e9;
    if (!cluster) return usual;
    double least = cluster->local.bandwidth;
    if (cluster->host_count > 1) least = fmin(least, cluster->remote.bandwidth);
    for (int d = 0; d < uplink_directions(cluster); d++)
        least = fmin(least, uplink_rate(cluster, d));
    return least;
}

ModelWork *model_work(Arena *arena, Module *module) {
    ModelWork *work = arena_new(arena, ModelWork);
    Reader reader = {.arena = arena,
                     .module = module,
                     .work = work,
                     .layer_of = arena_array(arena, int, module->ops.count + 1)};
    list_layers(&reader);
    place_ops(&reader);
    *work = (ModelWork){.count = reader.layers.count,
                        .layers = reader.layers.at,
                        .device_count = strategy_device_count(module->strategy)};
    work->work = arena_array(arena, double, work->count);
    work->bytes = arena_array(arena, double, work->count);
    work->slow = arena_array(arena, double, work->device_count);
    work->hosts = count_hosts(module->devices->target.cluster, work->device_count);
    for (int d = 0; d < work->device_count; d++)
        work->limited |= cluster_class(module->devices->target.cluster, d) &&
                         cluster_class(module->devices->target.cluster, d)->memory;
    work->bandwidth = least_bandwidth(module->devices->target.cluster);
    weigh(&reader);
    weigh_parameters(&reader);
    find_batch(&reader);
    find_dims(&reader);
    return work;
}

static bool names(const SplitRule *rule, const char *axis) {
    return text_find(rule->axes, rule->axis_count, axis) >= 0;
}

static double sum_weights(const MeshAxis *axis, int end) {
    double sum = 0;
    for (int i = 0; i < end; i++) sum += axis->weights ? (double)axis->weights[i] : 1;
    return sum;
}

static int64_t extent_of(const ModelWork *work, const char *dim) {
    int d = text_find(work->dims, work->dim_count, dim);
    return d < 0 ? 0 : work->extents[d];
}

double model_part(const ModelWork *work, const Strategy *strategy, const MeshAxis *axis, int c) {
    double all = sum_weights(axis, axis->count), low = sum_weights(axis, c) / all,
           high = sum_weights(axis, c + 1) / all, sum = 0;
    int count = 0;
    for (int i = 0; i < strategy->splits.count; i++) {
        const SplitRule *rule = &strategy->splits.at[i];
        double extent = (double)extent_of(work, rule->dim);
        if (!names(rule, axis->name) || rule->axis_count > 1 || rule->zigzag || extent < 1)
            continue;
        sum += (floor(extent * high + 1e-9) - floor(extent * low + 1e-9)) / extent;
        count++;
    }
    return count ? sum / count : high - low;
}

bool model_cuts_rows(const ModelWork *work, const Strategy *strategy, const char *axis) {
    bool rows = false;
    for (int i = 0; i < strategy->splits.count; i++) {
        const SplitRule *rule = &strategy->splits.at[i];
        bool batch = work->batch_name && !strcmp(rule->dim, work->batch_name);
        if (names(rule, axis) && !batch) return false;
        rows |= names(rule, axis) && batch;
    }
    return rows;
}
