/* Programs that stay balanced while they train: ht_balance.
 *
 * On rank 0, step by step: balance_turn in front of a step goes to a strategy that is ready;
 * balance_ask has the ranks report their pace with the step's command, and balance_note reads the
 * reports (session/control/rates.h). When rates have moved, hetu-balance plans in a process of its
 * own (session/control/recompile_command.h), ht_prepare has what it has planned made, and the
 * switch is the one of ht_switch. No step waits for either process.
 */
#ifndef SESSION_CONTROL_BALANCE_H
#define SESSION_CONTROL_BALANCE_H

#include "session/core/session.h"

void balance_turn(ht_program *program);
void balance_ask(const ht_program *program, Command *command);
void balance_note(ht_program *program, const struct PaceReport *reports);
void balance_close(ht_session *session);

#endif
