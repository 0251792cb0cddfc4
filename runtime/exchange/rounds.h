/* Steps of conversions as messages on host memory. A step is one round or several: every rank of
 * the group sends and receives, and works on what has come. The rounds move as many bytes as the
 * textbook's algorithms need. What is reduced is added up on one rank in the order of the group, in
 * f32 at least, and sent to the others, so that all hold the same bits.
 *
 *     Rounds rounds = rounds_open(&run, step);
 *     while (rounds_next(&rounds))
 *         carry out rounds.sends and rounds.receives
 */
#ifndef EXCHANGE_ROUNDS_H
#define EXCHANGE_ROUNDS_H

#include "exchange/channel.h"

typedef struct Rounds {
    // of the round at hand; some may be empty, or to this rank itself
    HostTransfer *sends, *receives;
    int send_count, receive_count;
    /* What is not for the caller. */
    const ChannelRun *run;
    const ht_reshard_step *step;
    const ht_group *group; // NULL: the step is HT_EXCHANGE
    int members, mine;
    int64_t size;   // of an element
    int64_t number; // of rounds that were begun
    int64_t folded; // elements that come from every member, to be reduced
    char *to, *parts;
} Rounds;

/* `run` and `step` stay as they are until the last round is done. */
Rounds rounds_open(const ChannelRun *run, const ht_reshard_step *step);

/* Works on what the round before has brought, and gives the next one; false when the step is
 * done. */
bool rounds_next(Rounds *rounds);

/* The most bytes that come in a round of a run to be reduced: memory beside that which it reads and
 * writes. */
int64_t rounds_room(const ChannelRun *run);

#endif
