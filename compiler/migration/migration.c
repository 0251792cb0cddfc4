/* Decides which parameters and states move at a switch of strategies, and in which batches, so that
 * memory stays low. reshard/copy/senders.c decides who sends; session/core/program.c moves them. */
#include "migration/migration.h"

#include "ir/programs/regions.h"
#include "reshard/plan.h"
#include "support/intern.h"

#include <string.h>

/* ---- shapes that are factored differently ---- */

/* A position in a shape, and the product of extents since both shapes last ended a dimension. */
typedef struct Walk {
    Shape shape;
    int *of, at; // by dimension: the shared shape's dimension that contains it; the position
    int64_t product;
} Walk;

static void step(Walk *walk, int dim) {
    walk->product *= walk->shape.extent[walk->at];
    walk->of[walk->at++] = dim;
}

static bool ended(const Walk *walk) { return walk->at == walk->shape.rank; }

/* Steps over extents of 1, which fit any dimension, into dimension `dim` of the shared shape. */
static void take_ones(Walk *walk, int dim) {
    while (!ended(walk) && walk->shape.extent[walk->at] == 1) step(walk, dim);
}

/* Returns the finest shape of which both shapes of a tensor are views; two modules may have
 * factored its dimensions differently. Sets of_a[d] and of_b[d] to the dimension of the result that
 * contains dimension d of `a` and of `b`. No extent may be 0.
 *
 *     [8, 6] and [4, 2, 6]   ->   [8, 6]
 *     [6, 4] and [2, 12]     ->   [24]
 */
static Shape shape_shared(Arena *arena, Shape a, Shape b, int *of_a, int *of_b) {
    int64_t *extent = arena_array(arena, int64_t, a.rank + b.rank + 1);
    Walk left = {a, of_a, 0, 1}, right = {b, of_b, 0, 1};
    int rank = 0;
    // a dimension ends where the products of both sides are equal
    while (!ended(&left) || !ended(&right)) {
        left.product = right.product = 1;
        do
            step((left.product <= right.product && !ended(&left)) || ended(&right) ? &left : &right,
                 rank);
        while (left.product != right.product ||
               (left.product == 1 && !(ended(&left) && ended(&right))));
        take_ones(&left, rank);
        take_ones(&right, rank);
        extent[rank++] = left.product;
    }
    return (Shape){rank, extent};
}

/* Returns `layout` for a coarser shape, whose dimension of[d] contains dimension d of `fine`. */
static const Layout *layout_coarse(Arena *arena, const Layout *layout, Shape fine, const int *of) {
    Layout *coarse = arena_copy(arena, layout, sizeof *layout);
    Shape view = layout_view(layout, fine);
    int *dim = arena_array(arena, int, view.rank + 1);
    for (int d = 0; d < view.rank; d++) dim[d] = of[layout->view_rank ? layout->view_dim[d] : d];
    coarse->view_rank = view.rank;
    coarse->view = view.extent;
    coarse->view_dim = dim;
    return coarse;
}

/* ---- tensors that move ---- */

/* A parameter or state under the two strategies. */
typedef struct Moving {
    MigratedTensor slots;
    const Value *from, *to;
} Moving;

/* Tensors of one shape that are converted between the same two layouts. */
typedef struct MoveKind {
    Conversion conversion;
    const char *key; // text of the conversion; equal for equal conversions of all migrations
    Array(MigratedTensor) tensors;
    int taken;               // number of tensors, from the first on, that are in batches already
    int64_t *before, *after; // bytes of one tensor, by device
} MoveKind;

typedef struct TensorMove {
    Arena *arena, *scratch;
    Migrations *all;
    Intern *known; // from the text of a batch's conversions to 1 + the number of its plan
    Migration *migration;
    int device_count;
    Intern *by_key;
    Array(MoveKind) kinds;
    int64_t *level; // by device: bytes allocated minus bytes freed by the batches so far
    int64_t *fresh; // by device: bytes of new storage of the current batch
} TensorMove;

static int find_parameter(const Module *module, const char *name) {
    int p = 0;
    while (strcmp(module->params.at[p]->name, name)) p++;
    return p;
}

static int state_slot(const Module *module, int param, int state) {
    return module->params.count + param * module->optimizer->state_count + state;
}

/* Returns a tensor's conversion. The modules may have factored its dimensions differently; the
 * conversion has the finest shape of which both shapes are views. */
static Conversion conversion_of(Arena *arena, const Moving *moving) {
    Shape before = type_shape(moving->from->type), after = type_shape(moving->to->type);
    int *of_before = arena_array(arena, int, before.rank + 1),
        *of_after = arena_array(arena, int, after.rank + 1);
    Shape shape = shape_shared(arena, before, after, of_before, of_after);
    return (Conversion){shape, HT_F32,
                        layout_coarse(arena, moving->from->layout, before, of_before),
                        layout_coarse(arena, moving->to->layout, after, of_after)};
}

