/* Changes rows, layers, recomputation and ZeRO of a strategy by one step. */
#include "planner/search/neighbours.h"

#include "planner/search/evaluated.h"
#include "planner/search/space.h"

void add_changed(Search *search, CandidateList *list, const Candidate *changed) {
    Candidate copy = candidate_copy(search->arena, changed);
    int variant = variant_of(search, changed->splits);
    copy.seconds = copy.need = 0;
    if (variant >= 0)
        candidate_estimate(&search->profiles[variant], &search->corrections[variant], &copy);
    array_push(search->arena, list, copy);
}

void change_rows(Search *search, CandidateList *list, const Candidate *candidate) {
    for (int up = 0; up < 2 && candidate->pipeline_count == 1 && candidate->pipelines[0].rows;
         up++) {
        Candidate changed = candidate_copy(search->arena, candidate);
        SearchPipeline *pipeline = &changed.pipelines[0];
        int64_t rows = pipeline->rows;
        do rows += up ? search->model.unit : -search->model.unit;
        while (rows > 0 && rows <= search->model.batch && search->model.batch % rows);
        if (rows <= 0 || rows > search->model.batch || !search->profiles[0].cuts) continue;
        pipeline->rows = rows;
        pipeline->microbatches = search->model.batch / rows;
        add_changed(search, list, &changed);
    }
}

void change_layers(Search *search, CandidateList *list, const Candidate *candidate) {
    for (int s = 0; s + 1 < candidate->pipelines[0].stage_count; s++)
        for (int way = -1; way <= 1; way += 2) {
            Candidate changed = candidate_copy(search->arena, candidate);
            SearchStage *stage = &changed.pipelines[0].stages[s];
            stage[0].end += way;
            stage[1].first += way;
            if (stage[0].end > stage[0].first && stage[1].end > stage[1].first)
                add_changed(search, list, &changed);
        }
}

/* Returns whether the stages replicate anything that ZeRO could divide. */
static bool has_copies(const Candidate *candidate) {
    for (int p = 0; p < candidate->pipeline_count; p++)
        for (int s = 0; s < candidate->pipelines[p].stage_count; s++)
            if (candidate->pipelines[p].stages[s].device_count > 1) return true;
    return candidate->pipeline_count > 1;
}

void change_modes(Search *search, CandidateList *list, const Candidate *candidate) {
    int levels = search->model.trains && has_copies(candidate) ? 3 : 0;
    for (int mode = 0; mode < RECOMPUTES; mode++) {
        Candidate changed = candidate_copy(search->arena, candidate);
        for (int p = 0; p < changed.pipeline_count; p++)
            for (int s = 0; s < changed.pipelines[p].stage_count; s++)
                changed.pipelines[p].stages[s].recompute = (Recompute)mode;
        if (profile_allows(&search->profiles[0], (Recompute)mode))
            add_changed(search, list, &changed);
    }
    for (int zero = 0; zero <= levels; zero++) {
        Candidate changed = candidate_copy(search->arena, candidate);
        changed.zero = zero;
        add_changed(search, list, &changed);
    }
}
