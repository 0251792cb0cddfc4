/* Says which row or transfer waits for which: one graph for find_deadlocks.c, the simulator and the
 * timeline. runtime/session/core/run_schedule.c begins and ends transfers. */
#include "schedule/wait_graph.h"

/* Returns the edges by the visit where they begin (`end` 0) or end (`end` 1). */
static GraphSide side_of(Arena *arena, const StageGraph *graph, int end) {
    GraphSide side = {arena_array(arena, int, graph->visit_count + 2),
                      arena_array(arena, int, graph->edge_count + 1)};
    for (int e = 0; e < graph->edge_count; e++) side.first[graph->edge[e][end] + 2]++;
    for (int v = 0; v < graph->visit_count; v++) side.first[v + 2] += side.first[v + 1];
    for (int e = 0; e < graph->edge_count; e++)
        side.list[side.first[graph->edge[e][end] + 1]++] = e;
    return side;
}

/* Sets links->order and links->before. A cycle of visits is a bug: aborts. */
static void sort_visits(Arena *arena, const StageGraph *graph, GraphLinks *links) {
    int *missing = arena_array(arena, int, graph->visit_count + 1), sorted = 0;
    for (int v = 0; v < graph->visit_count; v++)
        if (!(missing[v] = links->in.first[v + 1] - links->in.first[v])) links->order[sorted++] = v;
    for (int i = 0; i < sorted; i++) {
        int v = links->order[i];
        for (int k = links->out.first[v]; k < links->out.first[v + 1]; k++) {
            int next = graph->edge[links->out.list[k]][1];
            links->before[next] = links->before[v] + 1 > links->before[next] ? links->before[v] + 1
                                                                             : links->before[next];
            if (!--missing[next]) links->order[sorted++] = next;
        }
    }
    if (sorted != graph->visit_count) BUG("a graph of %d visits goes round", graph->visit_count);
}

GraphLinks graph_links(Arena *arena, const StageGraph *graph) {
    int count = graph->visit_count + 1;
    GraphLinks links = {side_of(arena, graph, 1), side_of(arena, graph, 0),
                        arena_array(arena, int, count), arena_array(arena, int, count),
                        arena_array(arena, int, count)};
    sort_visits(arena, graph, &links);
    for (int i = graph->visit_count - 1; i >= 0; i--) {
        int v = links.order[i];
        for (int k = links.out.first[v]; k < links.out.first[v + 1]; k++) {
            int far = links.after[graph->edge[links.out.list[k]][1]] + 1;
            links.after[v] = far > links.after[v] ? far : links.after[v];
        }
    }
    return links;
}

/* ---- numbers of events ---- */

static int *row_at(const Waits *waits, SchedulePhase part, int visit, int microbatch) {
    return &waits->row_of[(part * waits->graph->visit_count + visit) * waits->microbatches +
                          microbatch];
}

/* Numbers the rows, stage by stage: sets first_row, stage_of and row_of. */
static void number_rows(Waits *waits) {
    int count = 0;
    for (int s = 0; s < waits->schedule->stage_count; s++) {
        waits->first_row[s] = count;
        for (int i = 0; i < waits->schedule->row_count[s]; i++, count++) {
            const ScheduleRow *row = &waits->schedule->rows[s][i];
            waits->stage_of[count] = s;
            *row_at(waits, row->phase, row->visit, row->microbatch) = count;
        }
    }
}

static void find_slots_before(Arena *arena, Waits *waits) {
    for (int s = 0; s < waits->schedule->stage_count; s++) {
        int *last = arena_array(arena, int, waits->schedule->slot_count[s] + 1);
        for (int i = 0; i < waits->schedule->row_count[s]; i++) {
            int row = waits->first_row[s] + i, *own = &last[waits->schedule->rows[s][i].slot];
            waits->slot_before[row] = *own - 1;
            *own = row + 1;
        }
    }
}

