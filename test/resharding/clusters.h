/* Clusters of the tests of this folder, and plans on them. */
#include "cluster/cluster.h"
#include "reshard/plan.h"

#define LINKS "\"links\": {\"local\": {\"latency\": 1e-6, \"bandwidth\": 1e11}, \"remote\": {\"latency\": 1e-5, \"bandwidth\": 1e9}}"

enum { ROWS = 96, COLUMNS = 1024, ELEMENT = 4 };

/* Files: two hosts of eight and of four devices of different classes; two hosts of eight equal devices. */
extern const char uneven[], even[];

/* Reads a file of this text; what is reported goes to *said, with the file's name as "F". */
const Cluster *read_said(Arena *arena, const char *text, const char **said);

/* Reads a file of this text, of which nothing is reported. */
const Cluster *read_well(Arena *arena, const char *text);

const Layout *parsed(Arena *arena, const char *text);

/* Returns the plan that brings a tensor of ROWS x COLUMNS elements from one layout to another. */
const Plan *planned(Arena *arena, const Cluster *cluster, const char *from, const char *to);
