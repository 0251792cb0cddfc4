/* What a session has learnt, to files and back: parameters, optimizers' states, the number of the step, main's own numbers. */
#ifndef SESSION_CHECKPOINT_H
#define SESSION_CHECKPOINT_H

#include "session/session.h"

#include "checkpoint/safetensors.h"

/* All ranks together; `text` is the folder, or the file, and the numbers are main's, on rank 0. Saving returns when the values are copied.
 */
void checkpoint_save(ht_session *session, const char *text, int64_t step, int keep, const SafeNote *notes, int note_count);

/* Why a file, or the files of a folder, was not read, on all ranks, or NULL. With a manifest, everything that the session has must be in it, and
 * its checksums must hold; without, parameters are enough. `names` is Stored's. What was read first is in session->loaded. */
const char *checkpoint_load(ht_session *session, const char *path, const char *manifest, const char *names);

/* Waits until what was saved is on the disk. */
void checkpoint_wait(ht_session *session);

#endif
