/* The rows of a schedule: what a rank does in a step, in order. */
#ifndef SESSION_SCHEDULE_H
#define SESSION_SCHEDULE_H

#include <hetu/rt.h>

/* Bytes of a role's arena, and of a slot, each rounded up so that what lies behind is aligned. */
int64_t schedule_arena(const ht_image_role *role);
int64_t schedule_slot(const ht_image_role *role);

/* Runs the rows. The slots of micro-batches lie at `kept`, one after another. */
void schedule_run(const ht_schedule *schedule, const ht_image_role *role, ht_worker *worker, char *kept);

#endif
