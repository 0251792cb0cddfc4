/* The strategies of the space that are one pipeline, by a few numbers, and their plans. */
#ifndef PLANNER_SEARCH_SPACE_H
#define PLANNER_SEARCH_SPACE_H

#include "planner/search/closed_form.h"

enum { GROUPS_MOST = 4 }; // classes that work together

/* Of each group of devices so many, in so many equal stages of so much tensor parallelism. */
typedef struct Arrangement {
    int used[GROUPS_MOST + 1], stages[GROUPS_MOST + 1], tensor[GROUPS_MOST + 1]; // by group
    int count, order[GROUPS_MOST]; // the groups along the pipeline
} Arrangement;

typedef struct Choice {
    Arrangement shape;
    int shape_number, zero;
    int64_t rows, batch; // of a micro-batch, 0 as a whole; that the pipeline has
    double seconds, need;
    const Candidate *other; // a strategy that is no single pipeline; NULL
} Choice;

typedef Array(Arrangement) ArrangementList;
typedef Array(int64_t) RowList;

/* Returns all shapes. */
ArrangementList shapes_all(Arena *arena, const Profile *profile);

/* Returns those of all devices of one class. */
ArrangementList shapes_of_group(Arena *arena, const Profile *profile, int group);

/* Returns the rows of micro-batches of which `batch` rows are made. */
RowList rows_all(Arena *arena, const Profile *profile, int64_t batch);

/* The pipeline of a choice, filled with layers; sets its seconds and need. False: it is none. */
bool choice_plan(Profile *profile, const Correction *correction, Choice *choice,
                 PipelinePlan *plan);

/* Sets the seconds and the need of a candidate by closed form, under the names that the profile is
 * of. False, and both 0: it is no single pipeline of equal devices. */
bool candidate_estimate(Profile *profile, const Correction *correction, Candidate *candidate);

/* As a part of a candidate. */
SearchPipeline plan_pipeline(Arena *arena, const PipelinePlan *plan, int64_t rows);

/* Returns the rows that a device has along a dp axis of so many. */
double device_rows(const SearchModel *model, int64_t rows, int data);

#endif
