/* Makes the tables of pipeline schedules: GPipe, 1F1B, interleaved 1F1B and zero-bubble. schedule.h
 * has an example and the limits of each kind. */
#include "schedule/wait_graph.h"

/* The state of a stage while a table is made. A pair is a visit with a micro-batch. */
typedef struct StageState {
    int visit_count;
    int *visits;   // the stage's visits, in the order of data flow
    int pairs;     // number of the stage's pairs of visit and micro-batch
    int *forward;  // pairs in the order of their forward phases: visit * microbatches + micro-batch
    int *backward; // pairs in the order of their backward and of their weight-gradient phases
    int done[SCHEDULE_PHASES]; // by phase: number of pairs that have finished the phase
    // the most pairs that may be between forward and backward (`open`), and between forward and
    // weight gradients (`live`)
    int open, live;
    int slot_count; // slots that the limits allow, or more where the schedule would otherwise block
    ScheduleRow *rows; // the rows chosen so far
    int row_count;     // number of rows chosen so far
} StageState;

typedef struct Maker {
    Arena *arena;
    const StageGraph *graph;
    GraphLinks links;
    ScheduleKind kind;
    int microbatches, parts;
    StageState *stages;
    int *done; // by phase and visit: number of finished micro-batches
    int turns; // rounds so far; in each round every stage may run one row
} Maker;

static int *done_of(const Maker *maker, SchedulePhase part, int visit) {
    return &maker->done[part * maker->graph->visit_count + visit];
}

/* ---- the fixed order of a stage's pairs ---- */

/* Writes a stage's pairs to `order`: a group of stage_count micro-batches passes the stage's first
 * visit, then its next. So the first micro-batch of a group is back at the stage when the last one
 * has left it. `backward` reverses the visits. */
static void put_in_order(const Maker *maker, const StageState *stage, bool backward, int *order) {
    int group = maker->graph->stage_count, count = 0;
    for (int first = 0; first < maker->microbatches; first += group)
        for (int i = 0; i < stage->visit_count; i++)
            for (int m = first; m < first + group && m < maker->microbatches; m++)
                order[count++] =
                    stage->visits[backward ? stage->visit_count - 1 - i : i] * maker->microbatches +
                    m;
}

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

/* Sets the limits `open` and `live` of a stage, and slot_count, by the schedule's kind. */
static void set_limits(const Maker *maker, StageState *stage) {
    int first = 0, last = maker->graph->visit_count, through = 0;
    for (int i = 0; i < stage->visit_count; i++) {
        int v = stage->visits[i];
        first = most(first, maker->links.after[v] + 1);
        last = least(last, maker->links.after[v]);
        through = most(through, maker->links.before[v] + maker->links.after[v] + 1);
    }
    stage->open = maker->kind == SCHEDULE_GPIPE || !maker->graph->trains ? stage->pairs
                  : maker->kind == SCHEDULE_INTERLEAVED ? least(stage->pairs, first + last)
                                                        : least(stage->pairs, first);
    stage->live = maker->kind == SCHEDULE_ZERO_BUBBLE ? least(stage->pairs, through) : stage->open;
    stage->slot_count = maker->graph->trains ? stage->live : least(stage->pairs, 2);
}

static void begin_stage(const Maker *maker, int number) {
    StageState *stage = &maker->stages[number];
    *stage = (StageState){.visits = arena_array(maker->arena, int, maker->graph->visit_count)};
    for (int i = 0; i < maker->graph->visit_count; i++)
        if (maker->graph->stage_of[maker->links.order[i]] == number)
            stage->visits[stage->visit_count++] = maker->links.order[i];
    stage->pairs = stage->visit_count * maker->microbatches;
    stage->forward = arena_array(maker->arena, int, stage->pairs);
    stage->backward = arena_array(maker->arena, int, stage->pairs);
    stage->rows = arena_array(maker->arena, ScheduleRow, stage->pairs * maker->parts);
    put_in_order(maker, stage, false, stage->forward);
    put_in_order(maker, stage, true, stage->backward);
    set_limits(maker, stage);
}

/* ---- rows that can run ---- */

/* Returns whether the visits at `end` (0: source, 1: target) of the edges that `side` lists for the
 * row's visit have finished the row's phase for the row's micro-batch. */
