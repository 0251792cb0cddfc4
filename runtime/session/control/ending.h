/* Saves a checkpoint and ends the program after a signal (base/signals.h). All functions run on
 * rank 0.
 *
 * A main that calls ht_told_to_end handles the signal itself. For a main that does not, but has
 * saved or loaded a checkpoint, the session saves between two steps as ht_save did last. It then
 * ends the program with status 128 + signal.
 */
#ifndef SESSION_CONTROL_ENDING_H
#define SESSION_CONTROL_ENDING_H

#include "session/core/session.h"

/* Makes all ranks defer the signals, which otherwise end a rank at once. */
void ending_heed(ht_session *session);

/* Note the folder and numbers of main's last ht_save, its last ht_remember, or the checkpoint that
 * main loaded. */
void ending_saved(ht_session *session, const char *folder, const ht_noted *noted);
void ending_remembered(ht_session *session, const char *folder, const ht_noted *noted);
void ending_resumed(ht_session *session, const char *folder);

/* Returns the signal that asks the program to end, where it can be saved first or main asks
 * ht_told_to_end; 0: none. */
int ending_signal(const ht_session *session);

/* Saves and ends the program if a signal asks for it, main does not, and main's loop, which goes on
 * with `next`, is at the place of its last save. */
void ending_check(const ht_program *next);

/* Before a step of `next`: the same, and notes which program trains. */
void ending_turn(const ht_program *next);

/* Frees the state of this module at the end of a session. */
void ending_close(ht_session *session);

#endif