static const char *conversion_key(Arena *arena, const Conversion *conversion) {
    Text text = {.arena = arena};
    for (int d = 0; d < conversion->shape.rank; d++)
        text_print(&text, "%lld ", (long long)conversion->shape.extent[d]);
    layout_print(&text, conversion->from);
    text_string(&text, " -> ");
    layout_print(&text, conversion->to);
    return text_bytes(&text);
}

static int64_t *bytes_by_device(const TensorMove *move, Module *module, const Value *value) {
    int64_t *bytes = arena_array(move->scratch, int64_t, move->device_count);
    for (int device = 0; device < move->device_count; device++)
        bytes[device] = value_local_bytes(module, value, device);
    return bytes;
}

/* Adds a tensor to those with its conversion, unless it is empty or its layouts are equal. */
static void add_tensor(TensorMove *move, Moving moving) {
    Arena *arena = move->scratch;
    if (!type_elements(moving.from->type)) return;
    Conversion conversion = conversion_of(move->arena, &moving);
    const char *key = conversion_key(arena, &conversion);
    intptr_t *kind = intern_slot(move->by_key, key, strlen(key));
    if (!*kind) {
        bool alike = layout_equal(conversion.from, conversion.to, conversion.shape);
        array_push(arena, &move->kinds, (MoveKind){.conversion = conversion, .key = key});
        *kind = alike ? -1 : move->kinds.count;
        move->kinds.count -= alike;
        if (!alike) {
            MoveKind *own = &move->kinds.at[move->kinds.count - 1];
            own->before = bytes_by_device(move, move->migration->from, moving.from);
            own->after = bytes_by_device(move, move->migration->to, moving.to);
        }
    }
    if (*kind > 0) array_push(arena, &move->kinds.at[*kind - 1].tensors, moving.slots);
}

static void add_parameter(TensorMove *move, int to) {
    Module *before = move->migration->from, *after = move->migration->to;
    int from = find_parameter(before, after->params.at[to]->name);
    const Parameter *old = before->params.at[from], *new = after->params.at[to];
    add_tensor(move, (Moving){{from, to}, old->value, new->value});
    for (int s = 0; s < new->state_count; s++)
        add_tensor(move, (Moving){{state_slot(before, from, s), state_slot(after, to, s)},
                                  old->states[s],
                                  new->states[s]});
}

/* ---- one plan for equal batches ---- */

/* Returns the plan of a batch with these conversions, made once for each `key`. */
static const MigrationPlan *plan_for(TensorMove *move, const Conversion *conversions,
                                     const char *key, int count) {
    intptr_t *number = intern_slot(move->known, key, strlen(key));
    if (*number) return move->all->plans.at[*number - 1];
    const Cluster *cluster = move->migration->to->devices->target.cluster;
    MigrationPlan *made = arena_new(move->arena, MigrationPlan);
    made->number = move->all->plans.count;
    made->replica_groups = replica_groups_of(move->arena, cluster, NULL, conversions, count);
    made->plan = reshard_plan_messages(move->arena, cluster, made->replica_groups.first, count);
    array_push(move->arena, &move->all->plans, made);
    *number = move->all->plans.count;
    return made;
}

/* ---- filling batches ---- */

/* Returns the most bytes by which a device would exceed its storage before the migration, if the
 * current batch took one more tensor of a kind. */
static int64_t level_with(const TensorMove *move, const MoveKind *kind) {
    int64_t most = INT64_MIN;
    for (int d = 0; d < move->device_count; d++) {
        int64_t level = move->level[d] + move->fresh[d] + kind->after[d];
        most = level > most ? level : most;
    }
    return most;
}

static bool fits(const TensorMove *move, const MoveKind *kind) {
    for (int d = 0; d < move->device_count; d++)
        if (kind->after[d] && move->fresh[d] + kind->after[d] > MIGRATION_WINDOW) return false;
    return true;
}

/* Returns the kind whose next tensor gives the lowest peak over all devices; NULL if none is left
 * or fits into the batch. An empty batch (`first`) takes any tensor. */
static MoveKind *next_kind(TensorMove *move, bool first) {
    MoveKind *best = NULL;
    int64_t least = INT64_MAX;
    for (int k = 0; k < move->kinds.count; k++) {
        MoveKind *kind = &move->kinds.at[k];
        if (kind->taken == kind->tensors.count || (!first && !fits(move, kind))) continue;
        int64_t level = level_with(move, kind);
        if (level < least) {
            least = level;
            best = kind;
        }
    }
    return best;
}

