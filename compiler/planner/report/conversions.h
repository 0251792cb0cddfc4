/* The conversions of a program: those of one source line, part and plan that differ in their scope
 * alone, as those of a loop over layers do, are one row. */
#ifndef PLANNER_REPORT_CONVERSIONS_H
#define PLANNER_REPORT_CONVERSIONS_H

#include "planner/report/simulation.h"

typedef struct ConversionRow {
    const Op *op;               // the first
    const Plan *plan;           // of one of them, by itself
    int64_t runs;               // of all of them in a step
    int64_t bytes;              // that all devices receive in a step
    int64_t received;           // that one device receives at most
    double seconds;             // of all runs
    Array(const char *) scopes; // by operator; NULL: none
} ConversionRow;

typedef struct ConversionRows {
    Array(ConversionRow) at; // in the program's order
} ConversionRows;

/* How often all pipelines together run an operator in a step. */
int64_t conversion_runs(const Module *module, const Op *op);

ConversionRows conversion_rows(Arena *arena, Simulation *simulation);

#endif
