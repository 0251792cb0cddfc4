/* ht_dispatch: chooses the strategy for a batch of sequences of unequal lengths, and the row for
 * each sequence.
 *
 * 1. Each row of a strategy has a capacity, the padding length of its pipeline. A strategy holds a
 *    batch if the i-th longest sequence fits into the i-th longest row, for all i.
 * 2. Step time depends on the strategy, not on the batch: measured, or else estimated by tokens per
 *    device. The fastest strategy that holds the batch is best.
 * 3. The program switches once the time lost by staying exceeds the time of a switch.
 *
 * A thread plans the next batch while the current one trains. Example: rows of capacities 4096,
 * 1024, 1024 hold the lengths 900, 3000, 1000 and get sequences 1, 2, 0.
 */
#ifndef SESSION_CONTROL_DISPATCH_H
#define SESSION_CONTROL_DISPATCH_H

#include "session/core/session.h"

/* Updates the measured step time of the current strategy. */
void dispatch_note(const ht_program *program, double seconds);
void dispatch_close(ht_session *session);

#endif
