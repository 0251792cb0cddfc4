/* hetu-reshard: plans one conversion between layouts, shows the plan, and runs it. */
#ifndef HETU_RESHARD_CASE_H
#define HETU_RESHARD_CASE_H

#include "layout/cluster.h"
#include "layout/plan.h"

#include <hetu/reshard.h>

#include <stdio.h>

/* 'f32[8,12]: SOURCE -> TARGET', read and planned. */
typedef struct Case {
    const char *text;
    ht_dtype dtype;
    Shape shape;
    const Layout *from, *to;
    const Plan *plan;
} Case;

/* Reads and checks a case, whose text begins at `at`; NULL after an error was reported. */
Case *case_read(Arena *arena, Diag *diag, Position at, const char *text);

/* Plans it for a cluster; NULL: one host with equal links. */
void case_plan(Arena *arena, Case *conversion, const Cluster *cluster);

/* Bytes of an element. */
int case_element(const Case *conversion);

/* Shows the plan: a table, or JSON. */
void report_table(FILE *out, const Case *conversion);
void report_json(FILE *out, const Case *conversion);

/* The ranks that MPI launched, and this one. */
void run_open(int *argc, char ***argv, int *rank, int *ranks);
void run_close(void);

/* Runs the case as test/conformance/check_reshard.py says: what the device holds is read from `fill`, what it then holds is written to `dump`, and rank 0 writes
 * the traffic there. Ends the program with a message when a file cannot be read or written. */
void run_case(const Case *conversion, int rank, const char *fill, const char *dump);

#endif
