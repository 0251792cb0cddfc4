/* What a session has learnt, to files and back: parameters, optimizers' states, the number of the step, main's own numbers. */
#ifndef SESSION_CHECKPOINT_H
#define SESSION_CHECKPOINT_H

#include "session/session.h"

#include "checkpoint/safetensors.h"

/* All ranks together; `text` is the folder, or the file, and the numbers are main's, on rank 0. Saving returns when the values are copied.
 */
void checkpoint_save(ht_session *session, const char *text, int64_t step, int keep, const SafeNote *notes, int note_count);

/* Why the file was not read, on all ranks, or NULL. With `whole`, everything that the session has must be in it, and the checksums of its
 * manifest must hold; without, its parameters are enough. What was read is in session->loaded. */
const char *checkpoint_load(ht_session *session, const char *file, const char *manifest);

/* Waits until what was saved is on the disk. */
void checkpoint_wait(ht_session *session);

#endif
