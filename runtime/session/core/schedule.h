/* Runs a pipeline schedule on this rank: its rows (one part for one micro-batch) in order, and the
 * begin and end of each transfer. */
#ifndef SESSION_CORE_SCHEDULE_H
#define SESSION_CORE_SCHEDULE_H

#include <hetu/rt.h>

typedef struct Schedule Schedule;

/* Returns the bytes of a role's arena, followed by its slots (activation buffers). */
int64_t schedule_bytes(const ht_image_role *role, const ht_schedule *rows);

/* Plans in front of which row each transfer of this rank begins and ends. `worker` must have its
 * arena, pipeline and position. `tags` is the program's first message tag. */
Schedule *schedule_open(const ht_image *image, const ht_image_role *role, const ht_worker *worker,
                        int tags);
void schedule_close(Schedule *schedule);

/* Runs one step: all rows, with the transfers in front of them. */
void schedule_run(const Schedule *schedule, ht_worker *worker);

#endif
