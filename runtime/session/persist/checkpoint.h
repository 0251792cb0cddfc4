/* Checkpoints of a session: parameters, states, step numbers, and the numbers of ht_note. */
#pragma once

#include "session/core/session.h"

#include "checkpoint/safetensors.h"

/* A request for a checkpoint. */
typedef struct CheckpointRequest {
    int64_t step;
    int keep; // number of checkpoints to keep in the folder; 0: all
    int note_count;
    const SafeNote *notes; // metadata with the numbers of ht_note, on rank 0
} CheckpointRequest;

/* Saves a checkpoint. Returns when the values are copied; a thread writes them while training goes
 * on. The copy waits while an older checkpoint is being written, and is dropped if a newer one
 * comes first. All ranks call it together. */
void checkpoint_save(ht_session *session, const char *folder, const CheckpointRequest *request);

/* Loads a file, or the files of a folder (load_resharded.c). Returns on all ranks why that failed;
 * NULL: loaded. With a manifest, the file must have all tensors of the session and the right
 * checksums; otherwise the parameters suffice. `names`: see foreign_tensors.h. session->loaded gets
 * the first header. */
const char *checkpoint_load(ht_session *session, const char *path, const char *manifest,
                            const char *names);

/* On rank 0: returns why a folder's newest valid checkpoint is of another model, with the name of
 * its file; NULL: it is of this model, another user owns it, or there is none. `all`: see
 * saved_tensors_foreign. The text is valid until the next call. */
const char *checkpoint_foreign(ht_session *session, const char *folder, bool all);

/* On rank 0: returns whether a waiting checkpoint can be written now. */
bool checkpoint_due(const ht_session *session);

/* Begins to write the waiting checkpoint if all ranks have written the last. All ranks call it. */
void checkpoint_turn(ht_session *session);

/* Waits until all checkpoints are on the disk. All ranks call it together. */
void checkpoint_wait(ht_session *session);

/* On rank 0: registers an exit handler that turns exit status 0 into 1 if the last checkpoints were
 * not written. Called before any other exit handler is registered. */
void checkpoint_open(void);

/* Waits until all checkpoints are on the disk; reports if the last were not. All ranks call it. */
void checkpoint_close(ht_session *session);

/* ---- in-memory checkpoints ---- */

/* In-memory checkpoints (checkpoint/copies.h): each rank's range is in the shared memory of its own
 * host, and of another host if there is one. All ranks call each function together. The functions
 * do nothing if HETU_COPIES is not set. */

/* Takes an in-memory checkpoint; `key` is that of the folder of checkpoints (copies_key). `notes`
 * is the metadata, on rank 0. Prints a message once if no copies can be taken. */
void copies_take(ht_session *session, uint64_t key, int64_t step, const SafeNote *notes,
                 int note_count);

/* Returns the step of the newest complete copy with a key; -1: there is none. */
int64_t copies_find(ht_session *session, uint64_t key);

/* Loads the copy that copies_find has found. Returns on all ranks why it failed; NULL: loaded. */
const char *copies_load(ht_session *session);

/* Removes all copies at the end of a session. */
void copies_close(ht_session *session);

/* ---- requests of main ---- */

/* Checkpoints for which main calls ht_save. These functions are for rank 0. */

/* Returns the number of steps of the first program that trains; 0: none trains. */
int64_t saved_steps(const ht_session *session);

/* Saves as ht_save does, but without checks. `noted_at`: the step after which main gave `noted`. */
void saved_save(ht_session *session, const char *folder, const ht_noted *noted, int64_t noted_at);

/* Prefix of the names of ht_note numbers in a checkpoint. */
#define SAVED_NUMBER "number."
