#define _GNU_SOURCE
#include "session/checkpoint.h"

#include "base/memory.h"
#include "checkpoint/stored.h"
#include "checkpoint/writing.h"
#include "transport/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, NAME_ROOM = 1024 };

/* ---- what there is ---- */

/* A tensor that outlives a step. */
typedef struct Held {
    char *name;
    char *shape; // "3, 4"
    int64_t elements;
    Distribution where;
    void *data;
    Param *param; // NULL: a state
} Held;

typedef struct HeldList {
    int count, room;
    Held *at;
} HeldList;

/* "(3, 4)" as "3, 4". */
static char *bare_shape(const char *shape)
{
    size_t length = strlen(shape);
    return length >= 2 && *shape == '(' ? strndup(shape + 1, length - 2) : strdup(shape);
}

static char *dims_text(ht_dims dims)
{
    char text[32 * HT_MAX_RANK] = "";
    for (int d = 0, length = 0; d < dims.rank; d++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%lld", d ? ", " : "", (long long)dims.extent[d]);
    return strdup(text);
}

static void add_held(HeldList *list, Held held)
{
    if (list->count == list->room) {
        list->room = 2 * list->room + 64;
        list->at = realloc(list->at, sizeof *list->at * (size_t)list->room);
    }
    if (!list->at || !held.name || !held.shape)
        ht_fail("no memory for a list of %d tensors", list->room);
    list->at[list->count++] = held;
}

/* State `state` of a parameter, of the `program`th program that trains. */
static char *state_name(const char *param, int state, int program)
{
    char *name = NULL;
    int length = program ? asprintf(&name, "%s%%%d@%d", param, state, program) : asprintf(&name, "%s%%%d", param, state);
    return length < 0 ? NULL : name;
}

static void list_program(HeldList *list, const Program *program, int number)
{
    const ht_image *image = program->image;
    for (int p = 0; p < image->param_count; p++)
        for (int s = 0; s < image->params[p].state_count; s++) {
            const ht_pieces *pieces = image->params[p].state[s];
            int64_t elements = pieces_elements(pieces);
            add_held(list, (Held){.name = state_name(image->params[p].name, s, number),
                                  .shape = bare_shape(image->params[p].shape),
                                  .elements = elements,
                                  .where = {pieces, elements, image->device_count, NULL},
                                  .data = program->slots[image->param_count + (ptrdiff_t)p * image->state_count + s]});
        }
}

static HeldList list_images(ht_session *session)
{
    HeldList list = {0};
    for (int p = 0; p < session->params.count; p++) {
        Param *param = session->params.at[p];
        const ParamCopy *copy = param_newest(param);
        add_held(&list, (Held){.name = strdup(param->name),
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

static HeldList list_eager(const ht_session *session, const EagerLibrary *eager)
{
    HeldList list = {0};
    eager_param *param;
    eager_state state;
    for (int p = 0; (param = eager->store_param(session->eager, p)); p++)
        add_held(&list, (Held){strdup(param->name), dims_text(param->shape), param->count, {NULL, param->count, 1, NULL}, param->data, NULL});
    for (int i = 0; eager->store_state(session->eager, i, &state); i++)
        add_held(&list, (Held){state_name(state.param->name, state.number, state.program), dims_text(state.param->shape), state.param->count,
                               {NULL, state.param->count, 1, NULL}, state.data, NULL});
    return list;
}

static HeldList list_held(ht_session *session)
{
    return session->eager ? list_eager(session, session_eager()) : list_images(session);
}

static void free_held(HeldList *list)
{
    for (int i = 0; i < list->count; i++) {
        free(list->at[i].name);
        free(list->at[i].shape);
    }
    free(list->at);
}

/* ---- ranges of a file ---- */

/* How the elements of a tensor, whose bytes begin at `begin` of the tensors and take `size` each, lie in the ranges of all ranks. */
static int64_t *range_bounds(int64_t bytes, int64_t begin, int64_t elements, int size)
{
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

/* ---- saving ---- */

/* The tensors with their places in the file. */
static SafeFile plan_file(const HeldList *list, const SafeNote *notes, int note_count)
{
    SafeFile file = {.count = list->count, .note_count = note_count, .notes = (SafeNote *)notes};
    file.at = memory_array(list->count, sizeof *file.at);
    for (int i = 0; i < list->count; i++) {
        int64_t end = file.bytes + list->at[i].elements * (int64_t)sizeof(float);
        file.at[i] = (SafeTensor){list->at[i].name, "F32", list->at[i].shape, file.bytes, end};
        file.bytes = end;
    }
    return file;
}

/* This rank's bytes of all tensors. */
static char *collect_range(const HeldList *list, const SafeFile *file, int64_t from, int64_t to)
{
    char *range = memory_storage(to - from);
    for (int i = 0; i < list->count; i++) {
        int64_t *bounds = range_bounds(file->bytes, file->at[i].begin, list->at[i].elements, sizeof(float));
        int64_t at = file->at[i].begin + bounds[world_rank()] * (int64_t)sizeof(float) - from;
        bool has = bounds[world_rank()] < bounds[world_rank() + 1];
        pieces_move(list->at[i].where, list->at[i].data, (Distribution){NULL, list->at[i].elements, world_size(), bounds},
                    has ? range + at : range, sizeof(float));
        free(bounds);
    }
    return range;
}

/* Begins to write what waits, when nothing is being written; all ranks together. */
static void begin_waiting(ht_session *session)
{
    WritingPlan *plan = session->waiting;
    if (!plan->rank)
        writing_clear(plan);
    world_least(0); // rank 0 has cleared
    session->writing = writing_begin(plan);
    session->waiting = NULL;
    free(plan);
}

static void end_writing(ht_session *session)
{
    writing_end(session->writing);
    session->writing = NULL;
}

bool checkpoint_due(const ht_session *session) { return session->waiting && writing_done(session->writing); }

void checkpoint_turn(ht_session *session)
{
    if (!session->waiting || !world_least(writing_done(session->writing)))
        return;
    end_writing(session);
    begin_waiting(session);
}

void checkpoint_wait(ht_session *session)
{
    end_writing(session);
    if (session->waiting)
        begin_waiting(session);
    end_writing(session);
}

static void drop_waiting(ht_session *session, int64_t step)
{
    WritingPlan *plan = session->waiting;
    session->waiting = NULL;
    if (plan && !plan->rank)
        fprintf(stderr, "hetu: the checkpoint %s/step-%08lld was not written: an older one still was when that of step %lld came\n", plan->folder,
                (long long)plan->step, (long long)step);
    if (plan)
        writing_drop(plan);
    free(plan);
}

/* Lets what waits have its turn, if that comes soon: a disk that keeps up loses no checkpoint. */
static void wait_a_little(ht_session *session)
{
    enum { TRIES = 200 };
    for (int try = 0; session->waiting && try < TRIES && !writing_done(session->writing); try++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    checkpoint_turn(session);
}

void checkpoint_save(ht_session *session, const char *folder, int64_t step, int keep, const SafeNote *notes, int note_count)
{
    wait_a_little(session);
    drop_waiting(session, step);
    WritingPlan *plan = memory_array(1, sizeof *plan);
    *plan = (WritingPlan){.step = step, .rank = world_rank(), .ranks = world_size(), .keep = keep};
    int64_t to;
    snprintf(plan->folder, sizeof plan->folder, "%s", folder);
    HeldList list = list_held(session);
    SafeFile file = plan_file(&list, notes, note_count);
    writing_range(file.bytes, plan->rank, plan->ranks, &plan->at, &to);
    plan->bytes = to - plan->at;
    plan->range = collect_range(&list, &file, plan->at, to);
    plan->header = plan->rank ? NULL : safetensors_header(&file, &plan->header_bytes);
    world_broadcast(&plan->header_bytes, sizeof plan->header_bytes);
    session->waiting = plan;
    checkpoint_turn(session);
    free(file.at);
    free_held(&list);
}

/* ---- loading ---- */

/* What is wrong with the tensors that are stored, for what the session has, where it must all be there, or else parameters alone; the text is
 * kept until the next call. */
static const char *find_wrong(const HeldList *list, const Stored *stored, bool whole)
{
    static char text[2 * NAME_ROOM];
    for (int i = 0; i < list->count; i++) {
        const Held *held = &list->at[i];
        StoredTensor tensor;
        bool found = stored_find(stored, held->name, &tensor);
        const char *wrong = found ? stored_wrong(&tensor, held->shape) : NULL;
        if (wrong)
            return wrong;
        if (found || (!whole && !held->param && strchr(held->name, '%')))
            continue;
        snprintf(text, sizeof text, stored->names ? "it has nothing for the parameter \"%.*s\"" : "it has no tensor \"%.*s\"", NAME_ROOM, held->name);
        return text;
    }
    return NULL;
}

/* Whether the sums that fall to this rank, one after another by turns, are those of the manifest. */
static const char *check_sums(int descriptor, const SafeFile *file, const char *manifest)
{
    char line[256], end[32];
    uint32_t lines = 0;
    FILE *in = fopen(manifest, "r");
    const char *wrong = in ? NULL : "it has no manifest";
    char *chunk = memory_array(CHUNK_BYTES, 1);
    int64_t covered = 0;
    bool ended = false;
    for (int number = 0; in && !wrong && fgets(line, sizeof line, in); number++) {
        long long at = 0, bytes = 0;
        unsigned crc = 0;
        bool header = sscanf(line, "header %lld %x", &bytes, &crc) == 2;
        snprintf(end, sizeof end, MANIFEST_END, lines);
        ended = !strcmp(line, end);
        if (ended)
            break;
        lines = checksum(lines, line, strlen(line));
        if (!header && sscanf(line, "%lld %lld %x", &at, &bytes, &crc) != 3)
            wrong = "its manifest is damaged";
        covered += header ? 0 : bytes;
        if (wrong || number % world_size() != world_rank())
            continue;
        uint32_t sum = 0;
        for (long long done = 0; done < bytes && !wrong;) {
            ssize_t part = pread(descriptor, chunk, (size_t)(bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES),
                                 (off_t)((header ? 0 : file->data) + at + done));
            wrong = part <= 0 ? "it is shorter than its manifest says" : NULL;
            sum = checksum(sum, chunk, part > 0 ? (size_t)part : 0);
            done += part;
        }
        wrong = wrong ? wrong : sum != crc ? "its bytes are not those of its manifest" : NULL;
    }
    free(chunk);
    if (in)
        fclose(in);
    return wrong ? wrong : ended && covered == file->bytes ? NULL : "its manifest is not whole";
}

/* An even part of so many elements for each rank. */
static int64_t *even_bounds(int64_t elements)
{
    int ranks = world_size();
    int64_t *bounds = memory_array(ranks + 1, sizeof *bounds);
    for (int rank = 0; rank <= ranks; rank++)
        bounds[rank] = (int64_t)((__int128)elements * rank / ranks);
    return bounds;
}

/* The reason of the first rank that has one, on all. */
static const char *agree(const char *reason)
{
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

/* Gives a tensor its values, of which each rank reads an even part. */
static const char *hand_out(const Held *held, const StoredTensor *stored)
{
    int me = world_rank();
    int64_t *bounds = even_bounds(held->elements);
    float *values = memory_storage((bounds[me + 1] - bounds[me]) * (int64_t)sizeof(float));
    const char *wrong = agree(stored_read(stored, bounds[me], bounds[me + 1], values));
    if (!wrong)
        pieces_move((Distribution){NULL, held->elements, world_size(), bounds}, values, held->where, held->data, sizeof(float));
    if (held->param && !wrong)
        param_changed(held->param, param_newest(held->param));
    free(values);
    free(bounds);
    return wrong;
}

/* Everything that is wrong is found before anything is read. */
static const char *load_stored(const HeldList *list, const Stored *stored, const char *manifest)
{
    const char *wrong = find_wrong(list, stored, manifest != NULL);
    wrong = wrong || !manifest ? wrong : check_sums(stored->at[0].descriptor, &stored->at[0].file, manifest);
    wrong = agree(wrong);
    for (int i = 0; i < list->count && !wrong; i++) {
        StoredTensor tensor;
        if (stored_find(stored, list->at[i].name, &tensor))
            wrong = hand_out(&list->at[i], &tensor);
    }
    return wrong;
}

const char *checkpoint_load(ht_session *session, const char *path, const char *manifest, const char *names)
{
    Stored stored;
    checkpoint_wait(session);
    const char *wrong = agree(stored_open(&stored, path, names));
    if (!wrong) {
        HeldList list = list_held(session);
        wrong = load_stored(&list, &stored, manifest);
        free_held(&list);
    }
    safetensors_free(&session->loaded);
    if (!wrong) {
        session->loaded = stored.at[0].file;
        stored.at[0].file = (SafeFile){0};
    }
    stored_close(&stored);
    return wrong;
}
