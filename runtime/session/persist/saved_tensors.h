/* What a session has learnt, as tensors under global names, and ranges of the bytes of them all:
 * what checkpoints and copies in shared memory are made of. The layout of neither depends on a
 * strategy. */
#ifndef SESSION_PERSIST_SAVED_TENSORS_H
#define SESSION_PERSIST_SAVED_TENSORS_H

#include "checkpoint/stored.h"
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

/* All of a session, in an order that all ranks have; saved_tensors_free frees it. */
SavedTensors saved_tensors_list(ht_session *session);
void saved_tensors_free(SavedTensors *list);

/* The tensors with their places in a file, one behind another; free its `at`. */
SafeFile saved_tensors_file(const SavedTensors *list, const SafeNote *notes, int note_count);

/* What is wrong with the tensors that are stored, for what the session has, where it must all be
 * there, or else parameters alone; the text is kept until the next call. */
const char *saved_tensors_wrong(const SavedTensors *list, const Stored *stored, bool whole);

/* What is wrong with a file that the programs of rank 0 are to go on from as they are: it has
 * tensors that they lack, other programs that train, or other optimizers. NULL: nothing; so on
 * other ranks, and where nothing trains, which takes parameters alone. Kept as that of
 * saved_tensors_wrong. */
const char *saved_tensors_program_wrong(const ht_session *session, const SavedTensors *list,
                                        const SafeFile *file);

/* All ranks together: this rank's bytes of all tensors, which begin at `from` (writing_range of
 * world_size), go to `range`. */
void saved_tensors_collect(const SavedTensors *list, const SafeFile *file, int64_t from,
                           char *range);

/* All ranks together: gives a tensor, which begins at `begin` of all `bytes`, its values from the
 * ranges of all ranks. */
void saved_tensors_give(const SavedTensor *held, int64_t bytes, int64_t begin, int64_t from,
                        char *range);

#endif
