/* Copies of what a session has learnt in the hosts' shared memory (checkpoint/copies.h): each
 * rank's range of it on the rank's own host, and on another, where there is one. All functions are
 * called by all ranks together, and do nothing where HETU_COPIES is not set. */
#ifndef SESSION_PERSIST_MEMORY_CHECKPOINTS_H
#define SESSION_PERSIST_MEMORY_CHECKPOINTS_H

#include "session/core/session.h"

/* Takes a copy, which goes with the folder of checkpoints of a key; the numbers are main's, on rank
 * 0. What cannot be is said once. */
void copies_take(ht_session *session, uint64_t key, int64_t step, const SafeNote *notes,
                 int note_count);

/* The step of the newest copy of a key of which the hosts have all ranges; -1: there is none. */
int64_t copies_find(ht_session *session, uint64_t key);

/* Gives the session what the copy has that copies_find has found; NULL, or why it cannot be used,
 * on all ranks. */
const char *copies_load(ht_session *session);

/* At the end of a session: removes all copies. */
void copies_close(ht_session *session);

#endif
