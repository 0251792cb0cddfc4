/* Tables by a number of devices: {"2": 119.5, "4": 104.1} in an input. */
#ifndef PLANNER_KINDS_DEGREES_H
#define PLANNER_KINDS_DEGREES_H

#include "planner/kinds/input.h"

/* Reads the entries, each above 0, into by_devices[0..most]; 0 where the table has none. A key that
 * is no number in 1..most is an error. */
void degrees_read(Field table, double *by_devices, int most);

/* An error at the table when there is no entry for so many devices. */
void degrees_need(Field table, const double *by_devices, int devices);

#endif
