/* Convolutions by oneDNN, whose primitives are kept by their sizes. */
#include "cpu/onednn.h"

#include "cpu/cpu.h"

#ifndef HETU_ONEDNN

bool onednn_convolve(const Convolution *sizes, const ConvolutionViews *views) {
    (void)sizes, (void)views;
    onednn_choice();
    return false;
}

#else

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { MOST_KEPT = 512 }; // primitives in the cache

/* All that a primitive depends on. Unused bytes are 0. */
typedef struct Key {
    Convolution sizes;
    ht_dtype dtype[CONV_TENSORS];
    ConvolutionTensor wanted;
    int threads;
} Key;

/* A tensor as the program has it and as the primitive wants it. */
typedef struct Side {
    dnnl_memory_t outside, inside; // equal if both lie alike
    dnnl_primitive_t converts; // to the inside, for the wanted tensor to the outside; NULL: none
    size_t bytes;              // of the inside, where it is converted
} Side;

typedef struct Primitive {
    Key key;
    dnnl_primitive_t primitive; // NULL: oneDNN has no fast code for it
    Side side[CONV_TENSORS];
    UT_hash_handle hh;
} Primitive;

static struct {
    pthread_mutex_t lock; // held by the call that runs
    Primitive *kept;
    void *scratch; // converted tensors of the call that runs
    size_t scratch_bytes;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- descriptions ---- */

/* The extents of a tensor as oneDNN takes it. Weights have groups as a dimension of their own. */
typedef struct Extents {
    int rank;
    int64_t at[5], stride[5];
} Extents;

static Extents extents_of(const Convolution *c, int tensor) {
    Extents e = {4, {c->batch, c->groups * c->inputs, c->image[0], c->image[1]}, {0}};
    if (tensor == CONV_RESULTS)
        e = (Extents){4, {c->batch, c->groups * c->outputs, c->result[0], c->result[1]}, {0}};
    if (tensor == CONV_WEIGHTS)
        e = c->groups == 1
                ? (Extents){4, {c->outputs, c->inputs, c->window[0], c->window[1]}, {0}}
                : (Extents){5, {c->groups, c->outputs, c->inputs, c->window[0], c->window[1]}, {0}};
    int64_t stride = 1;
    for (int d = e.rank - 1; d >= 0; d--) {
        e.stride[d] = stride;
        stride *= e.at[d];
    }
    return e;
}

/* Arguments of a convolution that are no tensors. */
typedef struct Steps {
    dnnl_dims_t stride, dilation, before, behind; // behind: padding that the last windows reach
} Steps;

static Steps steps_of(const Convolution *c) {
    Steps s;
    memset(&s, 0, sizeof s);
    for (int d = 0; d < 2; d++) {
        s.stride[d] = c->stride[d];
        s.dilation[d] = c->dilation[d] - 1;
        s.before[d] = c->padding[d];
        s.behind[d] = (c->result[d] - 1) * c->stride[d] + (c->window[d] - 1) * c->dilation[d] + 1 -
                      c->image[d] - c->padding[d];
    }
    return s;
}

/* ---- versions of the interface ---- */

static const dnnl_alg_kind_t DIRECT = dnnl_convolution_direct;

#if DNNL_VERSION_MAJOR >= 3

/* Chooses the code of a convolution. `hint`: the forward code; NULL: the forward code is chosen. */
static dnnl_status_t choose(dnnl_primitive_desc_t *chosen, const Key *key, const OnednnDesc *d,
                            dnnl_primitive_desc_t hint) {
    Steps s = steps_of(&key->sizes);
    dnnl_engine_t engine = onednn_open()->engine;
    if (!hint)
        return dnnl_convolution_forward_primitive_desc_create(
            chosen, engine, dnnl_forward_training, DIRECT, d[CONV_IMAGES], d[CONV_WEIGHTS], NULL,
            d[CONV_RESULTS], s.stride, s.dilation, s.before, s.behind, NULL);
    if (key->wanted == CONV_IMAGES)
        return dnnl_convolution_backward_data_primitive_desc_create(
            chosen, engine, DIRECT, d[CONV_IMAGES], d[CONV_WEIGHTS], d[CONV_RESULTS], s.stride,
            s.dilation, s.before, s.behind, hint, NULL);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        chosen, engine, DIRECT, d[CONV_IMAGES], d[CONV_WEIGHTS], NULL, d[CONV_RESULTS], s.stride,
        s.dilation, s.before, s.behind, hint, NULL);
}

#else

