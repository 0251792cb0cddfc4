/* Finds devices that behave alike, by colour refinement. */
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

/* ---- hashes: mixed() where the order matters, a sum where it does not ---- */

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

/* ---- transfers between devices ---- */

static int slot_of(const struct TransferTable *table, const PlannedConversion *conversion,
                   int run) {
    return (run + 1) * table->conversions + conversion->number;
}

/* Returns, by device of a template's first pipeline, the counterpart in `run`; run -1: itself. */
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

/* ---- colour refinement ---- */

/* The colours of devices. Devices of the same colour were not distinguished so far. The arrays but
 * `index` are indexed like module->devices->roles->devices. */
typedef struct Colours {
    const Symmetry *fold;
    int count, *of;       // number of colours; colour of each device
    int *index;           // by device number: the array index
    uint64_t *found;      // hashes by which colours are split next
    int uplinks, *uplink; // number of colours of uplink directions; by direction: its colour
    uint64_t *passed;     // by direction: the hash by which its colour is split next
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

/* Returns the hash of a device's own properties: role, class, stage of a pipeline, changes. */
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

/* Returns the hash of the colours of a transfer's members, of their ports and of its uplinks. */
static uint64_t transfer_hash(const Colours *colours, int slot, const SimulatedTransfer *transfer) {
    uint64_t members = 0;
    for (int m = 0, port = 0; m < transfer->member_count; m++)
        members += mixed((uint64_t)colours->of[colours->index[transfer->members[m]]],
                         ports_hash(transfer, m, &port));
    for (int u = 0; u < transfer->uplink_count; u++)
        members += mixed((uint64_t)colours->uplink[transfer->uplinks[u].direction] + 1,
                         bits_of(transfer->uplinks[u].share));
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
        for (int u = 0; u < transfer->uplink_count; u++)
            colours->passed[transfer->uplinks[u].direction] +=
                mixed(hash, bits_of(transfer->uplinks[u].share));
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

/* Adds to each device its pipeline's hash, so that two pipelines share all their actors or none. */
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

/* Gives different colours to entries of the same colour with different hashes; numbers colours by
 * their first entries. Returns the number of colours. */
static int split(int *colour, const uint64_t *found, int entries) {
    Arena *scratch = arena_create();
    Shade *shades = arena_array(scratch, Shade, entries);
    int *number = arena_array(scratch, int, entries), *group = arena_array(scratch, int, entries),
        groups = 0, count = 0;
    for (int i = 0; i < entries; i++) shades[i] = (Shade){colour[i], i, found[i]};
    if (entries) qsort(shades, (size_t)entries, sizeof *shades, compare_shades);
    for (int i = 0; i < entries; i++) {
        groups += i && (shades[i].colour != shades[i - 1].colour ||
                        shades[i].found != shades[i - 1].found);
        group[shades[i].index] = groups;
    }
    for (int i = 0; i < entries; i++) {
        if (!number[group[i]]) number[group[i]] = ++count;
        colour[i] = number[group[i]] - 1;
    }
    arena_destroy(scratch);
    return count;
}

/* Splits the colours of devices and of uplinks. Returns whether there are more than before. */
static bool split_all(Colours *colours) {
    const Module *module = colours->fold->module;
    int before = colours->count + colours->uplinks;
    colours->count = split(colours->of, colours->found, module->devices->roles->device_count);
    colours->uplinks =
        split(colours->uplink, colours->passed, uplink_directions(module->devices->target.cluster));
    return colours->count + colours->uplinks > before;
}

static void refine(Colours *colours) {
    const Symmetry *fold = colours->fold;
    do {
        memset(colours->found, 0,
               sizeof *colours->found * (size_t)fold->module->devices->roles->device_count);
        for (int d = 0; d < uplink_directions(fold->module->devices->target.cluster); d++)
            colours->passed[d] = 0;
        for (int slot = 0;
             slot < fold->table->conversions * (fold->module->templates->runs.count + 1); slot++)
            if (fold->table->used[slot]) note_hops(colours, slot);
        note_runs(colours);
    } while (split_all(colours));
}

/* Returns the hash of the changes of a direction of an uplink. */
static uint64_t uplink_hash(const Cluster *cluster, const Changes *changes, int direction) {
    double bucket = uplink_bucket(cluster, direction);
    uint64_t hash = bucket > 0 ? bits_of(bucket) : 0;
    for (int c = 0; c < changes->count; c++)
        if (change_of_uplink(cluster, &changes->at[c], direction / 2))
            hash = mixed(hash, (uint64_t)c + 1);
    return hash;
}

static Colours colours_of(const Symmetry *fold, const Changes *changes, bool alone) {
    const Roles *roles = fold->module->devices->roles;
    const Cluster *cluster = fold->module->devices->target.cluster;
    int directions = uplink_directions(cluster);
    Colours colours = {.fold = fold,
                       .of = arena_array(fold->arena, int, roles->device_count),
                       .index = arena_array(fold->arena, int, fold->device_span),
                       .found = arena_array(fold->arena, uint64_t, roles->device_count),
                       .uplink = arena_array(fold->arena, int, directions),
                       .passed = arena_array(fold->arena, uint64_t, directions)};
    for (int i = 0; i < roles->device_count; i++) {
        colours.index[roles->devices[i]] = i;
        colours.found[i] = alone ? (uint64_t)i : own_hash(fold, changes, i);
    }
    for (int d = 0; d < directions; d++)
        colours.passed[d] = alone ? (uint64_t)d : uplink_hash(cluster, changes, d);
    split_all(&colours);
    if (!alone) refine(&colours);
    return colours;
}

/* ---- actors from colours ---- */

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

/* Sets fold->stands[r] to the first run with the actors of run r. Runs share all actors or none. */
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

/* ---- transfers between actors ---- */

/* The hash and the number of a transfer; equal hashes are adjacent in lists. */
typedef struct HashedTransfer {
    uint64_t hash;
    int number;
} HashedTransfer;

/* Returns the sum of the shares that equal transfers use of a direction of an uplink. */
static double uplink_share(const SimulatedTransfers *transfers, const HashedTransfer *equal,
                           int count, int direction) {
    double share = 0;
    for (int i = 0; i < count; i++) {
        const SimulatedTransfer *transfer = &transfers->at[equal[i].number];
        for (int u = 0; u < transfer->uplink_count; u++)
            share += transfer->uplinks[u].direction == direction ? transfer->uplinks[u].share : 0;
    }
    return share;
}

/* Writes the uses of uplinks of equal transfers to `use`, each uplink that stands for others once.
 * Returns the number of these uses. */
static int add_uplinks(const Symmetry *fold, const SimulatedTransfers *transfers,
                       const HashedTransfer *equal, int count, EngineUse *use) {
    const SimulatedTransfer *first = &transfers->at[equal->number];
    int uses = 0;
    for (int u = 0; u < first->uplink_count; u++) {
        int direction = first->uplinks[u].direction, known = 0,
            resource = symmetry_uplink(fold, fold->uplink_of[direction]);
        while (known < uses && use[known].resource != resource) known++;
        if (known == uses)
            use[uses++] = (EngineUse){resource, uplink_share(transfers, equal, count, direction)};
    }
    return uses;
}

/* Returns the transfer between actors that stands for `equals` equal transfers. */
static ActorTransfer actor_transfer(const Symmetry *fold, const SimulatedTransfers *transfers,
                                    const HashedTransfer *equal, int equals) {
    const SimulatedTransfer *transfer = &transfers->at[equal->number];
    int *actors = arena_array(fold->arena, int, transfer->member_count), count = 0, uses = 0;
    EngineUse *use =
        arena_array(fold->arena, EngineUse, transfer->port_count + transfer->uplink_count);
    for (int m = 0, port = 0; m < transfer->member_count; m++) {
        int actor = fold->actor_of[transfer->members[m]], known = 0;
        while (known < count && actors[known] != actor) known++;
        for (; port < transfer->port_count && transfer->ports[port].member == m; port++)
            if (known == count)
                use[uses++] = (EngineUse){symmetry_port(fold, actor, transfer->ports[port].port),
                                          transfer->ports[port].share};
        if (known == count) actors[count++] = actor;
    }
    uses += add_uplinks(fold, transfers, equal, equals, use + uses);
    return (ActorTransfer){transfer, count, uses, actors, use};
}

static int compare_hashes(const void *a, const void *b) {
    const HashedTransfer *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Returns the transfers of a conversion, sorted by hash, so that equal ones are adjacent. */
static HashedTransfer *hashed_transfers(Arena *arena, const Colours *colours, int slot) {
    const SimulatedTransfers *transfers = &colours->fold->table->transfers[slot];
    HashedTransfer *hashed = arena_array(arena, HashedTransfer, transfers->count);
    for (int h = 0; h < transfers->count; h++)
        hashed[h] = (HashedTransfer){transfer_hash(colours, slot, &transfers->at[h]), h};
    if (transfers->count) qsort(hashed, (size_t)transfers->count, sizeof *hashed, compare_hashes);
    return hashed;
}

static void fold_slot(const Symmetry *fold, const Colours *colours, int slot) {
    const SimulatedTransfers *transfers = &fold->table->transfers[slot];
    ActorTransfers *folded = &fold->table->folded[slot];
    Arena *scratch = arena_create();
    const HashedTransfer *hashed = hashed_transfers(scratch, colours, slot);
    const HashedTransfer **first = arena_array(scratch, const HashedTransfer *, transfers->count);
    bool *known = arena_array(scratch, bool, fold->actor_count);
    ActorTransfer *list = arena_array(fold->arena, ActorTransfer, transfers->count);
    int *copiers = arena_array(fold->arena, int, fold->actor_count);
    // Fold in the order of the rounds, which is that of the transfers' numbers.
    for (int h = 0; h < transfers->count; h++)
        if (!h || hashed[h].hash != hashed[h - 1].hash) first[hashed[h].number] = &hashed[h];
    for (int h = 0; h < transfers->count; h++) {
        int equals = 0, behind = first[h] ? (int)(first[h] - hashed) : transfers->count;
        while (behind + equals < transfers->count && hashed[behind + equals].hash == first[h]->hash)
            equals++;
        if (first[h]) list[folded->count++] = actor_transfer(fold, transfers, first[h], equals);
    }
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
    fold.uplink_of = colours.uplink;
    fold.uplink_count = colours.uplinks;
    find_stands(&fold);
    for (int slot = 0; slot < slots; slot++)
        if (fold.table->used[slot]) fold_slot(&fold, &colours, slot);
    return fold;
}
