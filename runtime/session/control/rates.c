/* Decides how slow each rank is. balance.c decides when that leads to a new plan. */
#include "session/control/rates.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARMING = 1 }; // warm-up steps after a switch, which are not measured

/* Returns a list of `count` numbers that all are `value`; free() it. */
static double *numbers(int count, double value) {
    double *list = memory_array(count, sizeof *list);
    for (int i = 0; i < count; i++) list[i] = value;
    return list;
}

Rates *rates_create(int ranks, double change) {
    Rates *rates = memory_array(1, sizeof *rates);
    *rates = (Rates){.count = ranks,
                     .change = change,
                     .rate = numbers(ranks, 1),
                     .before = numbers(ranks, 1),
                     .earlier = numbers(ranks, 1),
                     .planned = numbers(ranks, 1),
                     .moved = memory_array(ranks, sizeof(int)),
                     .kernel = numbers(ranks, 0),
                     .kernel_rate = numbers(ranks, 1)};
    return rates;
}

void rates_destroy(Rates *rates) {
    for (int u = 0; u < rates->under_count; u++) {
        free(rates->under[u]->healthy);
        free(rates->under[u]->expected);
        free(rates->under[u]->first);
        free(rates->under[u]);
    }
    free(rates->under);
    free(rates->rate);
    free(rates->before);
    free(rates->earlier);
    free(rates->planned);
    free(rates->moved);
    free(rates->kernel);
    free(rates->kernel_rate);
    free(rates);
}

/* ---- strategies ---- */

/* Returns the measurements under an image; NULL: there are none. */
static RatesUnder *find(const Rates *rates, int image) {
    for (int u = 0; u < rates->under_count; u++)
        if (rates->under[u]->image == image) return rates->under[u];
    return NULL;
}

static RatesUnder *add(Rates *rates, int image) {
    RatesUnder **grown = realloc(rates->under, sizeof *grown * (size_t)(rates->under_count + 1));
    if (!grown) ht_fail("no memory for what is known of ranks");
    rates->under = grown;
    RatesUnder *under = memory_array(1, sizeof *under);
    *under = (RatesUnder){.image = image,
                          .healthy = numbers(rates->count, 0),
                          .expected = numbers(rates->count, 0),
                          .first = numbers(rates->count * RATES_FIRST, 0)};
    return rates->under[rates->under_count++] = under;
}

/* Returns the seconds per unit of work under the first strategy: the sum of healthy times over the
 * sum of work, of all ranks; 0: not known. */
static double usual_unit(const Rates *rates, const double *work) {
    double seconds = 0, units = 0;
    for (int r = 0; r < rates->count; r++)
        if (work[r] > 0 && rates->under[0]->healthy[r] > 0) {
            seconds += rates->under[0]->healthy[r];
            units += work[r];
        }
    return units > 0 ? seconds / units : 0;
}

/* Returns the seconds below which computing times are not compared: a twentieth of the largest
 * healthy time. Unpredicted overhead of kernel calls and a loaded machine is of that size. */
static double least_seconds(const Rates *rates) {
    const double share = 0.05;
    double most = 0;
    for (int r = 0; r < rates->count; r++) most = fmax(most, rates->under[0]->healthy[r]);
    return share * most;
}

/* Predicts under->expected, each rank's healthy seconds, from its work under both strategies. */
static void expect(Rates *rates, RatesUnder *under, const double *work) {
    for (int r = 0; r < rates->count; r++) {
        double own = rates->under[0]->healthy[r];
        bool measured = work[r] > 0 && own > least_seconds(rates);
        double unit = measured ? own / work[r] : usual_unit(rates, work);
        under->expected[r] = unit * work[rates->count + r];
    }
}

void rates_go(Rates *rates, int image, const double *planned, const double *work) {
    rates->now = find(rates, image);
    if (!rates->now) rates->now = add(rates, image);
    rates->now->samples = 0;
    if (work) expect(rates, rates->now, work);
    memcpy(rates->planned, planned, sizeof *planned * (size_t)rates->count);
    memcpy(rates->rate, planned, sizeof *planned * (size_t)rates->count);
    memcpy(rates->before, planned, sizeof *planned * (size_t)rates->count);
    memcpy(rates->earlier, planned, sizeof *planned * (size_t)rates->count);
    memset(rates->moved, 0, sizeof *rates->moved * (size_t)rates->count);
}

/* ---- steps ---- */

