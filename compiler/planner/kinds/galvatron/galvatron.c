/* Reads Galvatron's input, and writes its plan and its bound as JSON. */
#include "planner/kinds/galvatron/galvatron.h"

#include "planner/kinds/input.h"

#include <math.h>

enum { MOST_GPUS = 1 << (GALVATRON_LOGS - 1), MOST_LAYERS = 1000, MOST_BATCH = 1 << 16 };

/* Reads a table by powers of two of devices; entries for `from` to `to` devices are required. */
static void read_powers(Arena *arena, Field table, double *by_log, int from, int to) {
    double *rate = arena_array(arena, double, MOST_GPUS + 1);
    degrees_read(table, rate, MOST_GPUS);
    for (int k = 0; k < GALVATRON_LOGS; k++) {
        by_log[k] = rate[1 << k];
        if (1 << k >= from && 1 << k <= to) degrees_need(table, rate, 1 << k);
    }
}

static void read_classes(Field list, Galvatron *q) {
    static const char *const keys[] = {"name", "gpus", "slow", "memory_mb", NULL};
    q->class_count = field_count(list, 1);
    if (q->class_count > GALVATRON_CLASSES)
        field_refuse(list, "there are %d classes, and at most %d are planned for", q->class_count,
                     GALVATRON_CLASSES);
    for (int c = 0, first = 0; c < q->class_count && !input_error(list); c++) {
        Field entry = field_at(list, c);
        field_keys(entry, keys);
        q->class[c] =
            (GalvatronClass){.name = field_string(field_get(entry, "name")),
                             .gpus = field_integer(field_get(entry, "gpus"), 1, MOST_GPUS),
                             .first = first,
                             .slow = field_positive(field_get(entry, "slow")),
                             .memory_mb = field_positive(field_get(entry, "memory_mb"))};
        first += q->class[c].gpus;
    }
}

/* Returns the most devices that a stage can have. */
static int stage_most(const Galvatron *q) {
    int most = 1;
    for (int c = 0; c < q->class_count; c++)
        most = (int)fmax(most, q->class[c].gpus & -q->class[c].gpus);
    return most;
}

/* Reads the links. Stages inside a node communicate over `node`; between nodes gradients go over
 * `near` without tensor parallelism, else over `far`. */
static void read_links(Arena *arena, Field links, Galvatron *q) {
    static const char *const keys[] = {"latency_ms", "node", "near", "far",
                                       "alltoall",   "p2p",  NULL};
    int most = stage_most(q), inside = most < q->per_node ? most : q->per_node;
    double p2p[GALVATRON_STAGES * MOST_LAYERS + 1];
    field_keys(links, keys);
    q->links.latency_ms = field_number(field_get(links, "latency_ms"), 0);
    read_powers(arena, field_get(links, "node"), q->links.node, 2, inside);
    read_powers(arena, field_get(links, "near"), q->links.near, q->per_node + 1, most);
    read_powers(arena, field_get(links, "far"), q->links.far, most > q->per_node ? 2 : MOST_GPUS,
                most / 2);
    read_powers(arena, field_get(links, "alltoall"), q->links.alltoall, 2, inside);
    degrees_read(field_get(links, "p2p"), p2p, GALVATRON_STAGES * MOST_LAYERS);
    for (int p = 2; p <= GALVATRON_STAGES; p++) q->links.p2p[p] = p2p[p];
}

/* Reads the times and sizes of the model's layers, and how many there are. */
static void read_model(Arena *arena, Field input, Galvatron *q) {
    int most = stage_most(q);
    q->per_node = field_integer(field_get(input, "per_node"), 1, MOST_GPUS);
    q->layers = field_integer(field_get(input, "layers"), 1, MOST_LAYERS);
    q->batch = field_integer(field_get(input, "batch"), 1, MOST_BATCH);
    q->forward_ms = field_positive(field_get(input, "forward_ms"));
    q->parameter_mb = field_positive(field_get(input, "parameter_mb"));
    q->hidden_mb = field_positive(field_get(input, "hidden_mb"));
    q->recompute_mb = field_number(field_get(input, "recompute_mb"), 0);
    q->ends_mb = field_number(field_get(input, "ends_mb"), 0);
    q->overlap = field_number(field_get(input, "overlap"), 1);
    read_powers(arena, field_get(input, "activation_mb"), q->activation_mb, 1,
                most < q->per_node ? most : q->per_node);
}

/* Returns the fewest stages of a pipeline over the classes for any batch; 0: there is none. */
static int fewest_stages(Arena *arena, const Galvatron *q) {
    int count, fewest = 0;
    Galvatron any = *q;
    any.batch = GALVATRON_STAGES;
    const Pipeline *pipelines = galvatron_pipelines(arena, &any, &count);
    for (int i = 0; i < count; i++)
        fewest = !fewest || pipelines[i].stages < fewest ? pipelines[i].stages : fewest;
    return fewest;
}

