/* Links between hosts at run time: times messages between hosts while a program trains, and names
 * links that are far slower than the cluster file says (ht_register_links).
 *
 * Between steps, at times, the first ranks of two hosts send each other a message, one after the
 * other. All ranks are there then, so that no other message of the program is on its way. Pairs of
 * hosts take turns in rounds, as teams of a tournament: no two pairs of a round have a host in
 * common.
 *
 *     4 hosts    round 0: 3-0 1-2    round 1: 3-1 2-0    round 2: 3-2 0-1
 *
 * A link is lowered once it carries less than 0.4 of its bandwidth in three looks in a row, two
 * steps apart, and healed once it carries 0.7 of it in three looks. One look then is the best of
 * three messages: what others send for some time makes no link lowered. Looks take a fiftieth of
 * the time, a twentieth where a link is lowered, those after a suspicious one aside. balance.c
 * plans with the links that are lowered.
 *
 * Needs a cluster file of several hosts, and ranks on several machines. HETU_BALANCE=0 turns it
 * off, HETU_BALANCE=quiet its messages. */
#pragma once

#include "session/core/session.h"

enum { LINK_ROUNDS = 3 }; // most rounds of a look

/* On rank 0, before a step: looks at links if it is time. */
void links_turn(ht_program *program);

/* On all ranks: carries out COMMAND_LOOK. */
void links_look(ht_session *session, const Command *command, Payload *payload);

/* On rank 0: return how often a link was lowered or healed so far, and whether any is lowered. */
int links_changes(void);
bool links_lowered(void);

/* On rank 0: returns whether no link is under suspicion, to be lowered or healed soon. */
bool links_settled(void);

/* On rank 0: returns the option --links=a:b:2.5e6,... of hetu-balance with the lowered links; "" if
 * there are none; free() it. */
char *links_word(void);

/* Frees the state at the end of a session. */
void links_close(void);