Waits waits_create(Arena *arena, const StageGraph *graph, const Schedule *schedule) {
    Waits waits = {graph, schedule, graph_links(arena, graph),
                   .first_row = arena_array(arena, int, schedule->stage_count + 1)};
    for (int s = 0; s < schedule->stage_count; s++) waits.row_count += schedule->row_count[s];
    waits.microbatches =
        waits.row_count / (graph->visit_count * (graph->trains ? SCHEDULE_PHASES : 1));
    waits.event_count =
        waits.row_count + graph->edge_count * waits.microbatches * (graph->trains ? 2 : 1);
    waits.stage_of = arena_array(arena, int, waits.row_count);
    waits.slot_before = arena_array(arena, int, waits.row_count);
    waits.row_of = arena_array(arena, int, waits.row_count);
    number_rows(&waits);
    find_slots_before(arena, &waits);
    return waits;
}

/* ---- the waits of an event ---- */

static int transfer_at(const Waits *waits, int edge, bool backward, int microbatch) {
    return waits->row_count +
           ((backward ? waits->graph->edge_count : 0) + edge) * waits->microbatches + microbatch;
}

int wait_edge(const Waits *waits, int transfer, bool *backward) {
    int edge = (transfer - waits->row_count) / waits->microbatches;
    *backward = edge >= waits->graph->edge_count;
    return *backward ? edge - waits->graph->edge_count : edge;
}

/* The list of an event's waits, while it is filled. */
typedef struct WaitList {
    const Waits *waits;
    WaitFor *to;
    int count;
} WaitList;

static void add(WaitList *list, int event, WaitKind kind) {
    list->to[list->count++] = (WaitFor){event, kind};
}

/* Adds the transfers of a row's micro-batch along the edges into its visit, or out of it. */
static void add_transfers(WaitList *list, const GraphSide *side, bool backward,
                          const ScheduleRow *row, WaitKind kind) {
    for (int k = side->first[row->visit]; k < side->first[row->visit + 1]; k++)
        add(list, transfer_at(list->waits, side->list[k], backward, row->microbatch), kind);
}

/* Adds the transfers out of a row's slot, if another visit or micro-batch had the slot before. */
static void add_slot(WaitList *list, int event) {
    const Waits *waits = list->waits;
    const ScheduleRow *row = wait_row(waits, event), *before;
    if (waits->slot_before[event] < 0) return;
    before = wait_row(waits, waits->slot_before[event]);
    if (before->visit == row->visit && before->microbatch == row->microbatch) return;
    add_transfers(list, &waits->links.out, false, before, WAIT_SLOT);
    if (waits->graph->trains) add_transfers(list, &waits->links.in, true, before, WAIT_SLOT);
}

static void add_waits_of_row(WaitList *list, int event) {
    const Waits *waits = list->waits;
    const ScheduleRow *row = wait_row(waits, event);
    if (event > waits->first_row[waits->stage_of[event]]) add(list, event - 1, WAIT_ROW);
    if (row->microbatch)
        add(list, *row_at(waits, row->phase, row->visit, row->microbatch - 1), WAIT_ORDER);
    if (row->phase != SCHEDULE_FORWARD)
        add(list, *row_at(waits, row->phase - 1, row->visit, row->microbatch), WAIT_DATA);
    if (row->phase == SCHEDULE_FORWARD)
        add_transfers(list, &waits->links.in, false, row, WAIT_DATA);
    if (row->phase == SCHEDULE_BACKWARD)
        add_transfers(list, &waits->links.out, true, row, WAIT_DATA);
    add_slot(list, event);
}

static void add_waits_of_transfer(WaitList *list, int event) {
    const Waits *waits = list->waits;
    bool backward;
    const int *edge = waits->graph->edge[wait_edge(waits, event, &backward)];
    int microbatch = (event - waits->row_count) % waits->microbatches;
    SchedulePhase phase = backward ? SCHEDULE_BACKWARD : SCHEDULE_FORWARD;
    int taker = *row_at(waits, phase, edge[!backward], microbatch);
    add(list, *row_at(waits, phase, edge[backward], microbatch), WAIT_DATA);
    if (microbatch) add(list, event - 1, WAIT_ORDER);
    if (waits->slot_before[taker] >= 0) add(list, waits->slot_before[taker], WAIT_SLOT);
    add_slot(list, taker);
}

