/* Adds up simulated time by kind (computing, waiting, ...) and memory over time. */
#include "planner/simulate/simulate.h"
#include "ir/programs/device_programs.h"

#include "cost/cost.h"

#include <math.h>
#include <stdlib.h>

/* A task of an actor that takes time: its span and whether it computes. */
typedef struct Busy {
    double begin, end; // seconds
    bool computes;
} Busy;
typedef Array(Busy) BusyList;

static int compare_busy(const void *a, const void *b) {
    const Busy *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Returns the length of [begin, end) after *until; then raises *until to `end`. */
static double uncovered(double begin, double end, double *until) {
    double from = fmax(begin, *until);
    *until = fmax(*until, end);
    return fmax(end - from, 0);
}

/* Returns the times of an actor from its tasks in the order of their starts; `length` is the length
 * of all steps in seconds. */
static ActorTime sum_up(const BusyList *list, double length) {
    ActorTime time = {0};
    double computed = 0, covered = 0, communicated = 0, all = 0, talks = 0;
    for (int i = 0; i < list->count; i++) {
        const Busy *busy = &list->at[i];
        all += uncovered(busy->begin, busy->end, &covered);
        if (busy->computes) time.computing += uncovered(busy->begin, busy->end, &computed);
        else talks += uncovered(busy->begin, busy->end, &communicated);
    }
    time.exposed = all - time.computing;
    time.hidden = fmax(talks - time.exposed, 0);
    time.idle = fmax(length - all, 0);
    return time;
}

ActorTime *usage_times(Arena *arena, const SimulatedSteps *steps) {
    int actors = steps->fold.actor_count;
    double length = steps->spans[steps->program.step_ends.at[steps->program.steps - 1]].end;
    Arena *scratch = arena_create();
    BusyList *busy = arena_array(scratch, BusyList, actors);
    ActorTime *times = arena_array(arena, ActorTime, actors);
    for (int t = 0; t < steps->program.tasks.count; t++) {
        const ProgramTask *task = &steps->program.tasks.at[t];
        const EngineSpan *span = &steps->spans[t];
        for (int i = 0; i < task->actor_count && span->end > span->begin; i++)
            array_push(scratch, &busy[task->actors[i]],
                       (Busy){span->begin, span->end, task->stream == STREAM_COMPUTING});
    }
    for (int a = 0; a < actors; a++) {
        if (busy[a].count) qsort(busy[a].at, (size_t)busy[a].count, sizeof(Busy), compare_busy);
        times[a] = sum_up(&busy[a], length);
    }
    arena_destroy(scratch);
    return times;
}

/* Returns how many slots are occupied while a row of a stage runs. A slot is occupied from the
 * first to the last row of its visit and micro-batch. */
static int taken_slots(const Schedule *schedule, int stage, int row) {
    int taken = 0;
    const ScheduleRow *rows = schedule->rows[stage];
    for (int slot = 0; slot < schedule->slot_count[stage]; slot++) {
        int before = row, behind = row;
        while (before >= 0 && rows[before].slot != slot) before--;
        while (behind < schedule->row_count[stage] && rows[behind].slot != slot) behind++;
        taken += before == row || (before >= 0 && behind < schedule->row_count[stage] &&
                                   rows[before].visit == rows[behind].visit &&
                                   rows[before].microbatch == rows[behind].microbatch);
    }
    return taken;
}

/* Returns the bytes that an actor holds all the time: parameters, states, inputs. */
static int64_t given_bytes(const RoleMemory *memory) {
    return memory->bytes[MEMORY_PARAMETERS] + memory->bytes[MEMORY_STATES] +
           memory->bytes[MEMORY_INPUTS];
}

/* The memory of devices of a role with the same number of slots, and the use of their arena. */
typedef struct RoleUse {
    const Role *role;
    int slots, visits;
    RoleMemory memory;
    int64_t *parts;  // by phase and visit: the most bytes of the arena in use
    int64_t *phases; // by phase: the most bytes in use
} RoleUse;

static void raise_to(int64_t *most, int64_t bytes) { *most = bytes > *most ? bytes : *most; }

static RoleUse role_use(Arena *arena, Module *module, const Role *role, int slots) {
    RoleUse own = {.role = role,
                   .slots = slots,
                   .memory = role_memory(module, role, slots),
                   .phases = arena_array(arena, int64_t, PHASES)};
    const int64_t *use = role_arena_use(arena, module, role);
    for (int i = 0; i < module->ops.count; i++)
        own.visits =
            module->ops.at[i]->visit >= own.visits ? module->ops.at[i]->visit + 1 : own.visits;
    own.parts = arena_array(arena, int64_t, PHASES *own.visits);
    for (int i = 0; i < module->ops.count; i++) {
        Phase phase = op_phase(module, module->ops.at[i]);
        raise_to(&own.parts[(int)phase * own.visits + module->ops.at[i]->visit], use[i]);
        raise_to(&own.phases[phase], use[i]);
    }
    return own;
}

typedef Array(RoleUse) RoleUses;

/* Returns the use of an actor's role, made once for all its actors with equally many slots. */
static const RoleUse *use_of(Arena *arena, RoleUses *uses, Module *module, const Actor *actor) {
    int slots = device_slots(module, actor->role, actor->devices[0]);
    for (int u = uses->count - 1; u >= 0; u--)
        if (uses->at[u].role == actor->role && uses->at[u].slots == slots) return &uses->at[u];
    array_push(arena, uses, role_use(arena, module, actor->role, slots));
    return &uses->at[uses->count - 1];
}

/* Returns the bytes in use while a row runs. */
static int64_t row_bytes(const SimulatedSteps *steps, const ProgramRow *row, const RoleUse *use) {
    const Actor *actor = &steps->fold.actors[row->actor];
    int64_t bytes = given_bytes(&use->memory);
    if (row->run < 0) return bytes + use->phases[steps->program.tasks.at[row->last].phase];
    const ScheduleRow *own = &actor->run->schedule->rows[row->stage][row->row];
    static const Phase phases[] = {[SCHEDULE_FORWARD] = PHASE_FORWARD,
                                   [SCHEDULE_BACKWARD] = PHASE_BACKWARD,
                                   [SCHEDULE_WGRAD] = PHASE_WGRAD};
    return bytes + use->parts[(int)phases[own->phase] * use->visits + own->visit] +
           taken_slots(actor->run->schedule, row->stage, row->row) * actor->role->slot_bytes;
}

ActorMemory *usage_memory(Arena *arena, const SimulatedSteps *steps) {
    int actors = steps->fold.actor_count;
    Arena *scratch = arena_create();
    RoleUses uses = {0};
    ActorMemory *list = arena_array(arena, ActorMemory, actors);
    Array(MemoryPoint) *points = arena_alloc(scratch, sizeof *points * (size_t)actors);
    for (int a = 0; a < actors; a++) {
        const RoleMemory *memory =
            &use_of(scratch, &uses, steps->module, &steps->fold.actors[a])->memory;
        list[a] = (ActorMemory){.peak = memory->peak, .arena = memory->peak - given_bytes(memory)};
    }
    for (int r = 0; r < steps->program.rows.count; r++) {
        const ProgramRow *row = &steps->program.rows.at[r];
        if (row->step) continue;
        int64_t bytes = row_bytes(
            steps, row, use_of(scratch, &uses, steps->module, &steps->fold.actors[row->actor]));
        raise_to(&list[row->actor].used, bytes);
        array_push(arena, &points[row->actor],
                   (MemoryPoint){steps->spans[row->first].begin, bytes});
    }
    for (int a = 0; a < actors; a++) {
        list[a].points = points[a].at;
        list[a].point_count = points[a].count;
    }
    arena_destroy(scratch);
    return list;
}
