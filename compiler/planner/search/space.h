/* The strategies of one pipeline in the search space. A choice describes a pipeline by a few
 * numbers; choice_plan fills it with layers.
 *
 *     used {16}, stages {2}, tensor {4}, zero 1, rows 4  ->  2 stages of dp 2 x tp 4
 */
#pragma once

#include "planner/search/candidate.h"
#include "support/array.h"

#include <stdbool.h>

typedef struct Correction Correction;
typedef struct PipelinePlan PipelinePlan;
typedef struct Profile Profile;
typedef struct SearchModel SearchModel;

enum { GROUPS_MOST = 4 }; // limit of the device classes of one strategy

/* By group: devices in use, equal stages that they form, and the degree of tensor parallelism. */
typedef struct Arrangement {
    int used[GROUPS_MOST + 1], stages[GROUPS_MOST + 1], tensor[GROUPS_MOST + 1]; // by group
    int count, order[GROUPS_MOST]; // number of groups; the groups in the order of the pipeline
} Arrangement;

typedef struct Choice {
    Arrangement shape;
    int shape_number, zero;
    int64_t rows, batch;  // rows of a micro-batch (0: the batch as a whole); rows of the batch that
                          // the pipeline gets
    double seconds, need; // as in Candidate
    const Candidate *other; // the candidate of heterogeneous.c; NULL: the choice is one pipeline
} Choice;

typedef Array(Arrangement) ArrangementList;
typedef Array(int64_t) RowList;

/* Returns all arrangements of the search space. */
ArrangementList shapes_all(Arena *arena, const Profile *profile);

/* Returns the arrangements of all devices of a class; group_count: of the group of all devices. */
ArrangementList shapes_of_group(Arena *arena, const Profile *profile, int group);

/* Returns the possible rows of a micro-batch when the batch has `batch` rows. */
RowList rows_all(Arena *arena, const Profile *profile, int64_t batch);

/* Sets *plan to the pipeline of a choice, filled with layers, and sets the choice's seconds and
 * need. Returns false when the devices, rows or layers do not suffice. */
bool choice_plan(Profile *profile, const Correction *correction, Choice *choice,
                 PipelinePlan *plan);

/* Sets the seconds and the need of a candidate by closed form, with the profile's list of cut
 * dimensions. Returns false, and sets both to 0, for several pipelines or weights. */
bool candidate_estimate(Profile *profile, const Correction *correction, Candidate *candidate);

/* Returns a pipeline plan as a candidate's pipeline, with `rows` rows in a micro-batch. */
SearchPipeline plan_pipeline(Arena *arena, const PipelinePlan *plan, int64_t rows);

/* Returns the most rows of a micro-batch that one of `data` positions of a dp axis has. */
double device_rows(const SearchModel *model, int64_t rows, int data);
