/* Carries out steps of conversions as messages on host memory. A step has one or more rounds. In a
 * round, each rank of the group sends and receives messages, and processes the data of the previous
 * round. The rounds move as many bytes as textbook ring algorithms. One rank reduces an element in
 * the group's order, in f32 at least, and sends the result: all ranks get the same bits.
 *
 *     Rounds rounds = rounds_open(&run, step);
 *     while (rounds_next(&rounds))
 *         carry out rounds.sends and rounds.receives
 */
#pragma once

#include "exchange/channel.h"

typedef struct Rounds {
    // messages of the current round; some may be empty, or to this rank itself
    HostTransfer *sends, *receives;
    int send_count, receive_count;
    /* Private. */
    const ChannelRun *run;
    const ht_reshard_step *step;
    const ht_group *group; // NULL: the step is HT_EXCHANGE
    int members, mine;     // ranks of the group; index of this rank among them
    int64_t size;          // bytes of an element
    int64_t number;        // number of rounds begun
    int64_t folded;        // elements that a round receives from each member to reduce; 0: none
    char *to, *parts;      // memory of the reduced elements; by member: `folded` elements to reduce
} Rounds;

/* Starts the rounds of a step. `run` and `step` must not change until rounds_next returns false. */
Rounds rounds_open(const ChannelRun *run, const ht_reshard_step *step);

/* Processes the data of the previous round, then sets up the next one in `sends` and `receives`.
 * Returns false, and frees the rounds, when the step is done. */
bool rounds_next(Rounds *rounds);

/* Returns a run's extra bytes of memory: the most that one of its rounds receives for reduction. */
int64_t rounds_room(const ChannelRun *run);