static bool ends_done(const Maker *maker, const ScheduleRow *row, const GraphSide *side, int end) {
    for (int k = side->first[row->visit]; k < side->first[row->visit + 1]; k++)
        if (*done_of(maker, row->phase, maker->graph->edge[side->list[k]][end]) <= row->microbatch)
            return false;
    return true;
}

/* Sets *row to a phase of a visit for its next micro-batch. Returns whether the row can run now. */
static bool is_ready(const Maker *maker, SchedulePhase part, int visit, ScheduleRow *row) {
    int microbatch = *done_of(maker, part, visit);
    *row = (ScheduleRow){part, visit, microbatch, 0};
    if (microbatch >= maker->microbatches) return false;
    if (part == SCHEDULE_FORWARD) return ends_done(maker, row, &maker->links.in, 0);
    return *done_of(maker, part - 1, visit) > microbatch &&
           (part == SCHEDULE_WGRAD || ends_done(maker, row, &maker->links.out, 1));
}

/* Returns the next visit in the order of a phase; -1 at the end of the order. */
static int next_visit(const Maker *maker, const StageState *stage, SchedulePhase part) {
    const int *order = part == SCHEDULE_FORWARD ? stage->forward : stage->backward;
    return stage->done[part] < stage->pairs ? order[stage->done[part]] / maker->microbatches : -1;
}

static bool next_ready(const Maker *maker, const StageState *stage, SchedulePhase part,
                       ScheduleRow *row) {
    int visit = next_visit(maker, stage, part);
    return visit >= 0 && is_ready(maker, part, visit, row);
}

/* ---- choosing a row: the next in a fixed order ---- */

static bool weights_wait(const StageState *stage) {
    return stage->done[SCHEDULE_BACKWARD] > stage->done[SCHEDULE_WGRAD];
}

/* Returns the next phase of a training stage. Warm-up: forward as far as the limits allow. Steady
 * state: backward and forward alternate. Cool-down: backward. The weight gradient directly follows
 * backward; in zero_bubble it waits until forward needs the slot, or for the cool-down. */
static SchedulePhase next_part(const Maker *maker, const StageState *stage) {
    int open = stage->done[SCHEDULE_FORWARD] - stage->done[SCHEDULE_BACKWARD],
        live = stage->done[SCHEDULE_FORWARD] - stage->done[SCHEDULE_WGRAD];
    bool more = stage->done[SCHEDULE_FORWARD] < stage->pairs,
         lazy = maker->kind == SCHEDULE_ZERO_BUBBLE;
    if (weights_wait(stage) && !lazy) return SCHEDULE_WGRAD;
    if (more && open < stage->open)
        return live < stage->live || !weights_wait(stage) ? SCHEDULE_FORWARD : SCHEDULE_WGRAD;
    if (stage->done[SCHEDULE_BACKWARD] == stage->pairs) return SCHEDULE_WGRAD;
    return !more && weights_wait(stage) &&
                   stage->rows[stage->row_count - 1].phase == SCHEDULE_BACKWARD
               ? SCHEDULE_WGRAD
               : SCHEDULE_BACKWARD;
}

/* Chooses a stage's next row in the fixed order; returns whether it can run. With `force`, when all
 * stages are blocked, replaces forward by backward, and any other phase by forward. */
static bool choose_in_order(const Maker *maker, const StageState *stage, bool force,
                            ScheduleRow *row) {
    SchedulePhase part = maker->graph->trains ? next_part(maker, stage) : SCHEDULE_FORWARD;
    if (force) part = part == SCHEDULE_FORWARD ? SCHEDULE_BACKWARD : SCHEDULE_FORWARD;
    return next_ready(maker, stage, part, row);
}

/* ---- choosing a row: any that can run ---- */

/* Sets *row for the last visit in data order that can run a phase; false: no visit can. */
static bool last_ready(const Maker *maker, const StageState *stage, SchedulePhase part,
                       ScheduleRow *row) {
    for (int i = stage->visit_count - 1; i >= 0; i--)
        if (is_ready(maker, part, stage->visits[i], row)) return true;
    return false;
}

/* Chooses a row that can run; forward only within the limits, unless `force`. False: none can.
 * Tries backward, forward, weight gradients; unless zero_bubble, weight gradients first. */
