/* Straggling rates: how many times as long each rank takes for its work as it did when it was
 * healthy, from what ranks report step by step.
 *
 * A rank's first steps under the first strategy are what healthy means. Under another strategy its
 * work is another: what it takes there when healthy is measured, too, in the first steps, where
 * that agrees with what the planner expects and the rank's rate at that time; otherwise the rate is
 * what has changed. A rank that is idle is known by a small product, which it also ran while it was
 * last planned for.
 */
#ifndef SESSION_CONTROL_RATES_H
#define SESSION_CONTROL_RATES_H

#include "session/control/pace.h"

#include <stdbool.h>

enum { RATES_FIRST = 3 }; // steps that say what healthy is, behind one that warms up

/* What is known of the ranks under a strategy. */
typedef struct RatesUnder {
    int image;
    int samples;      // steps since the program came to it last
    bool learnt;      // what healthy means
    double *healthy;  // seconds of each rank; 0: it is idle
    double *expected; // what the planner expects of that; 0: nothing
    double *first;    // by step, and rank: what was seen first
} RatesUnder;

typedef struct Rates {
    int count; // ranks
    double change;
    // of each rank now, in the step before, and in the one before that
    double *rate, *before, *earlier;
    double *planned; // those that the strategy in force is for
    int *moved; // for how many steps it has been away from that: by `change`, and of a slow rank by
                // that part of its rate
    double *kernel; // seconds of its longest kernel while its rate was `kernel_rate`; 0: not known
    double *kernel_rate;
    int under_count;
    RatesUnder **under;
    RatesUnder *now;
} Rates;

Rates *rates_create(int ranks, double change);
void rates_destroy(Rates *rates);

/* The program runs under the strategy of an image from now on, planned for these rates; `work`,
 * which may be NULL, is each rank's under the strategy that was first (0: idle there), and then
 * under this one, in one unit. */
void rates_go(Rates *rates, int image, const double *planned, const double *work);

/* Takes what the ranks report of a step; false where it is not known yet how fast they are. */
bool rates_take(Rates *rates, const PaceReport *reports);

/* The rates that a plan is made for: of ranks that have moved what was seen last, else what the
 * strategy in force is for; less than `change` away from healthy is healthy. */
void rates_asked(const Rates *rates, double *asked);

/* Whether no rank has been away from these rates in the last three steps. */
bool rates_near(const Rates *rates, const double *asked);

#endif
