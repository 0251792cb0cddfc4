/* Measurements of collectives on a link, by which latency and bandwidth are corrected.
 * tools/hetu-reshard/measure.c and measure_hosts.c make them. */
#pragma once

#include "cluster/cluster.h"

/* Seconds of a verb on `groups` groups of `ranks` devices at once, by the bytes of one group. */
struct Measured {
    ht_verb verb;
    bool one_way; // HT_EXCHANGE: half of the devices only send, the other half only receives
    bool alone;   // HT_BROADCAST, HT_REDUCE: only the root has a processor for itself
    int ranks, groups;
    int64_t processors; // number of processors that the devices of all groups share
    Curve seconds;
};

/* Returns the measurement of a verb by one group whose number of devices is nearest to `ranks`.
 * Numbers from `ranks` on come first when `above` is true, else numbers up to `ranks`. Of equal
 * numbers, the measurement on the most processors is returned. NULL: there is none. */
const Measured *link_measured(const Link *link, ht_verb verb, bool one_way, int ranks, bool above);

/* Returns the measurement of a verb by several groups at once whose number of devices is nearest to
 * `ranks`; NULL: there is no such measurement. */
const Measured *link_crowded(const Link *link, ht_verb verb, int ranks);

/* Returns the measurement of a broadcast or a reduction whose root has a processor for itself while
 * the other devices share theirs; NULL: there is no such measurement. */
const Measured *link_alone(const Link *link, ht_verb verb);

/* Returns the measurement of a verb on two devices that share a processor; NULL: there is none. */
const Measured *link_in_turn(const Link *link, ht_verb verb, bool one_way);

/* Returns how many devices of a measurement shared each processor, rounded up. */
double measured_share(const Measured *measured);
