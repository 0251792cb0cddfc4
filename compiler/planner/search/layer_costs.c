/* Profiles layers by probes: which degrees and rows are probed, and the largest tp. probe.c has the
 * costs of one probe. */
#include "planner/search/layer_costs.h"
#include "planner/search/devices.h"
#include "planner/search/evaluate.h"
#include "planner/search/search_model.h"
#include "planner/search/probe.h"

#include <math.h>
#include <string.h>

enum { TENSORS_MOST = 12 };

typedef struct Grid {
    int tensor_count, row_count, most;
    int tensors[TENSORS_MOST]; // probed degrees of tensor parallelism, ascending
    int64_t rows[2];           // probed rows of a micro-batch, ascending
    Probe at[TENSORS_MOST][2];
} Grid;

/* ---- running probes ---- */

int probe_rows(const SearchModel *model, int64_t rows[2]) {
    int64_t least = model->batch;
    if (!model->trains || !model->batch) return 0;
    for (int64_t r = model->batch; r >= 1; r--)
        if (model->batch % r == 0 && r % model->unit == 0) least = r;
    rows[0] = rows[1] = least;
    for (int64_t r = model->batch; r >= 4 * least; r--)
        if (model->batch % r == 0 && r % model->unit == 0) rows[1] = r;
    if (rows[1] == least) rows[1] = model->batch;
    return rows[1] > rows[0] ? 2 : 1;
}

const char *probe_text(Arena *arena, const EvaluationContext *context, const SplitList *splits,
                       const ProbeShape *shape) {
    Text text = {.arena = arena};
    SearchStage stage = {.device_count = shape->tensor,
                         .devices = context->devices->groups[shape->group].devices,
                         .data = 1,
                         .tensor = shape->tensor,
                         .end = context->model->layer_count,
                         .recompute = shape->recompute};
    SearchPipeline pipeline = {.microbatches =
                                   shape->rows ? context->model->batch / shape->rows : 1,
                               .rows = shape->rows,
                               .stage_count = 1,
                               .stages = &stage};
    Candidate candidate = {
        .splits = splits, .zero = shape->zero, .pipeline_count = 1, .pipelines = &pipeline};
    candidate_print(&text, &candidate, context, 0, "probe");
    return text_bytes(&text);
}

/* Chooses the degrees of tensor parallelism to probe: powers of two, and as the highest the devices
 * of a host; if `wide` (or hosts have one device), of the group, up to WIDEST (LONE_HOSTS). */
static void choose_tensors(const DeviceGroup *group, const SplitList *splits, bool wide,
                           Grid *grid) {
    enum { LONE_HOSTS = 8, WIDEST = 64 };
    int bound = wide ? WIDEST : LONE_HOSTS, most = group->count < bound ? group->count : bound;
    most = group->host_most > 1 && (!wide || group->host_most > most) ? group->host_most : most;
    grid->most = splits->count ? most : 1;
    for (int t = 1; t < grid->most && grid->tensor_count < TENSORS_MOST - 1; t *= 2)
        grid->tensors[grid->tensor_count++] = t;
    grid->tensors[grid->tensor_count++] = grid->most;
}

typedef Array(const char *) TextList;

static void add_grid(const Profile *profile, const SplitList *splits, int group, TextList *texts) {
    const Grid *grid = &profile->grids[group];
    for (int t = 0; t < grid->tensor_count; t++)
        for (int r = 0; r < (grid->row_count ? grid->row_count : 1); r++)
            array_push(profile->arena, texts,
                       probe_text(profile->arena, profile->context, splits,
                                  &(ProbeShape){.group = group,
                                                .tensor = grid->tensors[t],
                                                .rows = grid->row_count ? grid->rows[r] : 0}));
}

/* Drops the degrees for which a probe failed. */
static void keep_good(Grid *grid) {
    int kept = 0;
    for (int t = 0; t < grid->tensor_count; t++) {
        if (!grid->at[t][0].good || (grid->row_count > 1 && !grid->at[t][1].good)) continue;
        grid->tensors[kept] = grid->tensors[t];
        memcpy(grid->at[kept++], grid->at[t], sizeof grid->at[t]);
    }
    grid->tensor_count = kept;
    grid->most = kept ? grid->tensors[kept - 1] : 0;
}

/* Returns how many groups are probed: one for each class. If there are several classes, all devices
 * are one more group when `wide` allows cuts across classes, or when no class has two devices. */
static int probed_groups(const Fleet *fleet, bool wide) {
    bool several = false;
    for (int g = 0; g < fleet->group_count; g++) several |= fleet->groups[g].count > 1;
    return fleet->group_count + (fleet->group_count > 1 && (wide || !several));
}

/* Probes all degrees of all groups with each of `row_count` numbers of rows. Returns whether the
 * probes on one device succeeded for each group. */
