/* ht_balance: replans the strategy of a training program when ranks straggle.
 *
 * All functions run on rank 0.
 *
 * 1. balance_turn, before a step, switches to a new strategy once it is compiled.
 * 2. balance_wants says whether the step's command requests a PaceReport from each rank.
 * 3. balance_note, after the step, computes the ranks' rates (session/control/rates.h).
 * 4. If rates have changed, hetu-balance plans a strategy in another process
 *    (session/control/recompile_command.h), and hetucc compiles it as for ht_prepare.
 *
 * No step waits for these processes. Example: rank 5 slows to rate 4; some steps later the program
 * trains under "balanced1", which gives rank 5 less work.
 */
#ifndef SESSION_CONTROL_BALANCE_H
#define SESSION_CONTROL_BALANCE_H

#include "session/core/session.h"

void balance_turn(ht_program *program);
bool balance_wants(const ht_program *program);
void balance_note(ht_program *program, const struct PaceReport *reports);
void balance_close(ht_session *session);

#endif
