/* The seconds of a message and of a collective by latency and bandwidth, for passes, planner and
 * simulator alike. reshard/cost/resources.c corrects them by measurements.
 *
 *     latency a, bytes n, bandwidth b, ranks p
 *     message                             a + n / b
 *     all-gather, reduce-scatter          (p - 1) a + (p - 1) / p n / b       n: bytes of the whole
 *     all-reduce                          twice as much
 *     broadcast, reduce                   (p - 1) a + n / b
 *     all-to-all                          (p - 1) a + n / p / b
 *     exchange, all at once               a + n / p / b
 */
#include "cluster/cluster.h"

double link_seconds(const Link *link, double bytes) {
    return link->latency + bytes / link->bandwidth;
}

double verb_seconds(ht_verb verb, int n, double bytes, const Link *link) {
    double rounds = n - 1, share = (double)(n - 1) / n;
    if (verb == HT_ALL_REDUCE) rounds *= 2, share *= 2;
    if (verb == HT_BROADCAST || verb == HT_REDUCE) share = 1;
    if (verb == HT_ALL_TO_ALL || verb == HT_EXCHANGE) share = 1.0 / n;
    return (verb == HT_EXCHANGE ? 1 : rounds) * link->latency + share * bytes / link->bandwidth;
}
