#include "planner/kinds/budget.h"

#include <math.h>

Budget budget_begin(double limit) {
    Budget budget = {.limit = limit, .effort = 1};
    clock_gettime(CLOCK_MONOTONIC, &budget.begin);
    return budget;
}

double budget_left(const Budget *budget) {
    struct timespec now;
    if (isinf(budget->limit)) return INFINITY;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return budget->limit - (double)(now.tv_sec - budget->begin.tv_sec) -
           (double)(now.tv_nsec - budget->begin.tv_nsec) * 1e-9;
}

long budget_work(const Budget *budget, long usual, double rate) {
    double work = (double)usual * budget->effort;
    return (long)(work <= budget->limit * rate ? work : budget->limit * rate);
}