static bool probe_grids(Profile *profile, const SplitList *splits, bool wide, int row_count,
                        const int64_t *rows) {
    const Fleet *fleet = profile->context->devices;
    const int groups = probed_groups(fleet, wide);
    TextList texts = {0};
    bool good = true;
    profile->grids = arena_array(profile->arena, Grid, fleet->group_count + 1);
    for (int g = 0; g < groups; g++) {
        Grid *grid = &profile->grids[g];
        grid->row_count = row_count;
        memcpy(grid->rows, rows, sizeof grid->rows);
        choose_tensors(&fleet->groups[g], splits, wide, grid);
        add_grid(profile, splits, g, &texts);
    }
    Probe *probes = arena_array(profile->arena, Probe, texts.count + 1), *next = probes;
    probes_run(profile->arena, profile->context, texts.at, texts.count, probes);
    for (int g = 0; g < groups; g++) {
        Grid *grid = &profile->grids[g];
        for (int t = 0; t < grid->tensor_count; t++)
            for (int r = 0; r < (row_count ? row_count : 1); r++) grid->at[t][r] = *next++;
        keep_good(grid);
        good = good && grid->tensor_count && grid->tensors[0] == 1;
    }
    if (groups == fleet->group_count)
        profile->grids[fleet->group_count] = profile->grids[fleet->slowest];
    return good;
}

/* Probes each way to recompute, with the degree and rows of an existing probe. */
static void probe_modes(Profile *profile, const SplitList *splits) {
    const Grid *grid = &profile->grids[0];
    int t = grid->tensor_count > 1 ? 1 : 0, r = grid->row_count > 1 ? 1 : 0;
    Probe *probes = arena_array(profile->arena, Probe, RECOMPUTES);
    const char *texts[RECOMPUTES];
    for (int mode = 1; mode < RECOMPUTES; mode++)
        texts[mode] = probe_text(profile->arena, profile->context, splits,
                                 &(ProbeShape){.tensor = grid->tensors[t],
                                               .rows = grid->row_count ? grid->rows[r] : 0,
                                               .recompute = (Recompute)mode});
    probes_run(profile->arena, profile->context, texts + 1, RECOMPUTES - 1, probes + 1);
    profile->plain = profile->modes[RECOMPUTE_NONE] = &grid->at[t][r];
    for (int mode = 1; mode < RECOMPUTES; mode++)
        profile->modes[mode] = probes[mode].good ? &probes[mode] : NULL;
}

/* Reports why probes failed: hetucc's errors, or a rate that the cluster lacks. Returns false. */
static bool report_failure(const EvaluationContext *context, const SplitList *splits) {
    int before = diag_errors(context->diag);
    for (int g = 0; g < context->devices->group_count && diag_errors(context->diag) == before;
         g++) {
        const char *text =
            probe_text(context->arena, context, splits, &(ProbeShape){.group = g, .tensor = 1});
        const Verdict *verdict = verdicts_find(context->arena, context, &text, 1, true);
        if (!verdict->good) evaluation_compile(context, text, true);
        else if (*verdict->unknown)
            diag_error(context->diag, (Position){0}, "%s", verdict->unknown);
    }
    if (diag_errors(context->diag) == before)
        BUG("no probe of %s could be taken, and nothing says why", context->model->module->name);
    return false;
}

bool profile_run(Arena *arena, const EvaluationContext *context, const SplitList *splits, bool wide,
                 Profile *profile) {
    int64_t rows[2] = {0, 0};
    int row_count = probe_rows(context->model, rows);
    *profile = (Profile){
        .arena = arena, .context = context, .splits = splits, .cuts = row_count > 0, .wide = wide};
    if (row_count && !probe_grids(profile, splits, wide, row_count, rows)) {
        row_count = 0;
        profile->cuts = false;
    }
    if (!row_count &&
        !probe_grids(profile, splits, wide, 0, (const int64_t[2]){context->model->batch, 0}))
        return report_failure(context, splits);
    probe_modes(profile, splits);
    return true;
}

bool profile_allows(const Profile *profile, Recompute recompute) {
    return recompute == RECOMPUTE_NONE ||
           (profile->context->model->trains && profile->modes[recompute]);
}

int profile_most_tensor(const Profile *profile, int group) { return profile->grids[group].most; }

/* ---- interpolating between probes ---- */

/* Interpolates the costs of two slots linearly: a at share 0, b at share 1; at least 0. */
static SlotCost mix(const SlotCost *a, const SlotCost *b, double share) {
    SlotCost result;
    const double *from = (const double *)a, *to = (const double *)b;
    double *at = (double *)&result;
    for (size_t i = 0; i < sizeof result / sizeof *at; i++)
        at[i] = fmax(from[i] + (to[i] - from[i]) * share, 0);
    return result;
}

