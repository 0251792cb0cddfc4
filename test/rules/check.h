/* What the generated programs of rules.py share: the rules as tables of C functions in double, their values and derivatives by plain sums and central differences, and
 * the comparison with what the program gives.
 *
 * Under the plain C compiler an operator's body calls these functions, through ht_apply: the program then says whether the one-device library runs what it is given.
 */
#include <hetu/hetu.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTORS = 3, OPERANDS = 4, TERMS = 6, MOST = 64 };
static const int64_t extents[FACTORS] = {3, 5, 4};

typedef struct Term {
    double (*value)(const double *v); // of the operands at one index
    unsigned factors;                 // of its operands and of the result, as bits
    int sign;
} Term;

typedef struct Operand {
    unsigned factors;
    int integer, half;
    double low, high;
} Operand;

typedef struct Rule {
    const char *text;
    unsigned result;
    int half; // the result is in bf16
    int count, terms;
    Operand operand[OPERANDS];
    Term term[TERMS];
} Rule;

static const Rule rules[RULES]; // defined by the program

/* ---- elements ---- */

static ht_dims shape_of(unsigned factors)
{
    ht_dims dims = {0};
    for (int f = 0; f < FACTORS; f++)
        if (factors >> f & 1)
            dims.extent[dims.rank++] = extents[f];
    return dims;
}

static int count_of(unsigned factors)
{
    int count = 1;
    for (int f = 0; f < FACTORS; f++)
        count *= factors >> f & 1 ? (int)extents[f] : 1;
    return count;
}

static int place_of(unsigned factors, const int *at)
{
    int place = 0;
    for (int f = 0; f < FACTORS; f++)
        if (factors >> f & 1)
            place = place * (int)extents[f] + at[f];
    return place;
}

