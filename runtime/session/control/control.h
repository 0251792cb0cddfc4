/* Functions that a session calls for ht_balance, for ht_dispatch and to end after a signal. */
#pragma once

#include "session/core/session.h"

/* ---- balance ---- */

/* ht_balance, load balancing: replans the strategy of a training program when ranks straggle.
 *
 * All functions run on rank 0.
 *
 * 1. balance_turn, before a step, switches to a new strategy once it is compiled. Under
 *    HETU_BALANCE=1 it begins to balance the first program that trains.
 * 2. balance_wants says whether the step's command requests a PaceReport from each rank.
 * 3. balance_note, after the step, computes the ranks' rates (session/control/rates.h).
 * 4. If rates have changed, hetu-balance plans a strategy in another process
 *    (session/control/recompile_command.h), and hetucc compiles it as for ht_prepare.
 *
 * No step waits for these processes. Example: rank 5 slows to rate 4; some steps later the program
 * trains under "balanced1", which gives rank 5 less work. */

/* Returns whether the environment asks to balance programs that do not call ht_balance, too
 * (HETU_BALANCE=1). */
bool balance_all(void);

void balance_turn(ht_program *program);
bool balance_wants(const ht_program *program);
void balance_note(ht_program *program, const struct PaceReport *reports);
void balance_close(ht_session *session);

/* ---- dispatch ---- */

/* ht_dispatch: chooses the strategy and rows for a batch of sequences of unequal lengths.
 *
 * 1. Each row of a strategy has a capacity, the padding length of its pipeline. A strategy holds a
 *    batch if the i-th longest sequence fits into the i-th longest row, for all i.
 * 2. The step time depends on the strategy, not on the batch. The time is measured, or else
 *    estimated from the tokens per device. The fastest strategy that holds the batch is best.
 * 3. The program switches once the time lost by staying exceeds the time of a switch.
 *
 * A thread plans the next batch while the current one trains. Example: rows of capacities 4096,
 * 1024, 1024 hold the lengths 900, 3000, 1000 and get sequences 1, 2, 0. */

/* Updates the strategy's mean step time by a step of `seconds`; skips the first after a switch. */
void dispatch_note(const ht_program *program, double seconds);
void dispatch_close(ht_session *session);

/* ---- ending ---- */

/* Saves a checkpoint and ends the program after a signal (base/signals.h). All functions below run
 * on rank 0. A main that calls ht_told_to_end handles the signal itself. For a main that does not,
 * but has saved or loaded a checkpoint, the session saves between two steps as ht_save did last,
 * then ends the program with status 128 + signal. */

/* Makes all ranks defer the signals, which otherwise end a rank at once. */
void ending_heed(ht_session *session);

/* Note the folder and numbers (ht_note) of main's last ht_save or loaded checkpoint. If `folder` is
 * the noted one, ending_remembered notes the numbers. ending_resumed also calls ending_heed. */
void ending_saved(ht_session *session, const char *folder, const ht_noted *noted);
void ending_remembered(ht_session *session, const char *folder, const ht_noted *noted);
void ending_resumed(ht_session *session, const char *folder);

/* Returns the signal that asks the program to end; 0: none. Also returns 0 if main does not call
 * ht_told_to_end and has neither saved nor loaded a checkpoint. */
int ending_signal(const ht_session *session);

/* Saves and ends the program after a signal, unless main calls ht_told_to_end or is about to save.
 * Acts only where main saved last in its loop; `next` is the program that main runs next. */
void ending_check(const ht_program *next);

/* Calls ending_check before a step of `next`, and notes which program trains. */
void ending_turn(const ht_program *next);

/* Frees the state of this module at the end of a session. */
void ending_close(ht_session *session);
