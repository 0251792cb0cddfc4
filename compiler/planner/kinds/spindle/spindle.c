/* Reads Spindle's input, and writes its plan and its bound as JSON. */
#include "planner/kinds/spindle/spindle.h"

#include "planner/kinds/input.h"

#include <math.h>
#include <string.h>

/* USUAL_WORK: units of work (schedule_work) of each of two cores for a plan without limits.
 * WORK_RATE: units of both cores together in a second, on slow cores. */
static const long USUAL_WORK = 600000000;
static const double WORK_RATE = 4e7;

enum { MOST_GPUS = 1 << 12, MOST_LAYERS = 1 << 16, MOST_OPERATORS = 1 << 12 };

/* Returns the index of a text among the texts read so far; adds a new text. */
static int text_number(const char **texts, int *count, const char *text) {
    int at = 0;
    while (at < *count && strcmp(texts[at], text)) at++;
    if (at == *count) texts[(*count)++] = text;
    return at;
}

/* Reads an operator's allotments, ascending by devices: up to an island, or whole islands. */
static void read_allotments(Arena *arena, Field table, const Spindle *q, Operator *operator) {
    double *ms = arena_array(arena, double, q->gpus + 1);
    Allotment *allotment = arena_array(arena, Allotment, q->gpus);
    int island = q->island;
    degrees_read(table, ms, q->gpus);
    operator->allotment = allotment;
    for (int n = 1; n <= q->gpus; n++) {
        if (ms[n] > 0 && n > island && n % island)
            field_refuse(table, "%d devices are no whole islands of %d", n, island);
        if (ms[n] > 0)
            allotment[operator->allotment_count++] = (Allotment){n, ms[n]};
    }
    if (!operator->allotment_count) field_refuse(table, "it is empty");
}

/* Reads the operators that an operator follows; they come before it in the list. */
static void read_after(Arena *arena, Field list, const Spindle *q, int count, Operator *operator) {
    operator->after_count = field_count(list, 0);
    int *after = arena_array(arena, int, operator->after_count);
    operator->after = after;
    for (int k = 0; k < operator->after_count; k++) {
        const char *name = field_string(field_at(list, k));
        while (after[k] < count && strcmp(q->operator[after[k]].name, name)) after[k]++;
        if (after[k] == count)
            field_refuse(field_at(list, k), "no operator before this one is named %s", name);
    }
}

static void read_operators(Arena *arena, Field list, Spindle *q) {
    static const char *const keys[] = {"name",    "layers",   "after", "ms",
                                       "weights", "state_mb", NULL};
    int count = field_count(list, 1);
    Operator *operator= arena_array(arena, Operator, count);
    const char **weights = arena_array(arena, const char *, count);
    q->operator= operator;
    for (; q->operator_count < count && !input_error(list); q->operator_count++, operator++) {
        Field entry = field_at(list, q->operator_count);
        field_keys(entry, keys);
        *operator=(Operator){.name = field_string(field_get(entry, "name")),
                             .layers = field_integer(field_get(entry, "layers"), 1, MOST_LAYERS),
                             .state_mb = field_number(field_get(entry, "state_mb"), 0),
                             .weights = text_number(weights, &q->weights_count,
                                                    field_string(field_get(entry, "weights")))};
        for (int o = 0; o < q->operator_count; o++)
            if (!strcmp(q->operator[o].name, operator->name))
                field_refuse(field_get(entry, "name"),
                             "two operators are named %s", operator->name);
        q->layers_most = (int)fmax(q->layers_most, operator->layers);
        read_after(arena, field_get(entry, "after"), q, q->operator_count, operator);
        if (!input_error(list)) read_allotments(arena, field_get(entry, "ms"), q, operator);
    }
}

static Spindle read_problem(Arena *arena, Field input) {
    static const char *const keys[] = {"gpus", "island", "memory_mb", "operators", NULL};
    Spindle q = {0};
    field_keys(input, keys);
    q.gpus = field_integer(field_get(input, "gpus"), 1, MOST_GPUS);
    q.island = field_integer(field_get(input, "island"), 1, MOST_GPUS);
    q.memory_mb = field_positive(field_get(input, "memory_mb"));
    if (!input_error(input)) read_operators(arena, field_get(input, "operators"), &q);
    return q;
}

static json_t *slice_json(const Spindle *q, const Slice *slice) {
    json_t *devices = json_array();
    for (int d = 0; d < slice->device_count; d++)
        json_array_append_new(devices, json_integer(slice->devices[d]));
    return json_pack("{s:s, s:o, s:f, s:i}", "operator",
                     q->operator[slice->operator].name, "devices", devices, "start", slice->start,
                                 "layers", slice->layers);
}

json_t *spindle_answer(Arena *arena, Field input, Budget *budget) {
    Spindle q = read_problem(arena, input);
    if (input_error(input)) return NULL;
    int64_t work = budget_work(budget, USUAL_WORK, WORK_RATE);
    SpindlePlan *plan = spindle_plan(arena, &q, work, USUAL_WORK, budget->seed);
    if (!plan) {
        field_refuse(field_get(input, "memory_mb"), "no schedule was found whose states fit");
        return NULL;
    }
    json_t *slices = json_array();
    for (int i = 0; i < plan->slice_count; i++)
        json_array_append_new(slices, slice_json(&q, &plan->slices[i]));
    return json_pack("{s:o, s:f}", "slices", slices, "milliseconds", plan->milliseconds);
}

json_t *spindle_certify(Arena *arena, Field input, Budget *budget) {
    (void)budget;
    Spindle q = read_problem(arena, input);
    if (input_error(input)) return NULL;
    SpindleBound bound = spindle_bound(arena, &q);
    json_t *prices = json_object();
    for (int o = 0; o < q.operator_count; o++)
        if (bound.end[o] != 0)
            json_object_set_new(prices, q.operator[o].name, json_real(bound.end[o]));
    return json_pack("{s:f, s:{s:s, s:f, s:o}}", "bound", bound.value, "proof", "why",
                     "a linear program: layers may be parts and run on any mixture of allotments; "
                     "operators start after those before them "
                     "have ended; devices times time of all layers is at most all devices times "
                     "the end; the prices are duals",
                     "area", bound.area, "ends", prices);
}
