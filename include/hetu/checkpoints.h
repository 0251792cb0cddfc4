/* checkpoints.h: parameters, states and steps in files and in shared memory. Included by hetu.h. */
#ifndef HETU_CHECKPOINTS_H
#define HETU_CHECKPOINTS_H

#include <hetu/session.h>

typedef struct ht_noted {
    const char *name;
    double value;
} ht_noted;
#define ht_note(name, value) ((ht_noted){(name), (double)(value)})

/* Saves a checkpoint: ht_save(session, "runs/a", ht_note("tokens", tokens), ...) copies parameters,
 * states of optimizers, numbers of steps, the seed and the numbers of ht_note. Each rank writes an
 * equal part during the training, and finishes before ht_close. A checkpoint waits in memory while
 * an older one is being written; a newer one replaces the waiting one, with a message on standard
 * error. The file runs/a/step-N.safetensors has whole tensors under their names (state 0 of "w":
 * "w%0"), which other tools open; step-N.manifest, written last, has its checksums. A failed write
 * is reported on standard error. */
#define ht_save(session, folder, ...) ht_save_with((session), (folder), (ht_noted[]){__VA_ARGS__ __VA_OPT__(,) {0}})
void ht_save_with(ht_session *session, const char *folder, const ht_noted *notes);

/* Makes an in-memory checkpoint in shared memory (Gemini) for a folder of checkpoints. Each rank's
 * part is kept on its own host, and on another host if there is one. The copies survive the ranks:
 * when ranks die, heturun restarts them, and ht_resume reads the copies. A call takes the time of a
 * copy; it may be made every few steps. Without heturun the call does nothing. The copies are
 * removed when the run ends. */
#define ht_remember(session, folder, ...) ht_remember_with((session), (folder), (ht_noted[]){__VA_ARGS__ __VA_OPT__(,) {0}})
void ht_remember_with(ht_session *session, const char *folder, const ht_noted *notes);

/* Sets how many checkpoints a folder keeps; older ones are removed (default 3; 0: all are kept). */
void ht_keep(ht_session *session, int checkpoints);

/* Resumes from the newest complete in-memory checkpoint (ht_remember), else from the newest valid
 * checkpoint of a folder. Call it after ht_train and ht_infer; the strategy may be another. An
 * incomplete or damaged checkpoint, or one of another model, is reported on standard error and
 * skipped. Returns the number of steps made before the checkpoint; 0 when there is no checkpoint. A
 * folder that exists and cannot be read ends the program. */
int64_t ht_resume(ht_session *session, const char *folder);

/* Returns whether any rank got SIGTERM, SIGUSR1 or SIGUSR2, which batch systems send before they
 * preempt a job. Call it once a step; if it returns true, main saves and ends the program. A
 * signal handler of main also runs, on rank 0; main then defines the meaning of SIGUSR1 and
 * SIGUSR2. A program that never calls ht_told_to_end, but has saved or resumed, is saved before the
 * next step as by the last ht_save, and exits with 128 + signal. A second SIGTERM, at least a
 * second later, ends the program at once.
 *
 *     for (int64_t step = ht_resume(session, "runs/a"); step < steps && !ht_told_to_end(session);
 *         step++)
 *         ht_step(program, ...);
 *     ht_save(session, "runs/a"); */
bool ht_told_to_end(ht_session *session);

/* Loads parameters, and existing optimizer states and numbers, from a safetensors file (F32, F16 or
 * BF16), or from all such files of a folder. A missing parameter or another shape ends the
 * program. */
void ht_load(ht_session *session, const char *path);

typedef struct ht_stored {
    const char *name, *stored;
    bool transposed; // the file stores the transposed matrix
} ht_stored;

/* Loads parameters from files of other tools. `names` maps names of the session to names of the
 * files and ends with {0}. * stands for a number, equal on both sides; the first matching entry
 * whose tensor exists counts:
 *
 *     static const ht_stored names[] = {{"h*.attn.qkv.w", "h.*.attn.c_attn.weight", .transposed =
 *         true}, ..., {0}}; */
void ht_load_as(ht_session *session, const char *path, const ht_stored *names);

/* Returns the number that ht_note saved under this name in the checkpoint loaded last, or
 * `otherwise` if there is none. */
double ht_noted_value(ht_session *session, const char *name, double otherwise);

#endif