/* Adds the current batch to the migration: the last counts[k] tensors taken of each kind k. */
static void close_window(TensorMove *move, const int *counts) {
    MigrationBatch window = {0};
    Array(Conversion) conversions = {0};
    Text key = {.arena = move->scratch};
    for (int k = 0; k < move->kinds.count; k++) {
        MoveKind *kind = &move->kinds.at[k];
        for (int i = 0; i < counts[k]; i++) {
            array_push(move->arena, &window.tensors, kind->tensors.at[kind->taken - counts[k] + i]);
            array_push(move->arena, &conversions, kind->conversion);
        }
        if (counts[k]) text_print(&key, "%d * %s\n", counts[k], kind->key);
        for (int d = 0; d < move->device_count; d++)
            move->level[d] += counts[k] * (kind->after[d] - kind->before[d]);
    }
    for (int d = 0; d < move->device_count; d++)
        window.fresh = move->fresh[d] > window.fresh ? move->fresh[d] : window.fresh;
    window.plan = plan_for(move, conversions.at, text_bytes(&key), conversions.count);
    array_push(move->arena, &move->migration->windows, window);
}

/* Fills a batch with tensors and adds it to the migration. Returns false if no tensor is left. */
static bool add_window(TensorMove *move) {
    int *counts = arena_array(move->scratch, int, move->kinds.count + 1);
    bool filled = false;
    memset(move->fresh, 0, sizeof *move->fresh * (size_t)move->device_count);
    for (MoveKind *kind; (kind = next_kind(move, !filled)); filled = true) {
        kind->taken++;
        counts[kind - move->kinds.at]++;
        for (int d = 0; d < move->device_count; d++) move->fresh[d] += kind->after[d];
    }
    if (filled) close_window(move, counts);
    return filled;
}

static void plan_migration(TensorMove *move, Module *from, Module *to) {
    move->scratch = arena_create();
    move->migration = arena_new(move->arena, Migration);
    *move->migration = (Migration){.from = from, .to = to};
    move->by_key = intern_create(move->scratch);
    memset(&move->kinds, 0, sizeof move->kinds);
    move->level = arena_array(move->scratch, int64_t, move->device_count);
    move->fresh = arena_array(move->scratch, int64_t, move->device_count);
    for (int p = 0; p < to->params.count; p++) add_parameter(move, p);
    while (add_window(move));
    array_push(move->arena, &move->all->at, move->migration);
    arena_destroy(move->scratch);
}

const Migrations *migrations_plan(Arena *arena, const Unit *unit) {
    TensorMove move = {.arena = arena,
                       .all = arena_new(arena, Migrations),
                       .known = intern_create(arena),
                       .device_count = unit_device_count(unit)};
    for (int i = 0; i < unit->modules.count; i++)
        for (int j = 0; j < unit->modules.count; j++)
            if (module_same_program(unit->modules.at[i], unit->modules.at[j]) &&
                !(unit->links.at[i].layouts_only && unit->links.at[j].layouts_only))
                plan_migration(&move, unit->modules.at[i], unit->modules.at[j]);
    return move.all;
}

/* ---- the report (-Rswitch) ---- */

/* Traffic of all batches of a migration. */
typedef struct Sum {
    int64_t bytes, messages, busiest; // busiest: the most bytes that one device sends
    int rounds;                       // rounds of the batch with the most rounds
    double seconds;
} Sum;

static void add_window_to(Sum *sum, const MigrationPlan *migration, int64_t *sent) {
    const Plan *plan = migration->plan;
    const ReplicaGroups *replica_groups = &migration->replica_groups;
    int rounds = 0;
    for (int s = 0; s < plan->steps.count; s++) {
        rounds++;
        sum->messages += (int64_t)replica_groups->count * plan->steps.at[s].messages.count;
    }
    for (int i = 0; i < replica_groups->count * replica_groups->size; i++)
        sent[replica_groups->devices[i]] +=
            plan_bytes_sent(plan, replica_groups->name[i % replica_groups->size]);
    sum->bytes += replica_groups_bytes(replica_groups, plan);
    sum->rounds = rounds > sum->rounds ? rounds : sum->rounds;
    sum->seconds += plan_seconds(plan);
}

static void report(const Migration *migration, Diag *diag, int device_count) {
    Arena *scratch = arena_create();
    int64_t *sent = arena_array(scratch, int64_t, device_count);
    Sum sum = {0};
    for (int w = 0; w < migration->windows.count; w++)
        add_window_to(&sum, migration->windows.at[w].plan, sent);
    for (int d = 0; d < device_count; d++)
        sum.busiest = sent[d] > sum.busiest ? sent[d] : sum.busiest;
    diag_remark(diag, migration->to->strategy->at,
                "%s goes from strategy \"%s\" to \"%s\" with %lld bytes received in all, messages: "
                "%lld, windows: %d, rounds of a window: "
                "%d, at most "
                "%lld bytes sent by one device, %.3g s",
                migration->to->name, migration->from->strategy->name, migration->to->strategy->name,
                (long long)sum.bytes, (long long)sum.messages, migration->windows.count, sum.rounds,
                (long long)sum.busiest, sum.seconds);
    arena_destroy(scratch);
}

void migrations_report(const Migrations *migrations, const Unit *unit) {
    for (int i = 0; i < migrations->at.count; i++)
        report(migrations->at.at[i], unit->diag, unit_device_count(unit));
}