static float half_up(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double load(const ht_view *view, int i)
{
    uint32_t bits;
    float x;
    switch (view->dtype) {
    case HT_I32: return ((const int32_t *)view->data)[i];
    case HT_BF16: bits = (uint32_t)((const uint16_t *)view->data)[i] << 16; memcpy(&x, &bits, sizeof x); return x;
    default: return ((const float *)view->data)[i];
    }
}

static void store(const ht_view *view, int i, double x)
{
    float rounded = view->dtype == HT_BF16 ? half_up((float)x) : (float)x;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    if (view->dtype == HT_BF16)
        ((uint16_t *)view->data)[i] = (uint16_t)(bits >> 16);
    else
        ((float *)view->data)[i] = rounded;
}

/* ---- values and derivatives ---- */

/* The next index over some factors; 0 after the last. */
static int next_index(unsigned factors, int *at)
{
    for (int f = FACTORS - 1; f >= 0; f--) {
        if (!(factors >> f & 1))
            continue;
        if (++at[f] < extents[f])
            return 1;
        at[f] = 0;
    }
    return 0;
}

/* y, and the sums of magnitudes that its rounding is measured by. */
static void rule_values(const Rule *rule, double (*x)[MOST], double *y, double *magnitude)
{
    for (int i = 0; i < count_of(rule->result); i++)
        y[i] = magnitude[i] = 0;
    for (int t = 0; t < rule->terms; t++) {
        int at[FACTORS] = {0};
        do {
            double v[OPERANDS];
            for (int k = 0; k < rule->count; k++)
                v[k] = x[k][place_of(rule->operand[k].factors, at)];
            double value = rule->term[t].value(v);
            y[place_of(rule->result, at)] += rule->term[t].sign * value;
            magnitude[place_of(rule->result, at)] += fabs(value);
        } while (next_index(rule->term[t].factors, at));
    }
}

/* dx of operand `k` by central differences, a term and an index at a time, and what its rounding is measured by: the sizes of slopes and values. */
static void rule_slopes(const Rule *rule, int k, double (*x)[MOST], const double *dy, double *dx, double *magnitude)
{
    const double step = 1e-6;
    for (int i = 0; i < count_of(rule->operand[k].factors); i++)
        dx[i] = magnitude[i] = 0;
    for (int t = 0; t < rule->terms; t++) {
        int at[FACTORS] = {0};
        do {
            double v[OPERANDS];
            for (int o = 0; o < rule->count; o++)
                v[o] = x[o][place_of(rule->operand[o].factors, at)];
            double kept = v[k];
            v[k] = kept + step;
            double up = rule->term[t].value(v);
            v[k] = kept - step;
            double slope = rule->term[t].sign * (up - rule->term[t].value(v)) / (2 * step) * dy[place_of(rule->result, at)];
            dx[place_of(rule->operand[k].factors, at)] += slope;
            magnitude[place_of(rule->operand[k].factors, at)] += fabs(slope) + fabs(up * dy[place_of(rule->result, at)]);
        } while (next_index(rule->term[t].factors, at));
    }
}

/* ---- the body under the plain C compiler ---- */

static void take(const Rule *rule, const ht_view *views, double (*x)[MOST])
{
    for (int k = 0; k < rule->count; k++)
        for (int i = 0; i < count_of(rule->operand[k].factors); i++)
            x[k][i] = load(&views[k], i);
}

/* Arguments: the rule. */
static inline void rule_kernel(const ht_call *call)
{
    const Rule *rule = &rules[call->attr[0].i];
    double x[OPERANDS][MOST], y[MOST], magnitude[MOST];
    take(rule, call->operand, x);
    rule_values(rule, x, y, magnitude);
    for (int i = 0; i < count_of(rule->result); i++)
        store(&call->result[0], i, y[i]);
}

/* Arguments: the rule, the operand. */
static inline void rule_slope_kernel(const ht_call *call)
{
    const Rule *rule = &rules[call->attr[0].i];
    int k = (int)call->attr[1].i;
    double x[OPERANDS][MOST], dy[MOST], dx[MOST], magnitude[MOST];
    take(rule, call->operand, x);
    for (int i = 0; i < count_of(rule->result); i++)
        dy[i] = load(&call->operand[rule->count], i);
    rule_slopes(rule, k, x, dy, dx, magnitude);
    for (int i = 0; i < count_of(rule->operand[k].factors); i++)
        store(&call->result[0], i, dx[i]);
}

static inline void rule_gradient(ht_grad *g)
{
    const Rule *rule = &rules[g->attr[0].i];
    for (int k = 0; k < rule->count; k++) {
        if (rule->operand[k].integer)
            continue;
        ht_tensor operand[OPERANDS + 1];
        memcpy(operand, g->x, (size_t)rule->count * sizeof *operand);
        operand[rule->count] = g->dy[0];
        ht_attr attr[2] = {g->attr[0], {.i = k}};
        ht_apply(&(ht_application){.kernel = rule_slope_kernel, .result_count = 1, .operand_count = rule->count + 1, .attr_count = 2,
                                   .result = {{rule->operand[k].half ? HT_BF16 : HT_F32, shape_of(rule->operand[k].factors)}},
                                   .operand = operand, .attr = attr}, &g->dx[k]);
    }
}

static inline ht_tensor rule_apply(int index, const ht_tensor *x)
{
    const Rule *rule = &rules[index];
    ht_tensor y;
    ht_apply(&(ht_application){.kernel = rule_kernel, .gradient = rule_gradient, .result_count = 1, .operand_count = rule->count, .attr_count = 1,
                               .result = {{rule->half ? HT_BF16 : HT_F32, shape_of(rule->result)}}, .operand = x, .attr = &(ht_attr){.i = index}}, &y);
    return y;
}

/* ---- the model ---- */

/* An operand: what is fed, and a parameter of zeros, whose change in a step is the gradient. */
static ht_tensor operand(int index, int k)
{
    const Operand *o = &rules[index].operand[k];
    char name[32];
    snprintf(name, sizeof name, "x%d_%d", index, k);
    ht_tensor fed = ht_input(name, o->integer ? HT_I32 : HT_F32, shape_of(o->factors));
    if (o->integer)
        return fed;
    name[0] = 'p';
    ht_tensor x = ht_add(fed, ht_param(shape_of(o->factors), ht_zeros(), name));
    return o->half ? ht_cast(x, HT_BF16) : x;
}

/* A rule's part of the loss: its result, weighed. */
static ht_tensor weighed(int index, ht_tensor y)
{
    char name[32];
    snprintf(name, sizeof name, "y%d", index);
    y = ht_output(rules[index].half ? ht_cast(y, HT_F32) : y, name);
    name[0] = 'w';
    return ht_sum(ht_mul(y, ht_input(name, HT_F32, shape_of(rules[index].result))));
}

/* ---- the check ---- */

static uint64_t drawn = 1;

static double draw(double low, double high)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (double)(drawn >> 11) * 0x1p-53;
}