/* Writes to `to` the events that an event waits for. Returns how many, at most waits_most. */
static int waits_of(const Waits *waits, int event, WaitFor *to) {
    WaitList list = {.waits = waits, .to = to};
    if (event < waits->row_count) add_waits_of_row(&list, event);
    else add_waits_of_transfer(&list, event);
    return list.count;
}

static int waits_most(const Waits *waits) { return 3 + 4 * waits->graph->edge_count; }

/* ---- depth-first visit of the events ---- */

typedef struct Level {
    int event, next; // an event on the stack, and the index of its wait that is visited next
} Level;

typedef struct Visitor {
    Arena *arena;
    const Waits *waits;
    char *seen; // by event: 1: the event is on the stack; 2: the event has ended
    Level *stack;
    int depth;
    WaitFor *waited;
} Visitor;

/* Returns why a row waits for the next row of the cycle. If a transfer is between both rows, the
 * transfer's reason to wait counts, unless that is WAIT_DATA. */
static WaitKind kind_of(Visitor *visitor, int level) {
    const Level *own = &visitor->stack[level];
    waits_of(visitor->waits, own->event, visitor->waited);
    WaitKind kind = visitor->waited[own->next - 1].kind;
    if (visitor->waited[own->next - 1].event < visitor->waits->row_count ||
        level + 1 == visitor->depth)
        return kind;
    const Level *transfer = &visitor->stack[level + 1];
    waits_of(visitor->waits, transfer->event, visitor->waited);
    WaitKind own_kind = visitor->waited[transfer->next - 1].kind;
    return own_kind == WAIT_DATA ? kind : own_kind;
}

/* Returns the cycle of the rows on the stack from `event` to the top. */
static const ScheduleCycle *cycle_from(Visitor *visitor, int event) {
    const Waits *waits = visitor->waits;
    ScheduleCycle *cycle = arena_new(visitor->arena, ScheduleCycle);
    Array(ScheduleWait) list = {0};
    int level = visitor->depth - 1;
    while (visitor->stack[level].event != event) level--;
    for (; level < visitor->depth; level++) {
        int row = visitor->stack[level].event;
        if (row < waits->row_count)
            array_push(
                visitor->arena, &list,
                ((ScheduleWait){waits->stage_of[row], row - waits->first_row[waits->stage_of[row]],
                                kind_of(visitor, level)}));
    }
    *cycle = (ScheduleCycle){list.count, list.at};
    return cycle;
}

static void push(Visitor *visitor, int event) {
    visitor->seen[event] = 1;
    visitor->stack[visitor->depth++] = (Level){event, 0};
}

const ScheduleCycle *
waits_visit(Arena *arena, const Waits *waits,
            void ends(void *state, int event, const WaitFor *waited, int count), void *state) {
    Visitor visitor = {arena,
                       waits,
                       arena_array(arena, char, waits->event_count),
                       arena_array(arena, Level, waits->event_count),
                       0,
                       arena_array(arena, WaitFor, waits_most(waits))};
    for (int begin = 0; begin < waits->event_count; begin++) {
        if (visitor.seen[begin]) continue;
        for (push(&visitor, begin); visitor.depth;) {
            Level *level = &visitor.stack[visitor.depth - 1];
            int count = waits_of(waits, level->event, visitor.waited);
            while (level->next < count && visitor.seen[visitor.waited[level->next].event] == 2)
                level->next++;
            if (level->next == count) {
                visitor.seen[level->event] = 2;
                ends(state, level->event, visitor.waited, count);
                visitor.depth--;
                continue;
            }
            int next = visitor.waited[level->next++].event;
            if (visitor.seen[next] == 1) return cycle_from(&visitor, next);
            push(&visitor, next);
        }
    }
    return NULL;
}