/* Returns a slot's costs for `rows` rows at degree grid->tensors[t]. If only one number of rows was
 * probed, the costs of a micro-batch are proportional to its rows. */
static SlotCost at_rows(const Grid *grid, int t, int slot, double rows) {
    const SlotCost *first = &grid->at[t][0].slots[slot];
    if (grid->row_count > 1)
        return mix(first, &grid->at[t][1].slots[slot],
                   (rows - (double)grid->rows[0]) / (double)(grid->rows[1] - grid->rows[0]));
    SlotCost cost = *first;
    double factor = grid->rows[0] > 0 ? rows / (double)grid->rows[0] : 1;
    cost.seconds *= factor;
    cost.kept *= factor;
    cost.work *= factor;
    cost.crossing *= factor;
    return cost;
}

static SlotCost at_tensor(const Grid *grid, double tensor, int slot, double rows) {
    int t = 0;
    while (t + 2 < grid->tensor_count && grid->tensors[t + 1] < tensor) t++;
    SlotCost low = at_rows(grid, t, slot, rows);
    if (grid->tensor_count == 1) return low;
    SlotCost high = at_rows(grid, t + 1, slot, rows);
    double a = 1.0 / grid->tensors[t], b = 1.0 / grid->tensors[t + 1];
    return mix(&low, &high, (a - 1 / tensor) / (a - b));
}

static double ratio(double changed, double plain) { return plain > 0 ? changed / plain : 1; }

/* Returns the grid of the group, or else of another group, that has several degrees; NULL: none. */
static const Grid *degrees_of(const Profile *profile, int group) {
    const Grid *found = profile->grids[group].tensor_count > 1 ? &profile->grids[group] : NULL;
    for (int g = 0; g < profile->context->devices->group_count && !found; g++)
        found = profile->grids[g].tensor_count > 1 ? &profile->grids[g] : NULL;
    return found;
}

/* Returns a slot's costs on a device of a group at any degree. If the group was probed at one
 * degree only, its costs are scaled like another group's costs from degree 1 to this degree. */
static SlotCost at_degree(const Profile *profile, int group, double tensor, int slot, double rows) {
    const Grid *grid = &profile->grids[group], *degrees = degrees_of(profile, group);
    if (!degrees || degrees == grid) return at_tensor(grid, tensor, slot, rows);
    SlotCost cost = at_tensor(grid, 1, slot, rows), whole = at_tensor(degrees, 1, slot, rows),
             cut = at_tensor(degrees, tensor, slot, rows);
    double *at = (double *)&cost;
    const double *from = (const double *)&whole, *to = (const double *)&cut;
    for (size_t i = 0; i < sizeof cost / sizeof *at; i++) at[i] *= ratio(to[i], from[i]);
    return cost;
}

/* Returns a slot's costs with recomputation, scaled like the costs of the probed slot. */
static SlotCost recomputed(const Profile *profile, const SlotCost *plain, Recompute recompute,
                           int slot) {
    SlotCost cost = *plain;
    const Probe *probe = profile->modes[recompute];
    if (recompute == RECOMPUTE_NONE || !probe) return cost;
    const SlotCost *before = &profile->plain->slots[slot], *after = &probe->slots[slot];
    cost.seconds *= ratio(after->seconds, before->seconds);
    cost.work = fmax(0, cost.work + (after->work - before->work) *
                                        ratio(cost.kept + cost.work, before->kept + before->work));
    cost.kept *= ratio(after->kept, before->kept);
    return cost;
}

const Costs *profile_costs(Profile *profile, int group, double tensor, double rows) {
    const Grid *grid = &profile->grids[group];
    int slots = profile->context->model->layer_count + 2;
    for (int i = 0; i < profile->known.count; i++) {
        const Costs *known = profile->known.at[i];
        if (known->group == group && known->tensor == tensor && known->rows == rows) return known;
    }
    Costs *costs = arena_new(profile->arena, Costs);
    *costs =
        (Costs){.group = group, .tensor = tensor, .rows = rows, .inputs = grid->at[0][0].inputs};
    for (int mode = 0; mode < RECOMPUTES; mode++)
        costs->slots[mode] = arena_array(profile->arena, SlotCost, slots);
    for (int slot = 0; slot < slots; slot++) {
        SlotCost plain = at_degree(profile, group, tensor, slot, rows),
                 whole = at_tensor(grid, 1, slot, rows);
        plain.cut_parameters = whole.parameters / tensor;
        plain.cut_states = whole.states / tensor;
        plain.cut_gradients = whole.gradients / tensor;
        for (int mode = 0; mode < RECOMPUTES; mode++)
            costs->slots[mode][slot] = recomputed(profile, &plain, (Recompute)mode, slot);
    }
    array_push(profile->arena, &profile->known, costs);
    return costs;
}
