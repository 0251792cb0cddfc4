/* hetucc --plan: a strategy is found, and written instead of a program. */
#ifndef DRIVER_PLAN_OPTION_H
#define DRIVER_PLAN_OPTION_H

#include "driver/compile.h"

/* Plans the model of the sources for the cluster, writes the strategy to the file that -o names (or
 * one named like the source), and prints why this one. The exit status. */
int plan_make(Driver *driver);

#endif
