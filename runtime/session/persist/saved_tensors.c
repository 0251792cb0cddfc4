/* Names and orders saved tensors independently of the strategy. Collects the tensors to save, and
 * loads them from in-memory checkpoints. load_resharded.c loads them from files under another
 * strategy; checkpoint/foreign_tensors.c reads those of other programs, such as transformers. */
#include "session/persist/saved_tensors.h"

#include "base/memory.h"
#include "checkpoint/writing.h"
#include "session/data/boxes.h"
#include "transport/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 1024 };

/* ---- the list ---- */

/* Returns "3, 4" for "(3, 4)"; free() it. */
static char *bare_shape(const char *shape) {
    size_t length = strlen(shape);
    return length >= 2 && *shape == '(' ? strndup(shape + 1, length - 2) : strdup(shape);
}

static char *dims_text(ht_dims dims) {
    char text[32 * HT_MAX_RANK] = "";
    for (int d = 0, length = 0; d < dims.rank; d++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%lld", d ? ", " : "",
                           (long long)dims.extent[d]);
    return strdup(text);
}

static void add_held(SavedTensors *list, SavedTensor held) {
    if (list->count == list->room) {
        list->room = 2 * list->room + 64;
        list->at = realloc(list->at, sizeof *list->at * (size_t)list->room);
    }
    if (!list->at || !held.name || !held.shape)
        ht_fail("no memory for a list of %d tensors", list->room);
    list->at[list->count++] = held;
}

/* Returns a state's name, "w%0", or "w%0@1" in training program 1; free() it. NULL: no memory. */
static char *state_name(const char *param, int state, int program) {
    char *name = NULL;
    int length = program ? asprintf(&name, "%s%%%d@%d", param, state, program)
                         : asprintf(&name, "%s%%%d", param, state);
    return length < 0 ? NULL : name;
}

static void list_program(SavedTensors *list, const Program *program, int number) {
    const ht_image *image = program->image;
    for (int p = 0; p < image->param_count; p++)
        for (int s = 0; s < image->params[p].state_count; s++) {
            const ht_pieces *pieces = image->params[p].state[s];
            int64_t elements = boxes_elements(pieces);
            add_held(list,
                     (SavedTensor){.name = state_name(image->params[p].name, s, number),
                                   .shape = bare_shape(image->params[p].shape),
                                   .elements = elements,
                                   .where = {pieces, elements, image->device_count, NULL},
                                   .data = program->slots[image->param_count +
                                                          (ptrdiff_t)p * image->state_count + s]});
        }
}

static SavedTensors list_images(ht_session *session) {
    SavedTensors list = {0};
    for (int p = 0; p < session->params.count; p++) {
        Param *param = session->params.at[p];
        const ParamCopy *copy = param_newest(param);
        add_held(&list, (SavedTensor){.name = strdup(param->name),
                                      .shape = bare_shape(param->shape),
                                      .elements = param->elements,
                                      .where = {copy->pieces, param->elements, param->ranks, NULL},
                                      .data = copy->data,
                                      .param = param});
    }
    for (int p = 0, number = 0; p < session->program_count; p++)
        if (session->programs[p]->image->trains)
            list_program(&list, session->programs[p], number++);
    return list;
}

static SavedTensors list_eager(const ht_session *session, const EagerLibrary *eager) {
    SavedTensors list = {0};
    eager_param *param;
    eager_state state;
    for (int p = 0; (param = eager->store_param(session->eager, p)); p++)
        add_held(&list, (SavedTensor){strdup(param->name),
                                      dims_text(param->shape),
                                      param->count,
                                      {NULL, param->count, 1, NULL},
                                      param->data,
                                      NULL});
    for (int i = 0; eager->store_state(session->eager, i, &state); i++)
        add_held(&list, (SavedTensor){state_name(state.param->name, state.number, state.program),
                                      dims_text(state.param->shape),
                                      state.param->count,
                                      {NULL, state.param->count, 1, NULL},
                                      state.data,
                                      NULL});
    return list;
}

SavedTensors saved_tensors_list(ht_session *session) {
    return session->eager ? list_eager(session, session_eager()) : list_images(session);
}

void saved_tensors_free(SavedTensors *list) {
    for (int i = 0; i < list->count; i++) {
        free(list->at[i].name);
        free(list->at[i].shape);
    }
    free(list->at);
}

/* ---- ranges of a file ---- */

static int64_t *range_bounds(int64_t bytes, int64_t begin, int64_t elements, int size) {
    int ranks = world_size();
    int64_t *bounds = memory_array(ranks + 1, sizeof *bounds);
    for (int rank = 0; rank < ranks; rank++) {
        int64_t from, to, element;
        writing_range(bytes, rank, ranks, &from, &to);
        element = (from - begin) / size;
        bounds[rank] = from < begin ? 0 : element > elements ? elements : element;
    }
    bounds[ranks] = elements;
    return bounds;
}

/* Returns how a tensor at byte `begin` of all `bytes` is spread over ranks; free() its bounds. */
static Distribution held_range(const SavedTensor *held, int64_t bytes, int64_t begin) {
    return (Distribution){NULL, held->elements, world_size(),
                          range_bounds(bytes, begin, held->elements, sizeof(float))};
}

/* Returns where this rank's part of a tensor lies in `range`. In the bytes of all tensors, the
 * tensor begins at byte `begin`, `range` at byte `from`. */
static char *held_in_range(Distribution whole, int64_t begin, int64_t from, char *range) {
    int me = world_rank();
    bool has = whole.bounds[me] < whole.bounds[me + 1];
    return has ? range + (begin + whole.bounds[me] * (int64_t)sizeof(float) - from) : range;
}

