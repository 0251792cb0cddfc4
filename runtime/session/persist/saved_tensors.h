/* The tensors of a session under global names, and ranges of their bytes. Checkpoints and in-memory
 * checkpoints consist of these, in a layout that does not depend on a strategy. */
#pragma once

#include "checkpoint/foreign_tensors.h"
#include "session/core/session.h"

/* A tensor that outlives a step. */
typedef struct SavedTensor {
    char *name;
    char *shape; // "3, 4"
    int64_t elements;
    Distribution where;
    void *data;
    Param *param; // NULL: a state
} SavedTensor;

typedef struct SavedTensors {
    int count, room;
    SavedTensor *at;
} SavedTensors;

/* Returns all tensors of a session in one order on all ranks; saved_tensors_free frees them. */
SavedTensors saved_tensors_list(ht_session *session);
void saved_tensors_free(SavedTensors *list);

/* Returns the tensors with consecutive offsets in a file; free() its `at`. */
SafeFile saved_tensors_file(const SavedTensors *list, const SafeNote *notes, int note_count);

/* Returns why stored tensors do not fit the session; NULL: they fit. `whole`: all tensors must be
 * stored, else the parameters suffice. The text is valid until the next call. */
const char *saved_tensors_wrong(const SavedTensors *list, const Stored *stored, bool whole);

/* Returns on rank 0 why main's programs cannot resume from a file: the file has tensors that the
 * programs lack, other programs that train, or other optimizers. NULL: they can, no program trains
 * (only parameters are loaded), or this is another rank. The text is valid until the next call. */
const char *saved_tensors_program_wrong(const ht_session *session, const SavedTensors *list,
                                        const SafeFile *file);

/* Returns why a file is of another model than the session: a parameter has another shape, or each
 * side (`all`: one side) has a parameter that the other lacks. NULL: both are of the same model.
 * Optimizer states may differ. The text is valid until the next call. */
const char *saved_tensors_foreign(const SavedTensors *list, const SafeFile *file, bool all);

/* Collects this rank's range of all tensors' bytes, which begins at byte `from` (writing_range with
 * world_size ranks), in `range`. All ranks call it together. */
void saved_tensors_collect(const SavedTensors *list, const SafeFile *file, int64_t from,
                           char *range);

/* Loads a tensor, which begins at byte `begin` of all `bytes`, from all ranks' ranges. This rank's
 * `range` begins at byte `from`. All ranks call it together. */
void saved_tensors_give(const SavedTensor *held, int64_t bytes, int64_t begin, int64_t from,
                        char *range);
