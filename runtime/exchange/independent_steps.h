/* Finds independent steps of a run, which a channel may issue together (NCCL: in one group call).
 */
#ifndef EXCHANGE_EXCHANGE_THREAD_H
#define EXCHANGE_EXCHANGE_THREAD_H

#include "exchange/channel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether two steps are independent: neither writes memory that the other reads or writes.
 */
bool steps_apart(const ChannelRun *run, const ht_reshard_step *a, const ht_reshard_step *b);

/* Returns the next collective after `step` that can be issued together with those from `first` to
 * `step`, or NULL. It has the same verb and group, and it is independent of them. Only local moves
 * may lie in between; they run first. Returns NULL, too, if the devices of the plan have different
 * steps: all members of a group must issue the same calls. */
const ht_reshard_step *steps_next_together(const ChannelRun *run, const ht_reshard_step *first,
                                           const ht_reshard_step *step);

#ifdef __cplusplus
}
#endif

#endif