static dnnl_status_t choose(dnnl_primitive_desc_t *chosen, const Key *key, const OnednnDesc *d,
                            dnnl_primitive_desc_t hint) {
    Steps s = steps_of(&key->sizes);
    dnnl_convolution_desc_t convolution;
    dnnl_status_t status;
    if (!hint)
        status = dnnl_dilated_convolution_forward_desc_init(
            &convolution, dnnl_forward_training, DIRECT, d[CONV_IMAGES], d[CONV_WEIGHTS], NULL,
            d[CONV_RESULTS], s.stride, s.dilation, s.before, s.behind);
    else if (key->wanted == CONV_IMAGES)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &convolution, DIRECT, d[CONV_IMAGES], d[CONV_WEIGHTS], d[CONV_RESULTS], s.stride,
            s.dilation, s.before, s.behind);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &convolution, DIRECT, d[CONV_IMAGES], d[CONV_WEIGHTS], NULL, d[CONV_RESULTS], s.stride,
            s.dilation, s.before, s.behind);
    if (status != dnnl_success) return status;
    return dnnl_primitive_desc_create(chosen, &convolution, NULL, onednn_open()->engine, hint);
}

#endif

/* Describes the three tensors; oneDNN chooses how they lie. The forward convolution, which a
 * backward one takes as a hint, has weights of the type of its images. */
static void describe(const Key *key, bool hint, OnednnDesc *desc) {
    for (int t = 0; t < CONV_TENSORS; t++) {
        Extents e = extents_of(&key->sizes, t);
        desc[t] =
            onednn_describe(e.rank, e.at, NULL,
                            onednn_type(key->dtype[hint && t == CONV_WEIGHTS ? CONV_IMAGES : t]));
    }
}

static void forget(OnednnDesc *desc) {
    for (int t = 0; t < CONV_TENSORS; t++) onednn_forget(desc[t]);
}

/* Returns the chosen code of a convolution; NULL if oneDNN has none. */
static dnnl_primitive_desc_t chosen_code(const Key *key) {
    dnnl_primitive_desc_t hint = NULL, chosen = NULL;
    OnednnDesc desc[CONV_TENSORS];
    if (key->wanted != CONV_RESULTS) {
        describe(key, true, desc);
        bool found = choose(&hint, key, desc, NULL) == dnnl_success;
        forget(desc);
        if (!found) return NULL;
    }
    describe(key, false, desc);
    if (choose(&chosen, key, desc, hint) != dnnl_success) chosen = NULL;
    forget(desc);
    if (hint) onednn_need(dnnl_primitive_desc_destroy(hint), "dnnl_primitive_desc_destroy");
    return chosen;
}

/* ---- primitives ---- */

/* Returns the conversion between two descriptions of one tensor. */
static dnnl_primitive_t conversion_of(OnednnDesc from, OnednnDesc to) {
    dnnl_primitive_desc_t chosen;
    dnnl_primitive_t made;
    dnnl_engine_t engine = onednn_open()->engine;
    onednn_need(dnnl_reorder_primitive_desc_create(&chosen, from, engine, to, engine, NULL),
                "dnnl_reorder_primitive_desc_create");
    onednn_need(dnnl_primitive_create(&made, chosen), "dnnl_primitive_create");
    onednn_need(dnnl_primitive_desc_destroy(chosen), "dnnl_primitive_desc_destroy");
    return made;
}

static dnnl_memory_t memory_of(OnednnDesc desc) {
    dnnl_memory_t memory;
    onednn_need(dnnl_memory_create(&memory, desc, onednn_open()->engine, DNNL_MEMORY_NONE),
                "dnnl_memory_create");
    return memory;
}

/* Makes one tensor's side: converted if the primitive wants it to lie otherwise. */
static Side side_of(const Key *key, int tensor, OnednnDesc inside) {
    Extents e = extents_of(&key->sizes, tensor);
    OnednnDesc outside = onednn_describe(e.rank, e.at, e.stride, onednn_type(key->dtype[tensor]));
    Side side = {.outside = memory_of(outside)};
    bool writes = tensor == (int)key->wanted;
    if (dnnl_memory_desc_equal(outside, inside)) side.inside = side.outside;
    else {
        side.inside = memory_of(inside);
        side.converts = writes ? conversion_of(inside, outside) : conversion_of(outside, inside);
        side.bytes = (dnnl_memory_desc_get_size(inside) + 63) / 64 * 64;
    }
    onednn_forget(outside);
    return side;
}

/* Returns what oneDNN calls a tensor in a query of the primitive. */
static dnnl_query_t query_of(const Key *key, int tensor) {
    bool wanted = tensor == (int)key->wanted, forward = key->wanted == CONV_RESULTS;
    if (tensor == CONV_IMAGES) return wanted ? dnnl_query_diff_src_md : dnnl_query_src_md;
    if (tensor == CONV_WEIGHTS) return wanted ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    return forward ? dnnl_query_dst_md : dnnl_query_diff_dst_md;
}

