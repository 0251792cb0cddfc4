#include "planner/simulate/symmetry.h"

#include "planner/simulate/changes.h"
#include "planner/simulate/transfers.h"
#include "reshard/plan.h"
#include "schedule/schedule.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Cache of a conversion's transfers, by run + 1 and conversion number. */
struct TransferTable {
    int conversions;
    bool *used;
    SimulatedTransfers *transfers; // between devices
    ActorTransfers *folded;        // between actors
};

/* ---- hashes; their sums do not depend on an order ---- */

static uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t x =
        a * 0x9e3779b97f4a7c15u + (b ^ (b >> 29)) * 0xbf58476d1ce4e5b9u + 0x94d049bb133111ebu;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- conversions of a program ---- */

static int slot_of(const struct TransferTable *table, const PlannedConversion *conversion,
                   int run) {
    return (run + 1) * table->conversions + conversion->number;
}

/* Returns, by device of the first pipeline, that at its position in `run`; run -1: itself. */
static int *counterparts(Arena *arena, const Symmetry *fold, int run) {
    const Module *module = fold->module;
    int *own = arena_array(arena, int, fold->device_span);
    for (int d = 0; d < fold->device_span; d++) own[d] = d;
    if (run < 0) return own;
    const PipelineRun *there = &module->templates->runs.at[run];
    const Pipeline *first =
        &module->strategy->pipelines
             .at[template_first_run(module->templates, there->template_index)->pipeline];
    const Pipeline *pipeline = &module->strategy->pipelines.at[there->pipeline];
    for (int s = 0; s < pipeline->stages.count; s++)
        for (int i = 0; i < pipeline->stages.at[s].devices.count; i++)
            own[first->stages.at[s].devices.at[i]] = pipeline->stages.at[s].devices.at[i];
    return own;
}

static void use_conversion(const Symmetry *fold, const PlannedConversion *conversion, int run,
                           const int *counterpart) {
    struct TransferTable *table = fold->table;
    int slot = slot_of(table, conversion, run);
    if (table->used[slot]) return;
    table->used[slot] = true;
    const Plan *plan = conversion->plan;
    const ReplicaGroups *replica_groups = &conversion->groups;
    int *device_of = arena_array(fold->arena, int, plan->device_count);
    for (int i = 0; i < replica_groups->size; i++)
        device_of[plan_slot(plan, replica_groups->name[i])] =
            counterpart[replica_groups->devices[i]];
    table->transfers[slot] =
        simulated_transfers_of(fold->arena, fold->module->devices->target.cluster, plan, device_of);
}

static void find_conversions(Symmetry *fold) {
    const Module *module = fold->module;
    int runs = module->templates->runs.count;
    const int **counterpart = arena_array(fold->arena, const int *, runs + 1);
    for (int r = -1; r < runs; r++) counterpart[r + 1] = counterparts(fold->arena, fold, r);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (!op->convert.plan || op->convert.tensor || plan_nothing(op->convert.plan->plan))
            continue;
        if (op->stage == STAGE_ALL) use_conversion(fold, op->convert.plan, -1, counterpart[0]);
        for (int r = 0; r < runs && op->stage != STAGE_ALL; r++)
            if (module->templates->runs.at[r].template_index ==
                module->templates->stages.at[op->stage].template_index)
                use_conversion(fold, op->convert.plan, r, counterpart[r + 1]);
    }
}

/* ---- colours ---- */

/* The colours of devices. Devices of one colour were not distinguished so far. The arrays but
 * `index` are indexed like module->devices->roles->devices. */
typedef struct Colours {
    const Symmetry *fold;
    int count, *of;
    int *index; // by device number: the array index
    uint64_t *found;
} Colours;

static uint64_t changes_hash(const Changes *changes, int device) {
    uint64_t hash = 0;
    for (int c = 0; c < changes->count; c++)
        for (int i = 0; i < changes->at[c].device_count; i++)
            if (changes->at[c].devices[i] == device) hash = mixed(hash, (uint64_t)c + 1);
    return hash;
}

static uint64_t table_hash(const Schedule *schedule, int stage) {
    uint64_t hash = (uint64_t)schedule->slot_count[stage];
    for (int r = 0; r < schedule->row_count[stage]; r++) {
        const ScheduleRow *row = &schedule->rows[stage][r];
        hash = mixed(hash, mixed(mixed((uint64_t)row->phase, (uint64_t)row->visit),
                                 mixed((uint64_t)row->microbatch, (uint64_t)row->slot)));
    }
    return hash;
}

