/* What a session has learnt, to files and back: parameters, optimizers' states, the number of the
 * step, main's own numbers. */
#ifndef SESSION_PERSIST_CHECKPOINT_H
#define SESSION_PERSIST_CHECKPOINT_H

#include "session/core/session.h"

#include "checkpoint/safetensors.h"

/* All ranks together; the numbers are main's, on rank 0. Returns when the values are copied. They
 * are written beside what follows; while older ones still are, they wait for their turn, and give
 * way to newer ones. */
void checkpoint_save(ht_session *session, const char *text, int64_t step, int keep,
                     const SafeNote *notes, int note_count);

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

#endif