static int argument_of(const Key *key, int tensor) {
    bool wanted = tensor == (int)key->wanted, forward = key->wanted == CONV_RESULTS;
    if (tensor == CONV_IMAGES) return wanted ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
    if (tensor == CONV_WEIGHTS) return wanted ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    return forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
}

static void forget_primitive(Primitive *gone) {
    for (int t = 0; gone->primitive && t < CONV_TENSORS; t++) {
        Side *side = &gone->side[t];
        if (side->inside != side->outside) dnnl_memory_destroy(side->inside);
        if (side->converts) dnnl_primitive_destroy(side->converts);
        dnnl_memory_destroy(side->outside);
    }
    if (gone->primitive) dnnl_primitive_destroy(gone->primitive);
    HASH_DEL(cache.kept, gone);
    free(gone);
}

/* Returns the primitive of a key, from the cache if it is there. */
static Primitive *primitive_of(const Key *key) {
    Primitive *found, *next;
    HASH_FIND(hh, cache.kept, key, sizeof *key, found);
    if (found) return found;
    if (HASH_COUNT(cache.kept) == MOST_KEPT)
        HASH_ITER(hh, cache.kept, found, next) forget_primitive(found);
    Primitive *made = cpu_alloc(sizeof *made);
    memset(made, 0, sizeof *made);
    memcpy(&made->key, key, sizeof *key);
    HASH_ADD(hh, cache.kept, key, sizeof made->key, made);
    dnnl_primitive_desc_t chosen = chosen_code(key);
    if (!chosen) return made;
    made->primitive = onednn_create(chosen);
    for (int t = 0; made->primitive && t < CONV_TENSORS; t++)
        made->side[t] = side_of(key, t, onednn_wanted(chosen, query_of(key, t)));
    onednn_need(dnnl_primitive_desc_destroy(chosen), "dnnl_primitive_desc_destroy");
    return made;
}

/* ---- execution ---- */

/* Points the memory objects at the call's tensors, and at scratch where tensors are converted. */
static void place_tensors(Primitive *p, void *const *data) {
    size_t bytes = 0;
    for (int t = 0; t < CONV_TENSORS; t++) bytes += p->side[t].bytes;
    if (bytes > cache.scratch_bytes) {
        free(cache.scratch);
        cache.scratch = cpu_alloc(bytes);
        cache.scratch_bytes = bytes;
    }
    char *at = cache.scratch;
    for (int t = 0; t < CONV_TENSORS; t++) {
        Side *side = &p->side[t];
        onednn_need(dnnl_memory_set_data_handle(side->outside, data[t]),
                    "dnnl_memory_set_data_handle");
        if (side->converts)
            onednn_need(dnnl_memory_set_data_handle(side->inside, at),
                        "dnnl_memory_set_data_handle");
        at += side->bytes;
    }
}

static void convert(const Side *side, dnnl_memory_t from, dnnl_memory_t to) {
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    if (side->converts) onednn_run(side->converts, 2, arguments);
}

static void execute(Primitive *p) {
    dnnl_exec_arg_t arguments[CONV_TENSORS];
    const Side *wanted = &p->side[p->key.wanted];
    for (int t = 0; t < CONV_TENSORS; t++) {
        const Side *side = &p->side[t];
        if (side != wanted) convert(side, side->outside, side->inside);
        arguments[t] = (dnnl_exec_arg_t){argument_of(&p->key, t), side->inside};
    }
    onednn_run(p->primitive, CONV_TENSORS, arguments);
    convert(wanted, wanted->inside, wanted->outside);
}

/* Returns whether oneDNN is to convolve tensors of a type. */
static bool takes_type(ht_dtype dtype) {
    return onednn_choice() != ENGINE_OPENBLAS && (dtype == HT_F32 || onednn_has_bf16());
}

bool onednn_convolve(const Convolution *sizes, const ConvolutionViews *views) {
    if (!takes_type(views->view[CONV_IMAGES]->dtype)) return false;
    void *data[CONV_TENSORS];
    Key key;
    memset(&key, 0, sizeof key);
    key.sizes = *sizes;
    key.wanted = views->wanted;
    key.threads = omp_get_max_threads();
    for (int t = 0; t < CONV_TENSORS; t++) {
        key.dtype[t] = views->view[t]->dtype;
        data[t] = views->view[t]->data;
    }
    pthread_mutex_lock(&cache.lock);
    Primitive *found = primitive_of(&key);
    if (found->primitive) {
        place_tensors(found, data);
        execute(found);
    }
    bool done = found->primitive != NULL;
    pthread_mutex_unlock(&cache.lock);
    return done;
}

#endif