/* Checks that there is a rate between the stages of every pipeline, and that the batch has enough
 * micro-batches for some pipeline. */
static void check_pipelines(Arena *arena, Field input, const Galvatron *q) {
    int count;
    const Pipeline *pipelines = galvatron_pipelines(arena, q, &count);
    Field p2p = field_get(field_get(input, "bandwidth"), "p2p");
    int fewest = count ? 0 : fewest_stages(arena, q);
    if (fewest)
        field_refuse(field_get(input, "batch"),
                     "%d is less than %d: every pipeline over the classes has at least so many "
                     "stages, and no fewer micro-batches",
                     q->batch, fewest);
    else if (!count)
        field_refuse(
            field_get(input, "classes"),
            "the classes have no stages of 2^k devices, at most %d in all, that cut no node",
            GALVATRON_STAGES);
    for (int i = 0; i < count; i++)
        if (pipelines[i].stages > 1) degrees_need(p2p, q->links.p2p, pipelines[i].stages);
}

static Galvatron read_problem(Arena *arena, Field input) {
    static const char *const keys[] = {
        "classes",   "per_node",      "layers",       "batch",   "forward_ms", "parameter_mb",
        "hidden_mb", "activation_mb", "recompute_mb", "ends_mb", "overlap",    "bandwidth",
        NULL};
    Galvatron q = {0};
    field_keys(input, keys);
    read_classes(field_get(input, "classes"), &q);
    if (!input_error(input)) read_model(arena, input, &q);
    if (!input_error(input)) read_links(arena, field_get(input, "bandwidth"), &q);
    if (!input_error(input)) check_pipelines(arena, input, &q);
    return q;
}

static json_t *devices_json(const Pipeline *p, int stage) {
    json_t *devices = json_array();
    for (int d = 0; d < p->gpus[stage]; d++)
        json_array_append_new(devices, json_integer(p->first[stage] + d));
    return devices;
}

static json_t *stage_json(const Pipeline *p, int stage, const StagePlan *plan) {
    json_t *layers = json_array();
    for (int k = 0; k < 2; k++) {
        const Strategy *s = &plan->strategy[k];
        if (plan->count[k])
            json_array_append_new(layers, json_pack("{s:i, s:i, s:i, s:i, s:i, s:b}", "count",
                                                    plan->count[k], "tp", s->tp, "ulysses",
                                                    s->ulysses, "dp", s->dp, "zero", s->zero,
                                                    "recompute", s->recompute));
    }
    return json_pack("{s:o, s:o}", "devices", devices_json(p, stage), "layers", layers);
}

json_t *galvatron_answer(Arena *arena, Field input, Budget *budget) {
    (void)budget;
    Galvatron q = read_problem(arena, input);
    GalvatronPlan *plan = input_error(input) ? NULL : galvatron_plan(arena, &q);
    if (!plan) {
        field_refuse(field_get(input, "classes"), "no plan fits the memory");
        return NULL;
    }
    json_t *stages = json_array();
    for (int i = 0; i < plan->pipeline.stages; i++)
        json_array_append_new(stages, stage_json(&plan->pipeline, i, &plan->stage[i]));
    return json_pack("{s:i, s:o, s:f}", "microbatches", plan->pipeline.microbatches, "stages",
                     stages, "milliseconds", plan->milliseconds);
}

/* Returns the pipeline with the least bound as JSON, for the proof. */
static json_t *relaxed_json(const Galvatron *q, const GalvatronBound *bound) {
    json_t *stages = json_array();
    for (int i = 0; i < bound->pipeline.stages; i++)
        json_array_append_new(
            stages, json_pack("{s:s, s:i, s:i}", "class", q->class[bound->pipeline.class[i]].name,
                              "devices", bound->pipeline.gpus[i], "layers", bound->layers[i]));
    return stages;
}

json_t *galvatron_certify(Arena *arena, Field input, Budget *budget) {
    (void)budget;
    Galvatron q = read_problem(arena, input);
    GalvatronBound bound = input_error(input) ? (GalvatronBound){0} : galvatron_bound(arena, &q);
    if (!isfinite(bound.value))
        field_refuse(field_get(input, "classes"), "no plan fits the memory");
    if (input_error(input)) return NULL;
    return json_pack("{s:f, s:{s:s, s:i, s:i, s:o}}", "bound", bound.value, "proof", "why",
                     "of every pipeline and number of micro-batches: layers may be mixtures of "
                     "strategies, changes of degree are free, the "
                     "ends have their smallest share, and only the first stage's gradients are "
                     "left over; the least over layers of the stages, "
                     "with the mean for the longest stage, or over all times that it can have; the "
                     "least of all pipelines, which the stages "
                     "below have",
                     "pipelines", bound.pipelines, "microbatches", bound.pipeline.microbatches,
                     "stages", relaxed_json(&q, &bound));
}
