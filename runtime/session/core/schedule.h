/* The rows of a schedule: what a rank does in a step, and when its transfers begin and end. */
#ifndef SESSION_CORE_SCHEDULE_H
#define SESSION_CORE_SCHEDULE_H

#include <hetu/rt.h>

typedef struct Schedule Schedule;

/* Bytes of a role's arena with the slots of its micro-batches behind. */
int64_t schedule_bytes(const ht_image_role *role, const ht_schedule *rows);

/* Finds out when the transfers of this rank begin and end. The worker has its memory, its place,
 * and all that stays as it is. The program's own tags begin at `tags`. */
Schedule *schedule_open(const ht_image *image, const ht_image_role *role, const ht_worker *worker,
                        int tags);
void schedule_close(Schedule *schedule);

/* Runs the rows. */
void schedule_run(const Schedule *schedule, ht_worker *worker);

#endif
