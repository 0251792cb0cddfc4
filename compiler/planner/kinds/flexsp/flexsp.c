/* Reads FlexSP's input and writes its plan and its bound. blaster.c cuts a batch into
 * micro-batches, anneal_groups.c chooses groups' degrees and sequences, tournament.c the starts and
 * the number of micro-batches. */
#include "planner/kinds/flexsp/flexsp.h"

#include "planner/kinds/input.h"

#include <limits.h>
#include <math.h>

/* USUAL_WORK: moves of a search without a limit. WORK_RATE: moves of a slow core in a second. */
static const long USUAL_WORK = 18000000;
static const double WORK_RATE = 7e6;

enum { MOST_GPUS = 1 << 15, MOST_LENGTHS = 1 << 20 };

/* Reads the degrees, powers of two, and sorts them. */
static void read_degrees(Field list, Flexsp *q) {
    int count, *sizes = field_integers(list, 1, 1, q->gpus, &count);
    for (int i = 0; i < count; i++) {
        int at = q->degree_count;
        if (sizes[i] & (sizes[i] - 1))
            field_refuse(field_at(list, i), "%d is not a power of two", sizes[i]);
        for (; at > 0 && q->degree[at - 1].size > sizes[i]; at--) q->degree[at] = q->degree[at - 1];
        if (at > 0 && q->degree[at - 1].size == sizes[i])
            field_refuse(field_at(list, i), "degree %d is there twice", sizes[i]);
        if (input_error(list)) return;
        q->degree[at] = (FlexspDegree){.size = sizes[i]};
        q->degree_count++;
    }
}

/* Returns how many tokens of token_mb each fit in memory with the states. A value that differs from
 * an integer only by rounding becomes this integer. */
static double tokens_held(double memory_mb, double states_mb, double token_mb) {
    const double rounding = 1e-9;
    double tokens = (memory_mb - states_mb) / token_mb, whole = nearbyint(tokens);
    return fabs(whole - tokens) <= rounding * memory_mb / token_mb ? whole : tokens;
}

/* Computes each degree's exchange time and tokens: 8 all-to-alls a layer, of 2 bytes a number. */
static void read_rates(Arena *arena, Field input, Flexsp *q) {
    Field table = field_get(input, "alltoall");
    double *rate = arena_array(arena, double, q->gpus + 1);
    double token_mb = field_positive(field_get(input, "token_mb")),
           states_mb = field_number(field_get(input, "states_mb"), 0);
    double memory_mb = field_positive(field_get(input, "memory_mb"));
    int layers = field_integer(field_get(input, "layers"), 1, INT_MAX),
        hidden = field_integer(field_get(input, "hidden"), 1, INT_MAX);
    degrees_read(table, rate, q->gpus);
    for (FlexspDegree *d = q->degree; d < q->degree + q->degree_count && !input_error(input); d++) {
        d->tokens = tokens_held(memory_mb, states_mb, token_mb / d->size);
        if (d->size == 1) continue;
        degrees_need(table, rate, d->size);
        d->exchange = 4 * 2.0 * layers * hidden * 2 / 0x1p20 / d->size / rate[d->size];
    }
}

/* Reads the lengths; each must fit into a group of some degree. */
static void read_lengths(Arena *arena, Field list, Flexsp *q) {
    q->length_count = field_count(list, 1);
    int64_t *length = arena_array(arena, int64_t, q->length_count);
    q->length = length;
    for (int i = 0; i < q->length_count && !input_error(list); i++) {
        const FlexspDegree *top = &q->degree[q->degree_count - 1];
        length[i] = field_integer(field_at(list, i), 1, INT_MAX);
        if ((double)length[i] > top->tokens)
            field_refuse(field_at(list, i), "no group holds %lld tokens: degree %d holds %.0f",
                         (long long)length[i], top->size, fmax(0, floor(top->tokens)));
    }
}

static Flexsp read_problem(Arena *arena, Field input) {
    static const char *const keys[] = {"gpus",      "degrees", "alltoall", "a1",       "a2",
                                       "b1",        "layers",  "hidden",   "token_mb", "states_mb",
                                       "memory_mb", "lengths", NULL};
    Flexsp q = {0};
    field_keys(input, keys);
    q.gpus = field_integer(field_get(input, "gpus"), 1, MOST_GPUS);
    q.a1 = field_number(field_get(input, "a1"), 0);
    q.a2 = field_positive(field_get(input, "a2"));
    q.b1 = field_number(field_get(input, "b1"), 0);
    read_degrees(field_get(input, "degrees"), &q);
    if (!input_error(input)) read_rates(arena, input, &q);
    if (!input_error(input)) read_lengths(arena, field_get(input, "lengths"), &q);
    if (!input_error(input)) q.gpus -= q.gpus % q.degree[0].size;
    return q;
}

static json_t *group_json(const Flexsp *q, const FlexspGroup *group) {
    json_t *sequences = json_array();
    for (int i = 0; i < group->sequence_count; i++)
        json_array_append_new(sequences, json_integer(group->sequences[i]));
    return json_pack("{s:i, s:o}", "degree", q->degree[group->degree].size, "sequences", sequences);
}

static json_t *plan_json(const Flexsp *q, const FlexspPlan *plan) {
    json_t *batches = json_array(), *groups = NULL;
    for (int g = 0; g < plan->group_count; g++) {
        if (g == 0 || plan->groups[g].batch != plan->groups[g - 1].batch) {
            groups = json_array();
            json_array_append_new(batches, json_pack("{s:o}", "groups", groups));
        }
        json_array_append_new(groups, group_json(q, &plan->groups[g]));
    }
    return json_pack("{s:o, s:f}", "microbatches", batches, "milliseconds", plan->milliseconds);
}

json_t *flexsp_answer(Arena *arena, Field input, Budget *budget) {
    Flexsp q = read_problem(arena, input);
    if (input_error(input)) return NULL;
    return plan_json(
        &q, flexsp_plan(arena, &q, budget_work(budget, USUAL_WORK, WORK_RATE), budget->seed));
}

json_t *flexsp_certify(Arena *arena, Field input, Budget *budget) {
    (void)budget;
    Flexsp q = read_problem(arena, input);
    if (input_error(input)) return NULL;
    FlexspBound bound = flexsp_bound(&q);
    return json_pack("{s:f, s:{s:s, s:i, s:f, s:f, s:f}}", "bound", bound.value, "proof", "why",
                     "every micro-batch takes b1, and together the sequences' time: at least their "
                     "least device-milliseconds over all "
                     "devices, and at least the longest sequence's least time",
                     "microbatches", bound.batches, "b1", q.b1, "work", bound.area, "longest",
                     bound.longest);
}
