/* Rates of straggling ranks: computing time now over computing time when healthy, from each step's
 * PaceReports. Rate 1 is healthy; a rank of rate 4 takes 4 times as long.
 *
 * The first steps under the first strategy define a rank's healthy time. Under another strategy its
 * work differs, so its healthy time is measured again in the first steps. If that measurement is
 * far from the planner's prediction, the prediction is used instead. Times below a twentieth of the
 * largest healthy time are mostly overhead and make no rank a straggler. An idle rank runs a kernel
 * of its last busy step, or a small product, to measure its rate. balance.c decides by these rates
 * when to make a new plan. */
#pragma once

#include "session/control/pace.h"

#include <stdbool.h>

enum { RATES_FIRST = 3 }; // steps that define the healthy time, after one warm-up step

/* Measurements under one strategy. */
typedef struct RatesUnder {
    int image;
    int samples;      // steps since the last switch to this strategy
    bool learnt;      // `healthy` is known
    double *healthy;  // by rank: computing seconds of a step when healthy; 0: idle
    double *expected; // by rank: `healthy` as predicted by the planner; 0: no prediction
    double *first;    // by step and rank: computing seconds of the first RATES_FIRST steps
} RatesUnder;

typedef struct Rates {
    int count;     // ranks
    double change; // relative difference from `planned` from which a rate has changed (is_away)
    // by rank: rate in the last step, the one before, and the one before that
    double *rate, *before, *earlier;
    double *planned; // by rank: rates that the current strategy is planned for
    int *moved;      // by rank: steps in a row in which its rate differed from `planned` (is_away)
    double *kernel;  // by rank: seconds of its longest kernel at rate `kernel_rate`; 0: not known
    double *kernel_rate;
    int under_count;
    RatesUnder **under;
    RatesUnder *now;
} Rates;

Rates *rates_create(int ranks, double change);
void rates_destroy(Rates *rates);

/* Notes a switch to the strategy of `image`, planned for the rates `planned`. `work`, or
 * NULL, has 2 * count entries: by rank under the first strategy (0: idle), then under this one. */
void rates_go(Rates *rates, int image, const double *planned, const double *work);

/* Updates the rates from the reports of a step. Returns false while healthy times are unknown. */
bool rates_take(Rates *rates, const PaceReport *reports);

/* Sets `asked` to the rates to plan for: recent rates, rounded to 0.01 and at least 0.05, of ranks
 * that have changed; planned rates of other ranks. Rates within `change` of 1 become 1. */
void rates_asked(const Rates *rates, double *asked);

/* Returns whether each rank was near its `asked` rate in at least one of the last three steps. */
bool rates_near(const Rates *rates, const double *asked);
