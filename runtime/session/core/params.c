/* Parameters and optimizer states on all ranks. Initial values come from ht_init_box
 * (base/random.c) by global index, and so do not depend on the layout. */
#include "session/core/params.h"

#include "transport/world.h"
#include "device/device.h"
#include "base/memory.h"
#include "base/random.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static Distribution whole(const Param *param) {
    return (Distribution){NULL, param->elements, param->ranks, NULL};
}

static Distribution distribution_of(const Param *param, const ParamCopy *copy) {
    return (Distribution){copy->pieces, param->elements, param->ranks, NULL};
}

ParamCopy *param_newest(const Param *param) {
    ParamCopy *copy = param->copies;
    while (copy && copy->version != param->version) copy = copy->next;
    return copy;
}

/* Writes the newest values, which `from` holds, to `copy` in the layout of `copy`. */
static void bring(Param *param, const ParamCopy *from, ParamCopy *copy) {
    boxes_move(distribution_of(param, from), from->data, distribution_of(param, copy), copy->data,
               sizeof(float));
    copy->version = param->version;
}

/* Fills this rank's piece with initial values. */
static void initialise(const ParamCopy *copy, const ht_image_param *image, int rank,
                       uint64_t seed) {
    const ht_pieces *pieces = copy->pieces;
    ht_init init = {(ht_init_kind)image->init, image->a};
    int64_t bytes = boxes_count(pieces, rank) * (int64_t)sizeof(float);
    float *host = device_map(copy->data, bytes, DEVICE_WRITE),
          *boxes = pieces->placing ? memory_array(bytes, 1) : host, *at = boxes;
    int64_t lo[32], hi[32];
    for (int b = boxes_first(pieces, rank); b < boxes_end(pieces, rank); b++) {
        int64_t count = 1, bounds[PIECES_MOST_BOUNDS];
        boxes_bounds(pieces, b, bounds);
        for (int d = 0; d < pieces->rank; d++) {
            lo[d] = bounds[2 * d];
            hi[d] = bounds[2 * d + 1];
            count *= hi[d] - lo[d];
        }
        ht_init_box(at, &init, seed, image->name,
                    &(TensorBox){pieces->rank, pieces->extent, lo, hi});
        at += count;
    }
    if (boxes != host) {
        boxes_pack(pieces, rank, host, boxes, false);
        free(boxes);
    }
    device_unmap(copy->data, host, bytes, DEVICE_WRITE);
}

static ParamCopy *add_copy(Param *param, const ht_pieces *pieces, int rank) {
    ParamCopy *copy = memory_array(1, sizeof *copy);
    copy->pieces = pieces;
    copy->data = device_alloc(boxes_count(pieces, rank) * (int64_t)sizeof(float));
    copy->version = -1;
    copy->next = param->copies;
    param->copies = copy;
    return copy;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const Param *)a)->name, ((const Param *)b)->name);
}

static Param *add_param(Params *params, const ht_image_param *image, int ranks) {
    Param *param = memory_array(1, sizeof *param);
    *param = (Param){.name = image->name,
                     .shape = image->shape,
                     .init = image->init,
                     .a = image->a,
                     .elements = boxes_elements(image->pieces),
                     .number = params->count,
                     .ranks = ranks};
    if (params->count == params->capacity) {
        params->capacity = 2 * params->capacity + 64;
        params->at = realloc(params->at, sizeof *params->at * (size_t)params->capacity);
        if (!params->at) ht_fail("no memory for %d parameters", params->capacity);
    }
    params->at[params->count++] = param;
    if (!tsearch(param, &params->by_name, compare_names))
        ht_fail("no memory for %d parameters", params->capacity);
    return param;
}

Param *params_find(const Params *params, const char *name) {
    Param *const *found = tfind(&(Param){.name = name}, &params->by_name, compare_names);
    return found ? *found : NULL;
}

ParamCopy *params_open(Params *params, const ht_image_param *image, int ranks, uint64_t seed,
                       Param **param) {
    int rank = world_rank();
    *param = params_find(params, image->name);
    if (*param && (strcmp((*param)->shape, image->shape) || (*param)->init != image->init ||
                   (*param)->a != image->a))
        ht_fail("the parameter \"%s\" was made before with another shape or initialisation: with "
                "shape %s, now %s",
                image->name, (*param)->shape, image->shape);
    bool fresh = !*param;
    if (fresh) *param = add_param(params, image, ranks);
    ParamCopy *copy = (*param)->copies;
    while (copy && !boxes_equal(copy->pieces, image->pieces)) copy = copy->next;
    if (!copy) copy = add_copy(*param, image->pieces, rank);
    if (fresh) {
        initialise(copy, image, rank, seed);
        copy->version = 0;
    }
    copy->users++;
    return copy;
}

void param_release(Param *param, ParamCopy *copy) {
    ParamCopy **link = &param->copies;
    if (--copy->users || !param->copies->next) return;
    while (*link != copy) link = &(*link)->next;
    *link = copy->next;
    if (copy->version == param->version && !param_newest(param)) bring(param, copy, param->copies);
    device_free(copy->data);
    free(copy);
}

void param_refresh(Param *param, ParamCopy *copy) {
    if (copy->version != param->version) bring(param, param_newest(param), copy);
}

void param_brought(const Param *param, ParamCopy *copy) { copy->version = param->version; }

void param_changed(Param *param, ParamCopy *copy) { copy->version = ++param->version; }

void param_get(const Param *param, float *to) {
    const ParamCopy *from = param_newest(param);
    boxes_move(distribution_of(param, from), from->data, whole(param), to, sizeof(float));
}

void param_set(Param *param, const float *from) {
    ParamCopy *to = param_newest(param);
    boxes_move(whole(param), from, distribution_of(param, to), to->data, sizeof(float));
    param_changed(param, to);
}

static void keep(void *param) { (void)param; }

void params_destroy(Params *params) {
    tdestroy(params->by_name, keep);
    for (int p = 0; p < params->count; p++) {
        for (ParamCopy *copy = params->at[p]->copies, *next; copy; copy = next) {
            next = copy->next;
            device_free(copy->data);
            free(copy);
        }
        free(params->at[p]);
    }
    free(params->at);
    *params = (Params){0};
}
