/* What a session has learnt, to files and back: parameters, optimizers' states, the number of the
 * step, main's own numbers. */
#ifndef SESSION_PERSIST_CHECKPOINT_H
#define SESSION_PERSIST_CHECKPOINT_H

#include "session/core/session.h"

#include "checkpoint/safetensors.h"

/* All ranks together; the numbers are main's, on rank 0. Returns when the values are copied. They
 * are written beside what follows; while older ones still are, they wait for their turn, and give
 * way to newer ones. */
typedef struct CheckpointRequest {
    int64_t step;
    int keep; // number of checkpoints to keep in the folder; 0: all
    int note_count;
    const SafeNote *notes; // on rank 0
} CheckpointRequest;
void checkpoint_save(ht_session *session, const char *folder, const CheckpointRequest *request);

/* Why a file, or the files of a folder, was not read, on all ranks, or NULL. With a manifest,
 * everything that the session has must be in it, and its checksums must hold; without, parameters
 * are enough. `names` is Stored's. What was read first is in session->loaded. */
const char *checkpoint_load(ht_session *session, const char *path, const char *manifest,
                            const char *names);

/* Whether, on rank 0, something may be written that had to wait. */
bool checkpoint_due(const ht_session *session);

/* All ranks together: begins to write what waits if all have written what was before it. */
void checkpoint_turn(ht_session *session);

/* Waits until what was saved is on the disk; all ranks together. */
void checkpoint_wait(ht_session *session);

/* On rank 0, before anything is registered that ends the session: has the program end with status
 * 1, and not 0, where checkpoint_close has said that the last checkpoints are missing. */
void checkpoint_open(void);

/* Waits, and says where the last checkpoints of the run were not written; all ranks together. */
void checkpoint_close(ht_session *session);

/* ---- in-memory checkpoints ---- */

/* Copies of what a session has learnt in the hosts' shared memory (checkpoint/copies.h): each
 * rank's range of it on the rank's own host, and on another, where there is one. All functions are
 * called by all ranks together, and do nothing where HETU_COPIES is not set. */

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

/* ---- requests of main ---- */

/* Checkpoints as main asks for them, on rank 0. */

/* Steps that the first program that trains has made; 0 where none does. */
int64_t saved_steps(const ht_session *session);

/* ht_save, with main's numbers as they were when so many steps were made. */
void saved_save(ht_session *session, const char *folder, const ht_noted *noted, int64_t noted_at);

/* What stands in front of the names of main's numbers in a checkpoint. */
#define SAVED_NUMBER "number."

#endif
