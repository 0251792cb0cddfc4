/* Enumerates stages, dp, tp, ZeRO and rows of micro-batches; keeps the strategies that are best by
 * closed form. space.c lists the degrees, layers_on_stages.c chooses recomputation and layers.
 * search.c simulates what is kept, and evaluated.c (best_of) takes the winner. */
#include "planner/search/enumerate.h"

#include "planner/search/layers_on_stages.h"
#include "planner/search/devices.h"
#include "planner/search/evaluate.h"
#include "planner/search/layer_costs.h"
#include "planner/search/search_model.h"
#include "planner/search/space.h"

#include <stdlib.h>

enum {
    SAME_SHAPE = 3, // the most strategies of one shape that are kept
    ALONE = 2       // the most strategies of one class alone that come before all others
};

/* Compares choices: those that fit come first, sorted by seconds; others follow, sorted by need. */
static int compare(const void *a, const void *b) {
    const Choice *first = *(const Choice *const *)a, *second = *(const Choice *const *)b;
    bool fits = first->need <= 1, other = second->need <= 1;
    if (fits != other) return fits ? -1 : 1;
    double x = fits ? first->seconds : first->need, y = fits ? second->seconds : second->need;
    return x < y ? -1 : x > y ? 1 : first < second ? -1 : first > second;
}

static void add_single(Arena *arena, Profile *profile, const Correction *correction,
                       ChoiceList *list) {
    ArrangementList shapes = shapes_all(arena, profile);
    RowList rows = rows_all(arena, profile, profile->context->model->batch);
    PipelinePlan plan;
    for (int i = 0; i < shapes.count; i++)
        for (int r = 0; r < rows.count; r++)
            for (int zero = 0; zero <= (profile->context->model->trains ? 3 : 0); zero++) {
                Choice choice = {.shape = shapes.at[i],
                                 .shape_number = i,
                                 .zero = zero,
                                 .rows = rows.at[r],
                                 .batch = profile->context->model->batch};
                if (choice_plan(profile, correction, &choice, &plan))
                    array_push(arena, list, choice);
            }
}

static Candidate candidate_of(Arena *arena, Profile *profile, const Correction *correction,
                              Choice *choice) {
    PipelinePlan plan;
    if (choice->other) return *choice->other;
    choice_plan(profile, correction, choice, &plan);
    Candidate candidate = {.splits = profile->splits,
                           .zero = choice->zero,
                           .pipeline_count = 1,
                           .pipelines = arena_new(arena, SearchPipeline),
                           .seconds = choice->seconds,
                           .need = choice->need};
    candidate.pipelines[0] = plan_pipeline(arena, &plan, choice->rows);
    return candidate;
}

/* Returns the only group whose devices a choice uses; -1: the choice uses several groups, or is not
 * a single pipeline. */
static int lone_group(const Profile *profile, const Choice *choice) {
    int lone = -1, groups = profile->context->devices->group_count;
    if (choice->other || choice->shape.used[groups < GROUPS_MOST ? groups : GROUPS_MOST]) return -1;
    for (int i = 0; i < choice->shape.count; i++) {
        if (!choice->shape.used[choice->shape.order[i]]) continue;
        if (lone >= 0) return -1;
        lone = choice->shape.order[i];
    }
    return lone;
}

/* Returns the first ALONE fitting candidates of each class alone; none if there is one class. */
static CandidateList candidates_alone(Arena *arena, Profile *profile, const Correction *correction,
                                      Choice *const *sorted, int count) {
    CandidateList best = {0};
    for (int group = 0; group < profile->context->devices->group_count &&
                        profile->context->devices->group_count > 1;
         group++)
        for (int i = 0, found = 0; i < count && found < ALONE && sorted[i]->need <= 1; i++)
            if (lone_group(profile, sorted[i]) == group) {
                Candidate candidate = candidate_of(arena, profile, correction, sorted[i]);
                array_push(arena, &best, candidate);
                found++;
            }
    return best;
}

CandidateList enumerate(Arena *arena, Profile *profile, const Correction *correction, int most) {
    Arena *scratch = arena_create();
    ChoiceList list = {0};
    add_single(scratch, profile, correction, &list);
    heterogeneous_add(scratch, profile, correction, &list);
    Choice **sorted = arena_array(scratch, Choice *, list.count + 1);
    int *taken = arena_array(scratch, int, list.count + 1);
    for (int i = 0; i < list.count; i++) sorted[i] = &list.at[i];
    qsort(sorted, (size_t)list.count, sizeof *sorted, compare);
    CandidateList best = candidates_alone(arena, profile, correction, sorted, list.count);
    for (int i = 0; i < list.count && best.count < most; i++) {
        if (!sorted[i]->other && taken[sorted[i]->shape_number]++ >= SAME_SHAPE) continue;
        Candidate candidate = candidate_of(scratch, profile, correction, sorted[i]);
        array_push(arena, &best, candidate_copy(arena, &candidate));
    }
    arena_destroy(scratch);
    return best;
}

/* ---- candidates that need little memory ---- */

static int compare_needs(const void *a, const void *b) {
    const Candidate *first = *(const Candidate *const *)a, *second = *(const Candidate *const *)b;
    double x = first->need, y = second->need;
    return x < y ? -1 : x > y ? 1 : first < second ? -1 : first > second;
}

void candidates_sort_by_need(Arena *arena, CandidateList *list) {
    const Candidate **sorted = arena_array(arena, const Candidate *, list->count + 1);
    Candidate *copies = arena_array(arena, Candidate, list->count + 1);
    for (int i = 0; i < list->count; i++) sorted[i] = &list->at[i];
    qsort(sorted, (size_t)list->count, sizeof *sorted, compare_needs);
    for (int i = 0; i < list->count; i++) copies[i] = *sorted[i];
    for (int i = 0; i < list->count; i++) list->at[i] = copies[i];
}

/* Adds the pipeline of a choice once for each way to recompute that the profile allows. */
static void add_modes(Arena *arena, Profile *profile, const Correction *correction, Choice *choice,
                      CandidateList *list) {
    PipelinePlan plan;
    Candidate candidate = {.splits = profile->splits, .zero = choice->zero, .pipeline_count = 1};
    choice_plan(profile, correction, choice, &plan);
    for (int mode = 0; mode < RECOMPUTES; mode++) {
        for (int s = 0; s < plan.stage_count; s++) plan.stages[s].stage.recompute = (Recompute)mode;
        pipeline_estimate(profile, correction, &plan, &candidate.seconds, &candidate.need);
        if (!profile_allows(profile, (Recompute)mode)) continue;
        candidate.pipelines = arena_new(arena, SearchPipeline);
        candidate.pipelines[0] = plan_pipeline(arena, &plan, choice->rows);
        array_push(arena, list, candidate);
    }
}

CandidateList enumerate_small(Arena *arena, Profile *profile, const Correction *correction,
                              double least) {
    ChoiceList choices = {0};
    CandidateList list = {0};
    add_single(arena, profile, correction, &choices);
    for (int i = 0; i < choices.count; i++)
        add_modes(arena, profile, correction, &choices.at[i], &list);
    int kept = 0;
    for (int i = 0; i < list.count; i++)
        if (list.at[i].need < least) list.at[kept++] = list.at[i];
    list.count = kept;
    return list;
}