SafeFile saved_tensors_file(const SavedTensors *list, const SafeNote *notes, int note_count) {
    SafeFile file = {.count = list->count, .note_count = note_count, .notes = (SafeNote *)notes};
    file.at = memory_array(list->count, sizeof *file.at);
    for (int i = 0; i < list->count; i++) {
        int64_t end = file.bytes + list->at[i].elements * (int64_t)sizeof(float);
        file.at[i] = (SafeTensor){list->at[i].name, "F32", list->at[i].shape, file.bytes, end};
        file.bytes = end;
    }
    return file;
}

void saved_tensors_collect(const SavedTensors *list, const SafeFile *file, int64_t from,
                           char *range) {
    for (int i = 0; i < list->count; i++) {
        Distribution whole = held_range(&list->at[i], file->bytes, file->at[i].begin);
        char *at = held_in_range(whole, file->at[i].begin, from, range);
        boxes_move(list->at[i].where, list->at[i].data, whole, at, sizeof(float));
        free((void *)whole.bounds);
    }
}

void saved_tensors_give(const SavedTensor *held, int64_t bytes, int64_t begin, int64_t from,
                        char *range) {
    Distribution whole = held_range(held, bytes, begin);
    boxes_move(whole, held_in_range(whole, begin, from, range), held->where, held->data,
               sizeof(float));
    if (held->param) param_changed(held->param, param_newest(held->param));
    free((void *)whole.bounds);
}

const char *saved_tensors_wrong(const SavedTensors *list, const Stored *stored, bool whole) {
    static char text[2 * NAME_ROOM];
    for (int i = 0; i < list->count; i++) {
        const SavedTensor *held = &list->at[i];
        StoredTensor tensor;
        bool found = stored_find(stored, held->name, &tensor);
        const char *wrong = found ? stored_wrong(&tensor, held->shape) : NULL;
        if (wrong) return wrong;
        if (found || (!whole && !held->param && strchr(held->name, '%'))) continue;
        snprintf(text, sizeof text,
                 stored->names ? "it has nothing for the parameter \"%.*s\""
                               : "it has no tensor \"%.*s\"",
                 NAME_ROOM, held->name);
        return text;
    }
    return NULL;
}

static bool is_held(const SavedTensors *list, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->at[i].name, name)) return true;
    return false;
}

static bool is_optimizer_state(const char *name) { return strchr(name, '%') != NULL; }

const char *saved_tensors_foreign(const SavedTensors *list, const SafeFile *file, bool all) {
    static char text[4 * NAME_ROOM];
    const char *lacks = NULL, *has = NULL;
    for (int i = 0; i < list->count; i++) {
        const SavedTensor *held = &list->at[i];
        const SafeTensor *there = safetensors_find(file, held->name);
        if (is_optimizer_state(held->name)) continue;
        if (!there) lacks = lacks ? lacks : held->name;
        if (!there || !strcmp(there->shape, held->shape)) continue;
        snprintf(text, sizeof text, "\"%.*s\" is of shape (%s) there, and (%s) in this model",
                 NAME_ROOM, held->name, there->shape, held->shape);
        return text;
    }
    for (int i = 0; i < file->count && !has; i++)
        if (!is_optimizer_state(file->at[i].name) && !is_held(list, file->at[i].name))
            has = file->at[i].name;
    if (!(all ? has || lacks : has && lacks)) return NULL;
    if (!has) snprintf(text, sizeof text, "it lacks \"%.*s\" of this model", NAME_ROOM, lacks);
    else
        snprintf(text, sizeof text, "it has \"%.*s\", which this model lacks%s%.*s%s", NAME_ROOM,
                 has, lacks ? ", and lacks \"" : "", NAME_ROOM, lacks ? lacks : "",
                 lacks ? "\"" : "");
    return text;
}

/* Returns why the `number`th program that trains cannot resume from a file; NULL: it can. If
 * `program` is NULL, the file must have no more than `number` such programs. */
static const char *trained_wrong(const ht_program *program, int number, const SafeFile *file) {
    static char text[3 * NAME_ROOM];
    char step[32], optimizer[32];
    snprintf(step, sizeof step, "step.%d", number);
    snprintf(optimizer, sizeof optimizer, "optimizer.%d", number);
    bool there = safetensors_note(file, step);
    const char *names = safetensors_note(file, optimizer);
    if (there != (program != NULL)) {
        snprintf(text, sizeof text, "it is of %s%d program%s that train%s",
                 there ? "more than " : "", number, number == 1 ? "" : "s", number == 1 ? "s" : "");
        return text;
    }
    if (!there || !names || !program->optimizers || !strcmp(names, program->optimizers))
        return NULL;
    snprintf(text, sizeof text, "it was trained by %.*s, and here %.*s trains", NAME_ROOM, names,
             NAME_ROOM, program->optimizers);
    return text;
}

const char *saved_tensors_program_wrong(const ht_session *session, const SavedTensors *list,
                                        const SafeFile *file) {
    static char text[2 * NAME_ROOM];
    const char *wrong = NULL;
    int trained = 0;
    for (int p = 0; p < session->handle_count && !wrong; p++)
        if (session->handles[p]->trains)
            wrong = trained_wrong(session->handles[p], trained++, file);
    if (wrong || !trained) return wrong;
    for (int i = 0; i < file->count; i++)
        if (!is_held(list, file->at[i].name)) {
            snprintf(text, sizeof text, "it has a tensor \"%.*s\", and no program here does",
                     NAME_ROOM, file->at[i].name);
            return text;
        }
    return trained_wrong(NULL, trained, file);
}
