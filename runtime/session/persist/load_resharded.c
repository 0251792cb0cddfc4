/* Loads checkpoints under any strategy and on any number of ranks: files hold whole tensors,
 * whatever the layout under which they were saved. */
#include "session/persist/checkpoint.h"

#include "base/memory.h"
#include "session/data/boxes.h"
#include "session/persist/saved_tensors.h"
#include "transport/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 1024 };

/* Returns the ranks + 1 bounds of an even split of elements over the ranks; free() it. */
static int64_t *even_bounds(int64_t elements) {
    int ranks = world_size();
    int64_t *bounds = memory_array(ranks + 1, sizeof *bounds);
    for (int rank = 0; rank <= ranks; rank++)
        bounds[rank] = (int64_t)((__int128)elements * rank / ranks);
    return bounds;
}

/* Returns on all ranks the reason of the first rank that has one; NULL: none has. */
static const char *agree(const char *reason) {
    static char text[2 * NAME_ROOM];
    char *all = memory_array(world_size(), sizeof text);
    snprintf(text, sizeof text, "%s", reason ? reason : "");
    world_gather(text, sizeof text, all);
    *text = 0;
    for (int rank = world_size() - 1; rank >= 0; rank--)
        if (all[(size_t)rank * sizeof text])
            memcpy(text, all + (size_t)rank * sizeof text, sizeof text);
    free(all);
    return *text ? text : NULL;
}

/* Loads a tensor into this strategy's layout: each rank reads an even part, and sends its elements
 * to the ranks that hold them. Returns why that failed, or NULL. */
static const char *load_resharded(const SavedTensor *held, const StoredTensor *stored) {
    int me = world_rank();
    int64_t *bounds = even_bounds(held->elements);
    float *values = memory_storage((bounds[me + 1] - bounds[me]) * (int64_t)sizeof(float));
    const char *wrong = agree(stored_read(stored, bounds[me], bounds[me + 1], values));
    if (!wrong)
        boxes_move((Distribution){NULL, held->elements, world_size(), bounds}, values, held->where,
                   held->data, sizeof(float));
    if (held->param && !wrong) param_changed(held->param, param_newest(held->param));
    free(values);
    free(bounds);
    return wrong;
}

/* Loads all tensors, after all checks. Returns why that failed; NULL: loaded. */
static const char *load_stored(const ht_session *session, const SavedTensors *list,
                               const Stored *stored, const char *manifest) {
    const char *wrong = saved_tensors_wrong(list, stored, manifest != NULL);
    wrong = wrong || !manifest ? wrong
                               : saved_tensors_program_wrong(session, list, &stored->at[0].file);
    wrong = wrong || !manifest
                ? wrong
                : verify_checksums(&stored->at[0], manifest, world_rank(), world_size());
    wrong = agree(wrong);
    for (int i = 0; i < list->count && !wrong; i++) {
        StoredTensor tensor;
        if (stored_find(stored, list->at[i].name, &tensor))
            wrong = load_resharded(&list->at[i], &tensor);
    }
    return wrong;
}

const char *checkpoint_load(ht_session *session, const char *path, const char *manifest,
                            const char *names) {
    Stored stored;
    checkpoint_wait(session);
    const char *wrong = agree(stored_open(&stored, path, names));
    if (!wrong) {
        SavedTensors list = saved_tensors_list(session);
        wrong = load_stored(session, &list, &stored, manifest);
        saved_tensors_free(&list);
    }
    safetensors_free(&session->loaded);
    if (!wrong) {
        session->loaded = stored.at[0].file;
        stored.at[0].file = (SafeFile){0};
    }
    stored_close(&stored);
    return wrong;
}