/* Returns the hash of a device's own properties: role, class, place in a pipeline, changes. */
static uint64_t own_hash(const Symmetry *fold, const Changes *changes, int index) {
    Module *module = fold->module;
    int device = module->devices->roles->devices[index], stage = 0;
    const PipelineRun *run = device_run(module, device, &stage);
    uint64_t hash =
        mixed((uint64_t)module->devices->roles->role_of[index],
              (uint64_t)(uintptr_t)cluster_class(module->devices->target.cluster, device));
    if (run)
        hash = mixed(mixed(mixed(hash, (uint64_t)run->template_index), (uint64_t)run->microbatches),
                     mixed(table_hash(run->schedule, stage), (uint64_t)stage));
    return mixed(hash, changes_hash(changes, device));
}

/* Returns the hash of a member's ports; advances *next past them. */
static uint64_t ports_hash(const SimulatedTransfer *transfer, int member, int *next) {
    uint64_t hash = 1;
    for (; *next < transfer->port_count && transfer->ports[*next].member == member; ++*next)
        hash = mixed(mixed(hash, (uint64_t)transfer->ports[*next].port),
                     bits_of(transfer->ports[*next].share));
    return hash;
}

/* Returns the hash of the colours of a transfer's members and of their ports. */
static uint64_t transfer_hash(const Colours *colours, int slot, const SimulatedTransfer *transfer) {
    uint64_t members = 0;
    for (int m = 0, port = 0; m < transfer->member_count; m++)
        members += mixed((uint64_t)colours->of[colours->index[transfer->members[m]]],
                         ports_hash(transfer, m, &port));
    const struct TransferTable *table = colours->fold->table;
    uint64_t own =
        mixed((uint64_t)(slot % table->conversions), (uint64_t)(slot >= table->conversions));
    return mixed(mixed(mixed(own, (uint64_t)transfer->round),
                       mixed(bits_of(transfer->latency), bits_of(transfer->work))),
                 members);
}

static void note_hops(Colours *colours, int slot) {
    const SimulatedTransfers *transfers = &colours->fold->table->transfers[slot];
    for (int h = 0; h < transfers->count; h++) {
        const SimulatedTransfer *transfer = &transfers->at[h];
        uint64_t hash = transfer_hash(colours, slot, transfer);
        for (int m = 0, port = 0; m < transfer->member_count; m++)
            colours->found[colours->index[transfer->members[m]]] +=
                mixed(hash, ports_hash(transfer, m, &port));
    }
    for (int m = 0; m < transfers->copier_count; m++)
        colours->found[colours->index[transfers->copiers[m]]] +=
            mixed((uint64_t)(slot % colours->fold->table->conversions), bits_of(transfers->moving));
}

static uint64_t run_hash(const Colours *colours, const Pipeline *pipeline) {
    uint64_t hash = 0;
    for (int s = 0; s < pipeline->stages.count; s++)
        for (int i = 0; i < pipeline->stages.at[s].devices.count; i++)
            hash +=
                mixed((uint64_t)colours->of[colours->index[pipeline->stages.at[s].devices.at[i]]],
                      (uint64_t)s);
    return hash;
}

/* Adds its pipeline's hash to each device: two pipelines share actors for all devices or none. */
static void note_runs(Colours *colours) {
    const Module *module = colours->fold->module;
    for (int r = 0; r < module->templates->runs.count; r++) {
        const Pipeline *pipeline =
            &module->strategy->pipelines.at[module->templates->runs.at[r].pipeline];
        uint64_t hash = run_hash(colours, pipeline);
        for (int s = 0; s < pipeline->stages.count; s++)
            for (int i = 0; i < pipeline->stages.at[s].devices.count; i++)
                colours->found[colours->index[pipeline->stages.at[s].devices.at[i]]] += hash;
    }
}

typedef struct Shade {
    int colour, index;
    uint64_t found;
} Shade;

