#include "planner/search/optimistic_bound.h"

#include "planner/search/space.h"

#include <math.h>

/* How all stages recompute; RECOMPUTES: not all alike. */
static int mode_of(const Candidate *candidate) {
    const SearchPipeline *pipeline = &candidate->pipelines[0];
    for (int s = 1; s < pipeline->stage_count; s++)
        if (pipeline->stages[s].recompute != pipeline->stages[0].recompute) return RECOMPUTES;
    return (int)pipeline->stages[0].recompute;
}

static int kind_of(const Candidate *candidate) {
    bool single = candidate->pipelines[0].microbatches == 1;
    return ((single ? 4 : 0) + candidate->zero) * (RECOMPUTES + 1) + mode_of(candidate);
}

OptimisticBound optimistic_bound_learn(Search *search) {
    const Correction none = {1, 1};
    OptimisticBound hope = {.lowest = 1};
    for (int k = 0; k < KINDS; k++) hope.least[k] = INFINITY;
    for (int i = 0; i < search->tried.count; i++) {
        Candidate plain = search->tried.at[i]->candidate;
        int variant = variant_of(search, plain.splits);
        if (!search->tried.at[i]->good || variant < 0 ||
            !candidate_estimate(&search->profiles[variant], &none, &plain) || plain.need <= 0)
            continue;
        double ratio = real_need(search, search->tried.at[i]) / plain.need;
        hope.least[kind_of(&plain)] = fmin(hope.least[kind_of(&plain)], ratio);
        hope.lowest = fmin(hope.lowest, ratio);
    }
    return hope;
}

double optimistic_bound_of(const OptimisticBound *hope, const Candidate *candidate) {
    double least = hope->least[kind_of(candidate)];
    return candidate->need * (isinf(least) ? hope->lowest : least);
}