static bool choose_eagerly(const Maker *maker, const StageState *stage, bool force,
                           ScheduleRow *row) {
    bool lazy = maker->kind == SCHEDULE_ZERO_BUBBLE, trains = maker->graph->trains;
    int open = stage->done[SCHEDULE_FORWARD] - stage->done[SCHEDULE_BACKWARD],
        live = stage->done[SCHEDULE_FORWARD] - stage->done[SCHEDULE_WGRAD];
    bool room = force || !trains || (open < stage->open && live < stage->live);
    return (trains && !lazy && last_ready(maker, stage, SCHEDULE_WGRAD, row)) ||
           (trains && last_ready(maker, stage, SCHEDULE_BACKWARD, row)) ||
           (room && last_ready(maker, stage, SCHEDULE_FORWARD, row)) ||
           (trains && last_ready(maker, stage, SCHEDULE_WGRAD, row));
}

/* ---- the order of all rows ---- */

typedef bool Choose(const Maker *maker, const StageState *stage, bool force, ScheduleRow *row);

static void run_row(Maker *maker, const ScheduleRow *row) {
    StageState *stage = &maker->stages[maker->graph->stage_of[row->visit]];
    stage->rows[stage->row_count++] = *row;
    stage->done[row->phase]++;
    ++*done_of(maker, row->phase, row->visit);
    if (maker->graph->trains)
        stage->slot_count =
            most(stage->slot_count, stage->done[SCHEDULE_FORWARD] - stage->done[SCHEDULE_WGRAD]);
}

/* Returns whether `row` is better than `best` when all stages are blocked: forward is worse than
 * all other phases; of equal phases, the visit with fewer edges after it is better. */
static bool is_better(const Maker *maker, const ScheduleRow *row, const ScheduleRow *best) {
    if ((row->phase == SCHEDULE_FORWARD) != (best->phase == SCHEDULE_FORWARD))
        return best->phase == SCHEDULE_FORWARD;
    return maker->links.after[row->visit] < maker->links.after[best->visit];
}

/* Runs one row that violates the limits or the fixed order, when all stages are blocked. */
static void run_forced(Maker *maker, Choose *choose) {
    ScheduleRow row, best = {.slot = -1};
    for (int s = 0; s < maker->graph->stage_count; s++)
        if (choose(maker, &maker->stages[s], true, &row) &&
            (best.slot < 0 || is_better(maker, &row, &best)))
            best = row;
    if (best.slot < 0) BUG("no stage of %d can go on", maker->graph->stage_count);
    run_row(maker, &best);
}

/* Returns the order of all rows: in each round every stage runs one row if it can. */
static Maker make_order(Arena *arena, ScheduleKind kind, const StageGraph *graph, int microbatches,
                        Choose *choose) {
    Maker maker = {arena, graph,        graph_links(arena, graph),
                   kind,  microbatches, .parts = graph->trains ? SCHEDULE_PHASES : 1};
    ScheduleRow *chosen = arena_array(arena, ScheduleRow, graph->stage_count);
    int left = graph->visit_count * microbatches * maker.parts;
    maker.stages = arena_array(arena, StageState, graph->stage_count);
    maker.done = arena_array(arena, int, graph->visit_count *SCHEDULE_PHASES);
    for (int s = 0; s < graph->stage_count; s++) begin_stage(&maker, s);
    for (int count; left; left -= count, maker.turns++) {
        count = 0;
        for (int s = 0; s < graph->stage_count; s++)
            count += choose(&maker, &maker.stages[s], false, &chosen[count]);
        for (int i = 0; i < count; i++) run_row(&maker, &chosen[i]);
        if (!count) {
            run_forced(&maker, choose);
            count = 1;
        }
    }
    return maker;
}

/* ---- giving slots to rows ---- */

/* The free slots of a stage, a ring in which the slot that has been free longest comes first. */
typedef struct FreeSlots {
    int *ring, room, first, count; // ring of `room` entries: `count` free slots from `first` on
    int *last;                     // by slot: the last micro-batch that used the slot; -1: none
    int slot_count;                // number of slots of the stage
} FreeSlots;

