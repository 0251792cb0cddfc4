/* Cases of hetu-reshard, which plans conversions between layouts, shows the plan, and runs it.
 *
 *     f32[8,12]: [0-3]{0:4} -> [0-3]{1:4}      an all-to-all of four devices
 */
#ifndef HETU_RESHARD_CASE_H
#define HETU_RESHARD_CASE_H

#include "cluster/cluster.h"
#include "reshard/plan.h"

#include <hetu/reshard.h>

#include <stdio.h>

/* A conversion 'f32[8,12]: SOURCE -> TARGET'; `text` is its source. */
typedef struct Case {
    const char *text;
    ht_dtype dtype;
    Shape shape;
    const Layout *from, *to;
    Position from_at, to_at; // where the layouts begin
} Case;

/* Cases that one plan converts together; `label` names the cases in messages. */
typedef struct Set {
    int count;
    Case *const *cases;
    const char *label;
    const Plan *plan;
} Set;

/* Reads and checks a case, whose text begins at `at`; NULL after an error was reported. */
Case *case_read(Arena *arena, Diag *diag, Position at, const char *text);

/* Returns whether the cluster lists all devices of a case; reports the devices that are missing. */
bool case_on_cluster(Diag *diag, const Case *conversion, const Cluster *cluster);

/* Returns whether a case can be planned; reports the reason when not. */
bool case_plannable(Diag *diag, const Case *conversion);

/* Returns the size of the tensor's elements in bytes. */
int case_element(const Case *conversion);

/* Plans the conversion of cases on a cluster; `cluster` NULL: one host with equal links. */
Set set_plan(Arena *arena, Case *const *cases, int count, const Cluster *cluster);

/* Print the plan: as a table, or as JSON. */
void report_table(FILE *out, const Set *set);
void report_json(FILE *out, const Set *set);

/* run_open connects the launched ranks and sets the rank of this process and the number of ranks;
 * run_close disconnects the ranks. */
void run_open(int *argc, char ***argv, int *rank, int *ranks);
void run_close(void);

/* Sets the number of kernel threads of this rank as in a program (for hetu-profile). */
void run_threads(void);

/* The folders of a case's input values (--fill) and output values (--dump). */
typedef struct Folders {
    const char *fill, *dump;
} Folders;

/* Runs cases for test/conformance/check_reshard.py. Reads this device's piece of each source from
 * the case's folder `fill` and writes its result to `dump`; rank 0 writes the traffic of all ranks
 * to `folder`. Ends the program with a message when a file cannot be read or written. */
void run_set(const Set *set, int rank, const Folders *folders, const char *folder);

#endif
