/* Steps of a run that do not depend on each other, so that a channel may carry them out as one. */
#ifndef EXCHANGE_EXCHANGE_THREAD_H
#define EXCHANGE_EXCHANGE_THREAD_H

#include "exchange/channel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether neither of two steps writes memory that the other one reads or writes. */
bool steps_apart(const ChannelRun *run, const ht_reshard_step *a, const ht_reshard_step *b);

/* The collective that may be issued together with those from `first` to `step`, of the same verb
 * and group: only moves are in between, which run before all of them, and none of these depend on
 * each other. NULL: there is none; so it is where devices of the plan do not all do the same, since
 * all members of a group must issue together what one of them does. */
const ht_reshard_step *steps_next_together(const ChannelRun *run, const ht_reshard_step *first,
                                           const ht_reshard_step *step);

#ifdef __cplusplus
}
#endif

#endif