static FreeSlots free_slots(Arena *arena, int slot_count, int room) {
    FreeSlots slots = {arena_array(arena, int, room), room,      0, slot_count,
                       arena_array(arena, int, room), slot_count};
    for (int slot = 0; slot < room; slot++) {
        slots.ring[slot] = slot;
        slots.last[slot] = -1;
    }
    return slots;
}

/* Returns the ring position of the first free slot whose last user was another micro-batch; adds a
 * slot when there is none. A slot must not pass to another visit of the same micro-batch, since the
 * micro-batch alone identifies a slot's user. */
static int find_slot(FreeSlots *slots, int microbatch) {
    for (int i = 0; i < slots->count; i++)
        if (slots->last[slots->ring[(slots->first + i) % slots->room]] != microbatch)
            return (slots->first + i) % slots->room;
    int place = (slots->first + slots->count++) % slots->room;
    slots->ring[place] = slots->slot_count++;
    return place;
}

static int take_slot(FreeSlots *slots, int microbatch) {
    int place = find_slot(slots, microbatch), slot = slots->ring[place];
    slots->ring[place] = slots->ring[slots->first];
    slots->first = (slots->first + 1) % slots->room;
    slots->count--;
    slots->last[slot] = microbatch;
    return slot;
}

static void leave_slot(FreeSlots *slots, int slot) {
    slots->ring[(slots->first + slots->count++) % slots->room] = slot;
}

/* Writes a stage's rows with slots to `rows`. Returns the number of slots, at least slot_count. */
static int give_slots(const Maker *maker, const StageState *stage, int slot_count,
                      ScheduleRow *rows) {
    int *slot_of =
        arena_array(maker->arena, int, maker->graph->visit_count * maker->microbatches + 1);
    FreeSlots slots = free_slots(maker->arena, slot_count, stage->pairs + 1);
    for (int i = 0; i < stage->row_count; i++) {
        const ScheduleRow *row = &stage->rows[i];
        int *slot = &slot_of[row->visit * maker->microbatches + row->microbatch];
        if (row->phase == SCHEDULE_FORWARD) *slot = take_slot(&slots, row->microbatch);
        if ((int)row->phase == maker->parts - 1) leave_slot(&slots, *slot);
        rows[i] = (ScheduleRow){row->phase, row->visit, row->microbatch, *slot};
    }
    return slots.slot_count;
}

/* Returns the table of an order. With `own`, each pair of a stage has a slot of its own. */
static Schedule *write_table(Arena *arena, const Maker *maker, bool own) {
    int count = maker->graph->stage_count;
    Schedule *schedule = arena_new(arena, Schedule);
    *schedule =
        (Schedule){count, arena_array(arena, int, count), arena_array(arena, ScheduleRow *, count),
                   arena_array(arena, int, count), NULL};
    for (int s = 0; s < count; s++) {
        const StageState *stage = &maker->stages[s];
        schedule->row_count[s] = stage->row_count;
        schedule->rows[s] = arena_array(arena, ScheduleRow, stage->row_count);
        schedule->slot_count[s] =
            give_slots(maker, stage, own ? stage->pairs : stage->slot_count, schedule->rows[s]);
    }
    return schedule;
}

/* Returns whether an order has fewer rounds than another, and needs no more slots in any stage.
 * The order with fewer rounds ends sooner if all phases take equally long. */
static bool beats(const Maker *maker, const Maker *other) {
    for (int s = 0; s < maker->graph->stage_count; s++)
        if (maker->stages[s].slot_count > other->stages[s].slot_count) return false;
    return maker->turns < other->turns;
}

/* Makes a fixed and an eager order and takes the better. The fixed order is best when all stages
 * are alike, as in chains; in other graphs the eager order may end sooner. */
const Schedule *schedule_create(Arena *arena, ScheduleKind kind, const StageGraph *graph,
                                int64_t microbatches) {
    Arena *scratch = arena_create();
    Maker ordered = make_order(scratch, kind, graph, (int)microbatches, choose_in_order);
    Maker eager = make_order(scratch, kind, graph, (int)microbatches, choose_eagerly);
    const Maker *maker = beats(&eager, &ordered) ? &eager : &ordered;
    Schedule *schedule = write_table(arena, maker, false);
    if (schedule_cycle(scratch, graph, schedule)) schedule = write_table(arena, maker, true);
    arena_destroy(scratch);
    return schedule;
}