static int by_size(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Returns the median of a rank's computing seconds in the first RATES_FIRST steps. */
static double middle(const Rates *rates, int rank) {
    double seen[RATES_FIRST];
    for (int i = 0; i < RATES_FIRST; i++) seen[i] = rates->now->first[i * rates->count + rank];
    qsort(seen, RATES_FIRST, sizeof *seen, by_size);
    return seen[RATES_FIRST / 2];
}

/* Returns a rank's healthy computing seconds: the median of the first steps divided by the planned
 * rate. Returns the prediction if the two, plus least_seconds, differ by a factor above 1.5. */
static double healthy_of(const Rates *rates, int rank) {
    const double most = 1.5;
    double own = middle(rates, rank) / rates->planned[rank], expected = rates->now->expected[rank],
           ratio = (own + least_seconds(rates)) / (expected + least_seconds(rates));
    return expected > 0 && (ratio > most || ratio < 1 / most) ? expected : own;
}

/* Records a step under a new strategy; after RATES_FIRST steps, computes the healthy seconds. */
static void learn(Rates *rates, const PaceReport *reports) {
    RatesUnder *now = rates->now;
    for (int r = 0; r < rates->count; r++)
        now->first[(now->samples - WARMING - 1) * rates->count + r] = fmax(reports[r].computing, 0);
    now->learnt = now->samples == WARMING + RATES_FIRST;
    for (int r = 0; now->learnt && r < rates->count; r++) now->healthy[r] = healthy_of(rates, r);
}

/* Notes the kernel time and rate of each busy rank, and of each idle rank that has none yet. From
 * these, rate_of computes the rate of an idle rank. */
static void take_kernels(Rates *rates, const PaceReport *reports) {
    for (int r = 0; r < rates->count; r++)
        if (reports[r].kernel > 0 && (reports[r].computing >= 0 || rates->kernel[r] == 0)) {
            rates->kernel[r] = reports[r].kernel;
            rates->kernel_rate[r] = rates->rate[r];
        }
}

/* Returns a busy rank's rate: planned rate times measured seconds over the seconds expected at that
 * rate. If the expected seconds are below least_seconds, both times grow by the difference. */
static double busy_rate(const Rates *rates, int rank, double computing) {
    double usual = rates->now->healthy[rank] * rates->planned[rank],
           lacks = fmax(least_seconds(rates) - usual, 0);
    return usual > 0 ? rates->planned[rank] * (computing + lacks) / (usual + lacks)
                     : rates->rate[rank];
}

/* Returns the rate of a rank: from its computing seconds or, if it is idle, from its kernel. */
static double rate_of(const Rates *rates, int rank, const PaceReport *report) {
    if (report->computing >= 0) return busy_rate(rates, rank, report->computing);
    return rates->kernel[rank] > 0 && report->kernel > 0
               ? rates->kernel_rate[rank] * report->kernel / rates->kernel[rank]
               : rates->rate[rank];
}

/* Returns whether a rate differs from the planned rate by at least `change`. If the planned rate is
 * above 1, the difference must be at least `change` times the planned rate. */
static bool is_away(const Rates *rates, double rate, double planned) {
    return fabs(rate - planned) >= rates->change * fmax(1, planned);
}

/* Updates the last three rates, and counts the steps in a row in which a rate is_away. */
static void follow(Rates *rates, const PaceReport *reports) {
    for (int r = 0; r < rates->count; r++) {
        rates->earlier[r] = rates->before[r];
        rates->before[r] = rates->rate[r];
        rates->rate[r] = rate_of(rates, r, &reports[r]);
        bool away = is_away(rates, rates->rate[r], rates->planned[r]);
        rates->moved[r] = away ? rates->moved[r] + 1 : 0;
    }
}

bool rates_take(Rates *rates, const PaceReport *reports) {
    RatesUnder *now = rates->now;
    bool known = ++now->samples > WARMING && now->learnt;
    if (now->samples > WARMING && !now->learnt) learn(rates, reports);
    if (known) follow(rates, reports);
    take_kernels(rates, reports);
    return known;
}

/* Returns a rank's recent rate: the mean of the last two steps if it differed from the planned rate
 * in both; the median of the last three if it differed in all three; else the last rate. */
static double seen_last(const Rates *rates, int rank) {
    double a = rates->rate[rank], b = rates->before[rank], c = rates->earlier[rank];
    return rates->moved[rank] > 2   ? fmax(fmin(a, b), fmin(fmax(a, b), c))
           : rates->moved[rank] > 1 ? (a + b) / 2
                                    : a;
}

void rates_asked(const Rates *rates, double *asked) {
    const double least = 0.05;
    for (int r = 0; r < rates->count; r++) {
        double seen = round(100 * seen_last(rates, r)) / 100;
        asked[r] = rates->moved[r] ? fmax(seen, least) : rates->planned[r];
        asked[r] = fabs(asked[r] - 1) < rates->change ? 1 : asked[r];
    }
}

bool rates_near(const Rates *rates, const double *asked) {
    for (int r = 0; r < rates->count; r++)
        if (is_away(rates, rates->rate[r], asked[r]) &&
            is_away(rates, rates->before[r], asked[r]) &&
            is_away(rates, rates->earlier[r], asked[r]))
            return false;
    return true;
}
