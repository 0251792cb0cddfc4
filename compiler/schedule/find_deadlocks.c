/* Proves that a pipeline schedule has no deadlock (a cycle of wait_graph.c), and that no slot has
 * two users at a time. */
#include "schedule/wait_graph.h"

static const char *const part_words[] = {"forward", "backward", "weights"};

/* Returns the name of a row in messages: "forward of visit 0, micro-batch 3". */
static const char *schedule_row_shown(Arena *arena, const ScheduleRow *row) {
    return arena_format(arena, "%s of visit %d, micro-batch %d", part_words[row->phase], row->visit,
                        row->microbatch);
}

static void nothing(void *state, int event, const WaitFor *waited, int count) {
    (void)state, (void)event, (void)waited, (void)count;
}

const ScheduleCycle *schedule_cycle(Arena *arena, const StageGraph *graph,
                                    const Schedule *schedule) {
    Waits waits = waits_create(arena, graph, schedule);
    return waits_visit(arena, &waits, nothing, NULL);
}

typedef struct Checker {
    Arena *arena;
    Diag *diag;
    Position at;
    const StageGraph *graph;
    const Schedule *schedule;
    int microbatches, parts;
} Checker;

static Position place_of(const Checker *checker, int stage, int row) {
    return checker->schedule->at && row < checker->schedule->row_count[stage]
               ? checker->schedule->at[stage][row]
               : checker->at;
}

/* Reports an error of a row and returns false. */
static bool row_error(const Checker *checker, int stage, int row, const char *what) {
    diag_error(checker->diag, place_of(checker, stage, row), "stage %d: %s %s", stage,
               schedule_row_shown(checker->arena, &checker->schedule->rows[stage][row]), what);
    return false;
}

static void report_cycle(const Checker *checker, const ScheduleCycle *cycle) {
    static const char *const reasons[] = {[WAIT_ROW] = "stands behind",
                                          [WAIT_DATA] = "needs what is made by",
                                          [WAIT_ORDER] = "has to follow",
                                          [WAIT_SLOT] = "needs a slot that is free only behind"};
    for (int i = 0; i < cycle->count; i++) {
        const ScheduleWait *wait = &cycle->waits[i], *next = &cycle->waits[(i + 1) % cycle->count];
        const char *own =
            schedule_row_shown(checker->arena, &checker->schedule->rows[wait->stage][wait->row]);
        const char *other =
            schedule_row_shown(checker->arena, &checker->schedule->rows[next->stage][next->row]);
        Position at = place_of(checker, wait->stage, wait->row);
        if (!i)
            diag_error(checker->diag, at,
                       "this schedule stands still: %d row%s wait%s for each other", cycle->count,
                       cycle->count > 1 ? "s" : "", cycle->count > 1 ? "" : "s");
        diag_note(checker->diag, at, "stage %d: %s %s %s (stage %d)", wait->stage, own,
                  reasons[wait->kind], other, next->stage);
    }
}

/* Returns whether a row has a phase, visit, micro-batch and slot of its stage; reports errors. */
static bool row_fits(const Checker *checker, int stage, int row) {
    const ScheduleRow *own = &checker->schedule->rows[stage][row];
    if (own->visit < 0 || own->visit >= checker->graph->visit_count ||
        checker->graph->stage_of[own->visit] != stage)
        return row_error(checker, stage, row, "is no visit of this stage");
    if (own->microbatch < 0 || own->microbatch >= checker->microbatches)
        return row_error(
            checker, stage, row,
            arena_format(checker->arena, "is none of the %d micro-batches", checker->microbatches));
    if (own->slot < 0 || own->slot >= checker->schedule->slot_count[stage])
        return row_error(checker, stage, row,
                         arena_format(checker->arena, "has none of the stage's %d slots",
                                      checker->schedule->slot_count[stage]));
    return (int)own->phase < checker->parts ||
           row_error(checker, stage, row, "is no part of a program that does not train");
}