static int compare_shades(const void *a, const void *b) {
    const Shade *x = a, *y = b;
    if (x->colour != y->colour) return x->colour < y->colour ? -1 : 1;
    if (x->found != y->found) return x->found < y->found ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Gives different colours to devices of one colour with different hashes, and numbers colours by
 * their first devices. Returns whether there are more colours than before. */
static bool split(Colours *colours) {
    int devices = colours->fold->module->devices->roles->device_count, before = colours->count;
    Arena *scratch = arena_create();
    Shade *shades = arena_array(scratch, Shade, devices);
    int *number = arena_array(scratch, int, devices), *group = arena_array(scratch, int, devices),
        groups = 0;
    for (int i = 0; i < devices; i++) shades[i] = (Shade){colours->of[i], i, colours->found[i]};
    qsort(shades, (size_t)devices, sizeof *shades, compare_shades);
    for (int i = 0; i < devices; i++) {
        groups += i && (shades[i].colour != shades[i - 1].colour ||
                        shades[i].found != shades[i - 1].found);
        group[shades[i].index] = groups;
    }
    colours->count = 0;
    for (int i = 0; i < devices; i++) {
        if (!number[group[i]]) number[group[i]] = ++colours->count;
        colours->of[i] = number[group[i]] - 1;
    }
    arena_destroy(scratch);
    return colours->count > before;
}

static void refine(Colours *colours) {
    const Symmetry *fold = colours->fold;
    do {
        memset(colours->found, 0,
               sizeof *colours->found * (size_t)fold->module->devices->roles->device_count);
        for (int slot = 0;
             slot < fold->table->conversions * (fold->module->templates->runs.count + 1); slot++)
            if (fold->table->used[slot]) note_hops(colours, slot);
        note_runs(colours);
    } while (split(colours));
}

static Colours colours_of(const Symmetry *fold, const Changes *changes, bool alone) {
    const Roles *roles = fold->module->devices->roles;
    Colours colours = {.fold = fold,
                       .of = arena_array(fold->arena, int, roles->device_count),
                       .index = arena_array(fold->arena, int, fold->device_span),
                       .found = arena_array(fold->arena, uint64_t, roles->device_count)};
    for (int i = 0; i < roles->device_count; i++) {
        colours.index[roles->devices[i]] = i;
        colours.found[i] = alone ? (uint64_t)i : own_hash(fold, changes, i);
    }
    split(&colours);
    if (!alone) refine(&colours);
    return colours;
}

/* ---- actors ---- */

static void make_actors(Symmetry *fold, const Colours *colours) {
    Module *module = fold->module;
    const Roles *roles = module->devices->roles;
    fold->actor_count = colours->count;
    fold->actors = arena_array(fold->arena, Actor, colours->count);
    for (int i = 0; i < roles->device_count; i++) fold->actors[colours->of[i]].device_count++;
    int **next = arena_array(fold->arena, int *, colours->count);
    for (int a = 0; a < colours->count; a++)
        fold->actors[a].devices = next[a] =
            arena_array(fold->arena, int, fold->actors[a].device_count);
    for (int i = 0; i < roles->device_count; i++) {
        *next[colours->of[i]]++ = roles->devices[i];
        fold->actor_of[roles->devices[i]] = colours->of[i];
    }
    for (int a = 0; a < colours->count; a++) {
        Actor *actor = &fold->actors[a];
        actor->role = &roles->at[roles->role_of[roles_index(roles, actor->devices[0])]];
        actor->class = cluster_class(module->devices->target.cluster, actor->devices[0]);
        actor->run = device_run(module, actor->devices[0], &actor->stage);
    }
}

/* Sets, by run, the first run with the same actors. Runs that share an actor share all actors. */
static void find_stands(Symmetry *fold) {
    const Module *module = fold->module;
    fold->stands = arena_array(fold->arena, int, module->templates->runs.count + 1);
    for (int r = 0; r < module->templates->runs.count; r++) {
        const Pipeline *pipeline =
            &module->strategy->pipelines.at[module->templates->runs.at[r].pipeline];
        const Actor *actor = &fold->actors[fold->actor_of[pipeline->stages.at[0].devices.at[0]]];
        int first = r;
        for (int i = 0; i < actor->device_count; i++) {
            int stage, own = (int)(device_run(fold->module, actor->devices[i], &stage) -
                                   module->templates->runs.at);
            first = own < first ? own : first;
        }
        fold->stands[r] = first;
    }
}

/* ---- transfers of actors ---- */

static ActorTransfer actor_transfer(const Symmetry *fold, const SimulatedTransfer *transfer) {
    int *actors = arena_array(fold->arena, int, transfer->member_count), count = 0, uses = 0;
    EngineUse *use = arena_array(fold->arena, EngineUse, transfer->port_count);
    for (int m = 0, port = 0; m < transfer->member_count; m++) {
        int actor = fold->actor_of[transfer->members[m]], known = 0;
        while (known < count && actors[known] != actor) known++;
        for (; port < transfer->port_count && transfer->ports[port].member == m; port++)
            if (known == count)
                use[uses++] = (EngineUse){symmetry_port(fold, actor, transfer->ports[port].port),
                                          transfer->ports[port].share};
        if (known == count) actors[count++] = actor;
    }
    return (ActorTransfer){transfer, count, uses, actors, use};
}

static int compare_hashes(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
    return (x[1] > y[1]) - (x[1] < y[1]);
}

/* Returns, by transfer, whether it is the first among transfers that are equal between actors. */
static bool *first_hops(Arena *arena, const Colours *colours, int slot) {
    const SimulatedTransfers *transfers = &colours->fold->table->transfers[slot];
    uint64_t(*hashes)[2] = arena_alloc(arena, sizeof *hashes * (size_t)transfers->count);
    bool *first = arena_array(arena, bool, transfers->count);
    for (int h = 0; h < transfers->count; h++) {
        hashes[h][0] = transfer_hash(colours, slot, &transfers->at[h]);
        hashes[h][1] = (uint64_t)h;
    }
    qsort(hashes, (size_t)transfers->count, sizeof *hashes, compare_hashes);
    for (int h = 0; h < transfers->count; h++)
        first[hashes[h][1]] = !h || hashes[h][0] != hashes[h - 1][0];
    return first;
}

static void fold_slot(const Symmetry *fold, const Colours *colours, int slot) {
    const SimulatedTransfers *transfers = &fold->table->transfers[slot];
    ActorTransfers *folded = &fold->table->folded[slot];
    Arena *scratch = arena_create();
    const bool *first = first_hops(scratch, colours, slot);
    bool *known = arena_array(scratch, bool, fold->actor_count);
    ActorTransfer *list = arena_array(fold->arena, ActorTransfer, transfers->count);
    int *copiers = arena_array(fold->arena, int, fold->actor_count);
    for (int h = 0; h < transfers->count; h++)
        if (first[h]) list[folded->count++] = actor_transfer(fold, &transfers->at[h]);
    for (int m = 0; m < transfers->copier_count; m++) {
        int actor = fold->actor_of[transfers->copiers[m]];
        if (!known[actor]) copiers[folded->copier_count++] = actor;
        known[actor] = true;
    }
    folded->at = list;
    folded->moving = transfers->moving;
    folded->copiers = copiers;
    arena_destroy(scratch);
}

const ActorTransfers *symmetry_transfers(const Symmetry *fold, const PlannedConversion *conversion,
                                         int run) {
    return &fold->table->folded[slot_of(fold->table, conversion, run)];
}

Symmetry symmetry_create(Arena *arena, Module *module, const Changes *changes, bool alone) {
    const Roles *roles = module->devices->roles;
    Symmetry fold = {.arena = arena,
                     .module = module,
                     .device_span = roles->devices[roles->device_count - 1] + 1};
    for (int i = 0; i < module->devices->mesh->device_count; i++)
        fold.device_span = module->devices->mesh->devices[i] >= fold.device_span
                               ? module->devices->mesh->devices[i] + 1
                               : fold.device_span;
    int slots = (module->devices->conversions.count + 1) * (module->templates->runs.count + 1);
    fold.ports = cluster_link_kinds(module->devices->target.cluster) * 2;
    fold.actor_of = arena_array(arena, int, fold.device_span);
    memset(fold.actor_of, 0xff, sizeof(int) * (size_t)fold.device_span);
    fold.table = arena_new(arena, struct TransferTable);
    *fold.table = (struct TransferTable){
        module->devices->conversions.count + 1, arena_array(arena, bool, slots),
        arena_array(arena, SimulatedTransfers, slots), arena_array(arena, ActorTransfers, slots)};
    find_conversions(&fold);
    Colours colours = colours_of(&fold, changes, alone);
    make_actors(&fold, &colours);
    find_stands(&fold);
    for (int slot = 0; slot < slots; slot++)
        if (fold.table->used[slot]) fold_slot(&fold, &colours, slot);
    return fold;
}