/* What is fed to one rule. */
typedef struct Data {
    float x[OPERANDS][MOST], w[MOST];
    int32_t n[OPERANDS][MOST];
    double exact[OPERANDS][MOST], dy[MOST];
} Data;

static void fill(const Rule *rule, Data *data)
{
    for (int k = 0; k < rule->count; k++)
        for (int i = 0; i < count_of(rule->operand[k].factors); i++) {
            const Operand *o = &rule->operand[k];
            float x = (float)draw(o->low, o->high);
            data->x[k][i] = o->half ? half_up(x) : x;
            data->n[k][i] = (int32_t)floor(draw(o->low, o->high + 1));
            data->exact[k][i] = o->integer ? data->n[k][i] : data->x[k][i];
        }
    for (int i = 0; i < count_of(rule->result); i++)
        data->dy[i] = data->w[i] = half_up((float)draw(-1, 1));
}

static int failures;
static double worst;

static void compare(const Rule *rule, const char *what, int half, const float *have, const double *want, const double *magnitude, int count)
{
    double scale = 0, allowed = half ? 8e-3 : 2e-6;
    for (int i = 0; i < count; i++)
        scale = fmax(scale, magnitude[i]);
    for (int i = 0; i < count; i++) {
        double error = fabs(have[i] - want[i]);
        if (!half && scale > 0)
            worst = fmax(worst, error / scale);
        if (error <= allowed * scale + 1e-9)
            continue;
        failures++;
        printf("wrong: %s [%d] of %s is %.9g, not %.9g (%.2g of %.3g)\n", what, i, rule->text, (double)have[i], want[i], error / scale, scale);
        return;
    }
}

static void check_rule(ht_session *session, ht_program *program, int index, Data *data)
{
    const Rule *rule = &rules[index];
    char name[32];
    float have[MOST];
    double want[MOST], magnitude[MOST];
    snprintf(name, sizeof name, "y%d", index);
    ht_fetch(program, name, have);
    rule_values(rule, data->exact, want, magnitude);
    compare(rule, "y", rule->half, have, want, magnitude, count_of(rule->result));
    for (int k = 0; k < rule->count; k++) {
        int count = count_of(rule->operand[k].factors);
        if (rule->operand[k].integer)
            continue;
        snprintf(name, sizeof name, "p%d_%d", index, k);
        ht_get_param(session, name, have, (size_t)count);
        for (int i = 0; i < count; i++)
            have[i] = -have[i];
        rule_slopes(rule, k, data->exact, data->dy, want, magnitude);
        compare(rule, name, rule->operand[k].half, have, want, magnitude, count);
    }
}

static ht_tensor loss(void);

/* Feeds all rules once, and compares. */
int main(int argc, char **argv)
{
    static Data data[RULES];
    static ht_fed feeds[RULES * (OPERANDS + 1) + 1];
    static char names[RULES * (OPERANDS + 1)][32];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 1));
    int fed = 0;
    for (int r = 0; r < RULES; r++) {
        fill(&rules[r], &data[r]);
        for (int k = 0; k < rules[r].count; k++, fed++) {
            snprintf(names[fed], sizeof names[fed], "x%d_%d", r, k);
            feeds[fed] = rules[r].operand[k].integer ? ht_feed(names[fed], &data[r].n[k][0]) : ht_feed(names[fed], &data[r].x[k][0]);
        }
        snprintf(names[fed], sizeof names[fed], "w%d", r);
        feeds[fed] = ht_feed(names[fed], &data[r].w[0]);
        fed++;
    }
    ht_step_with(program, feeds);
    for (int r = 0; r < RULES; r++)
        check_rule(session, program, r, &data[r]);
    printf("%d rules, %d wrong, the worst by %.2g\n", RULES, failures, worst);
    ht_close(session);
    return failures != 0;
}