/* Returns whether a stage lists each phase of its visits and micro-batches once; reports errors. */
static bool rows_are_whole(const Checker *checker, int stage) {
    int count = checker->graph->visit_count * checker->microbatches, expected = 0;
    char *seen = arena_array(checker->arena, char, count *SCHEDULE_PHASES);
    for (int v = 0; v < checker->graph->visit_count; v++)
        expected +=
            checker->graph->stage_of[v] == stage ? checker->parts * checker->microbatches : 0;
    for (int i = 0; i < checker->schedule->row_count[stage]; i++) {
        const ScheduleRow *row = &checker->schedule->rows[stage][i];
        if (!row_fits(checker, stage, i)) return false;
        if (seen[(int)row->phase * count + row->visit * checker->microbatches + row->microbatch]++)
            return row_error(checker, stage, i, "stands here a second time");
    }
    if (checker->schedule->row_count[stage] == expected) return true;
    diag_error(checker->diag, place_of(checker, stage, 0),
               "stage %d has %d rows, but its parts for %d micro-batches are %d", stage,
               checker->schedule->row_count[stage], checker->microbatches, expected);
    return false;
}

/* Reports a row that takes a slot before a later row releases it: a deadlock. Returns false. */
static bool taken_error(const Checker *checker, int stage, int row, int visit, int microbatch) {
    ScheduleWait waits[] = {{stage, row, WAIT_SLOT}, {stage, row, WAIT_ROW}};
    for (int i = row; i < checker->schedule->row_count[stage]; i++)
        if (checker->schedule->rows[stage][i].visit == visit &&
            checker->schedule->rows[stage][i].microbatch == microbatch)
            waits[1].row = i;
    report_cycle(checker, &(ScheduleCycle){2, waits});
    return false;
}

/* Returns whether slots are exclusive: no two pairs of visit and micro-batch use one at a time, and
 * no slot passes to another visit of the same micro-batch. A pair uses its slot from its first row
 * to its last. Reports the first error. */
static bool slots_are_apart(const Checker *checker, int stage) {
    typedef struct Owner {
        int visit, microbatch, rows;
        bool used;
    } Owner;
    Owner *owners = arena_array(checker->arena, Owner, checker->schedule->slot_count[stage] + 1);
    for (int i = 0; i < checker->schedule->row_count[stage]; i++) {
        const ScheduleRow *row = &checker->schedule->rows[stage][i];
        Owner *owner = &owners[row->slot];
        bool same = owner->visit == row->visit && owner->microbatch == row->microbatch;
        if (owner->rows && !same)
            return taken_error(checker, stage, i, owner->visit, owner->microbatch);
        if (!owner->rows && owner->used && !same && owner->microbatch == row->microbatch)
            return row_error(checker, stage, i,
                             arena_format(checker->arena,
                                          "takes slot %d from another visit of its micro-batch",
                                          row->slot));
        *owner = (Owner){row->visit, row->microbatch, (owner->rows + 1) % checker->parts, true};
    }
    return true;
}

bool schedule_check(Diag *diag, Position at, const StageGraph *graph, const Schedule *schedule,
                    int64_t microbatches) {
    Checker checker = {arena_create(),
                       diag,
                       at,
                       graph,
                       schedule,
                       (int)microbatches,
                       graph->trains ? SCHEDULE_PHASES : 1};
    bool good = schedule->stage_count == graph->stage_count;
    if (!good)
        diag_error(diag, at, "this schedule has %d stages, but the pipeline has %d",
                   schedule->stage_count, graph->stage_count);
    for (int s = 0; good && s < graph->stage_count; s++)
        good = rows_are_whole(&checker, s) && slots_are_apart(&checker, s);
    const ScheduleCycle *cycle = good ? schedule_cycle(checker.arena, graph, schedule) : NULL;
    if (cycle) report_cycle(&checker, cycle);
    arena_destroy(checker.arena);
    return good && !cycle;
}
