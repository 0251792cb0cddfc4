#include "session/schedule.h"

enum { BORDER = 64 }; // bytes: what tensors are aligned to

static int64_t rounded(int64_t bytes) { return (bytes + BORDER - 1) / BORDER * BORDER; }

int64_t schedule_arena(const ht_image_role *role) { return rounded(role->arena_bytes); }

int64_t schedule_slot(const ht_image_role *role) { return rounded(role->slot_bytes); }

/* Runs a part for a micro-batch. */
static void run_row(const ht_row *row, const ht_image_role *role, ht_worker *worker, char *kept)
{
    const ht_pipeline *pipeline = worker->pipeline;
    worker->microbatch = row->microbatch;
    worker->row = pipeline->first_row + row->microbatch * pipeline->rows;
    worker->kept = row->slot < 0 ? NULL : kept + row->slot * schedule_slot(role);
    if (role->parts[row->part].run)
        role->parts[row->part].run(worker);
}

void schedule_run(const ht_schedule *schedule, const ht_image_role *role, ht_worker *worker, char *kept)
{
    for (int r = 0; r < schedule->row_count; r++)
        run_row(&schedule->row[r], role, worker, kept);
}
