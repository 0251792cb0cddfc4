/* How long a planner may search.
 *
 * A planner counts its work, so that the same input has the same plan on every machine; seconds end
 * only what would take far too long. A user's limit in seconds (--limit) is also a promise of time
 * that work is measured out by: budget_work.
 */
#ifndef PLANNER_KINDS_BUDGET_H
#define PLANNER_KINDS_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct Budget {
    double limit;  // seconds; INFINITY: none
    double effort; // times the usual work
    uint64_t seed; // of local searches: another one, other starts
    struct timespec begin;
} Budget;

/* A budget that begins now; limit INFINITY: none. */
Budget budget_begin(double limit);

/* Seconds that are left of the limit; INFINITY without one. */
double budget_left(const Budget *budget);

static inline bool budget_spent(const Budget *budget) { return budget_left(budget) <= 0; }

/* How much work a search may do: `usual` times the effort, of which a core does at least `rate` a
 * second, or what is sure to be done within the limit when that is less. It depends on the limit
 * alone, not on the clock. */
long budget_work(const Budget *budget, long usual, double rate);

#endif
