/* Matrix products by oneDNN: bf16 operands are not converted to f32, and are summed in f32. In f32,
 * oneDNN computes products of few rows, columns or terms. */

#include "device/contraction.h"
#include "cpu/cpu.h"
#include "cpu/onednn.h"

#ifndef HETU_ONEDNN

bool onednn_product(const ht_product_call *call, float *sums) {
    (void)call, (void)sums;
    onednn_choice();
    return false;
}

#else

#include "cpu/rows.h"
#include "base/hash.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Smallest number of multiplications of a product that is worth a call of its own, where oneDNN
 * does not accept the axes around the products as dimensions. */
static const double WORTH_A_CALL = 1e6;

/* OpenBLAS is slower where a matrix has few rows or columns, but is not small: it first copies the
 * other matrix into blocks, as it does for large products. */
static const double FEWEST_PRODUCTS = 1 << 19;
enum { MOST_FEW = 128 };

enum {
    MOST_OUTER = DNNL_MAX_NDIMS - 2, // axes around a product
    MOST_KEPT = 1024                 // primitives in the cache
};

/* The matrices of a primitive. */
enum { SOURCE, WEIGHTS, BIAS, RESULT, MATRICES };

/* Extents, strides and type of a matrix; its last two dimensions are rows and columns. An absent
 * bias has type dnnl_data_type_undef. */
typedef struct Shape {
    dnnl_data_type_t type;
    dnnl_dims_t extent, stride;
} Shape;

/* Everything that a primitive depends on: the key of the cache. Unused bytes are 0. */
typedef struct Form {
    Shape of[MATRICES];
    int rank, threads;
    float scale;
    int add; // whether the result is added to what y holds
} Form;

/* A primitive with its memory objects, whose pointers each execution sets. */
typedef struct Primitive {
    Form form;
    struct Primitive *next;     // next one with the same hash
    dnnl_primitive_t primitive; // NULL: oneDNN does not support this form
    dnnl_memory_t memory[MATRICES];
} Primitive;

enum { BUCKETS = 512 };

static struct {
    pthread_mutex_t lock; // held while a primitive is looked up and executed
    int kept;
    Primitive *bucket[BUCKETS];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t extent_of(const ht_axis *axis) { return axis ? axis->extent : 1; }

/* Returns whether one matrix product in f32 is faster by oneDNN than by OpenBLAS. */
static bool has_few(const Contraction *c) {
    int64_t m = extent_of(contraction_axis(c, c->m)), n = extent_of(contraction_axis(c, c->n)),
            k = extent_of(contraction_axis(c, c->k)), least = m < n ? m : n;
    least = least < k ? least : k;
    return c->outer_total == 1 && least > 1 && least <= MOST_FEW &&
           contraction_size(c) >= FEWEST_PRODUCTS;
}

/* Returns whether oneDNN is to compute a product of operands of a type. */
static bool takes(ht_dtype dtype, const Contraction *c) {
    Engine engine = onednn_choice();
    if (engine == ENGINE_OPENBLAS) return false;
    if (dtype == HT_BF16) return onednn_has_bf16();
    return engine == ENGINE_ONEDNN || (onednn_has_avx512() && has_few(c));
}

/* ---- primitives ---- */

/* Sets the factor of a form. */
static void append_scale(const Form *form, dnnl_primitive_attr_t attributes,
                         dnnl_post_ops_t operations) {
#if DNNL_VERSION_MAJOR < 3
    (void)operations;
    onednn_need(dnnl_primitive_attr_set_output_scales(attributes, 1, 0, &form->scale),
                "dnnl_primitive_attr_set_output_scales");
#else
    (void)attributes;
    onednn_need(dnnl_post_ops_append_eltwise(operations, dnnl_eltwise_linear, form->scale, 0),
                "dnnl_post_ops_append_eltwise");
#endif
}

static void append_sum(dnnl_post_ops_t operations) {
#if DNNL_VERSION_MAJOR < 3
    onednn_need(dnnl_post_ops_append_sum(operations, 1), "dnnl_post_ops_append_sum");
#else
    onednn_need(dnnl_post_ops_append_sum(operations, 1, 0, dnnl_data_type_undef),
                "dnnl_post_ops_append_sum");
#endif
}

/* Creates the attributes of a form: its scale, and whether the result is added to y. */
static dnnl_primitive_attr_t attributes_of(const Form *form) {
    dnnl_primitive_attr_t attributes;
    dnnl_post_ops_t operations;
    onednn_need(dnnl_primitive_attr_create(&attributes), "dnnl_primitive_attr_create");
    onednn_need(dnnl_post_ops_create(&operations), "dnnl_post_ops_create");
    if (form->scale != 1) append_scale(form, attributes, operations);
    if (form->add) append_sum(operations);
    onednn_need(dnnl_primitive_attr_set_post_ops(attributes, operations),
                "dnnl_primitive_attr_set_post_ops");
    onednn_need(dnnl_post_ops_destroy(operations), "dnnl_post_ops_destroy");
    return attributes;
}

/* Chooses the code of a form. Returns false if oneDNN has none. */
static bool choose(const Form *form, const OnednnDesc *desc, dnnl_primitive_desc_t *chosen) {
    dnnl_primitive_attr_t attributes = attributes_of(form);
    dnnl_engine_t engine = onednn_open()->engine;
    dnnl_status_t status;
#if DNNL_VERSION_MAJOR < 3
    dnnl_matmul_desc_t product;
    status = dnnl_matmul_desc_init(&product, desc[SOURCE], desc[WEIGHTS], desc[BIAS], desc[RESULT]);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(chosen, &product, attributes, engine, NULL);
#else
    status = dnnl_matmul_primitive_desc_create(chosen, engine, desc[SOURCE], desc[WEIGHTS],
                                               desc[BIAS], desc[RESULT], attributes);
#endif
    onednn_need(dnnl_primitive_attr_destroy(attributes), "dnnl_primitive_attr_destroy");
    return status == dnnl_success;
}

/* Returns whether oneDNN 3.7 would read or write a matrix wrong: a single row or column whose
 * elements lie apart. */
static bool is_misread(const Form *form) {
    for (int i = 0; i < MATRICES; i++) {
        const int64_t *extent = form->of[i].extent + form->rank - 2,
                      *stride = form->of[i].stride + form->rank - 2;
        if (form->of[i].type == dnnl_data_type_undef) continue;
        if (extent[0] == 1 && extent[1] > 1 && stride[1] != 1) return true;
        if (extent[1] == 1 && extent[0] > 1 && stride[0] != 1) return true;
    }
    return false;
}

/* Creates the primitive of a form; leaves it NULL where oneDNN has none or only a slow one. */
static void create_primitive(Primitive *made) {
    const Form *form = &made->form;
    OnednnDesc desc[MATRICES] = {NULL}; // NULL: no bias
    dnnl_primitive_desc_t chosen;
    bool described = !is_misread(form);
    for (int i = 0; i < MATRICES; i++) {
        const Shape *shape = &form->of[i];
        if (shape->type == dnnl_data_type_undef) continue;
        desc[i] = onednn_describe(form->rank, shape->extent, shape->stride, shape->type);
        described &= desc[i] != NULL;
    }
    if (described && choose(form, desc, &chosen)) {
        made->primitive = onednn_create(chosen);
        onednn_need(dnnl_primitive_desc_destroy(chosen), "dnnl_primitive_desc_destroy");
    }
    for (int i = 0; i < MATRICES; i++) {
        if (made->primitive && desc[i])
            onednn_need(dnnl_memory_create(&made->memory[i], desc[i], onednn_open()->engine,
                                           DNNL_MEMORY_NONE),
                        "dnnl_memory_create");
        onednn_forget(desc[i]);
    }
}

static void empty_cache(void) {
    for (int i = 0; i < BUCKETS; i++)
        while (cache.bucket[i]) {
            Primitive *gone = cache.bucket[i];
            cache.bucket[i] = gone->next;
            for (int k = 0; k < MATRICES; k++)
                if (gone->memory[k]) dnnl_memory_destroy(gone->memory[k]);
            if (gone->primitive) dnnl_primitive_destroy(gone->primitive);
            free(gone);
        }
    cache.kept = 0;
}

/* Returns the primitive of a form, from the cache if it is there. */
static Primitive *primitive_of(const Form *form) {
    uint64_t hash = hash_bytes(HASH_START, form, sizeof *form);
    Primitive *found = cache.bucket[hash % BUCKETS];
    while (found && memcmp(&found->form, form, sizeof *form) != 0) found = found->next;
    if (found) return found;
    if (cache.kept == MOST_KEPT) empty_cache();
    Primitive *made = cpu_alloc(sizeof *made);
    *made = (Primitive){.next = cache.bucket[hash % BUCKETS]};
    memcpy(&made->form, form, sizeof *form);
    create_primitive(made);
    cache.bucket[hash % BUCKETS] = made;
    cache.kept++;
    return made;
}

/* Executes the primitive of a form. Returns false if oneDNN has none. */
static bool execute(const Form *form, const void *const *data) {
    pthread_mutex_lock(&cache.lock);
    Primitive *found = primitive_of(form);
    if (found->primitive) {
        static const int role[MATRICES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS,
                                           DNNL_ARG_DST};
        dnnl_exec_arg_t arguments[MATRICES];
        int count = 0;
        for (int i = 0; i < MATRICES; i++) {
            if (form->of[i].type == dnnl_data_type_undef) continue;
            onednn_need(dnnl_memory_set_data_handle(found->memory[i], (void *)data[i]),
                        "dnnl_memory_set_data_handle");
            arguments[count++] = (dnnl_exec_arg_t){role[i], found->memory[i]};
        }
        onednn_run(found->primitive, count, arguments);
    }
    bool done = found->primitive != NULL;
    pthread_mutex_unlock(&cache.lock);
    return done;
}

/* ---- forms ---- */

/* Sets the last two dimensions of a matrix with rows along `a` and columns along `b`. Strides of
 * absent axes (NULL) are those of a dense matrix. */
static void set_matrix(Shape *shape, int outer, const ht_axis *a, int64_t sa, const ht_axis *b,
                       int64_t sb) {
    shape->extent[outer] = a ? a->extent : 1;
    shape->extent[outer + 1] = b ? b->extent : 1;
    if (!b) sb = 1;
    if (!a) sa = sb == 1 ? shape->extent[outer + 1] : 1;
    shape->stride[outer] = sa;
    shape->stride[outer + 1] = sb;
}

/* Sets a dimension around the matrices. A tensor without the axis has extent 1 there. */
static void set_outer(Shape *shape, int at, int64_t extent, int64_t stride) {
    shape->extent[at] = stride ? extent : 1;
    shape->stride[at] = stride ? stride : 1;
}

/* What a call gives to oneDNN. */
typedef struct Work {
    const ht_product_call *call;
    Contraction c;
    void *y; // y of the call, or its sums in f32
    ht_dtype y_dtype;
    bool swapped; // whether yᵀ = wᵀ xᵀ is computed, because the rows of y have a stride of 1
    bool fused;   // whether oneDNN adds the bias
    bool biased;  // whether y holds the bias
} Work;

/* Sorts axes by decreasing strides of x and y: oneDNN has faster code for storage in this order. */
static void sort_outer(Contraction *c) {
    for (int i = 1; i < c->outer_count; i++)
        for (int j = i; j > 0; j--) {
            ht_axis *a = &c->outer[j - 1], *b = &c->outer[j], swap = *a;
            if (a->y >= b->y) break;
            *a = *b;
            *b = swap;
        }
}

/* Returns the form of a product; its first dimensions are the `outer` first axes around it. */
static Form form_of(const Work *work, int outer, bool add) {
    Form form;
    memset(&form, 0, sizeof form);
    const Contraction *c = &work->c;
    const ht_axis *m = contraction_axis(c, c->m), *n = contraction_axis(c, c->n),
                  *k = contraction_axis(c, c->k);
    Shape *x = &form.of[work->swapped ? WEIGHTS : SOURCE],
          *w = &form.of[work->swapped ? SOURCE : WEIGHTS], *y = &form.of[RESULT],
          *bias = &form.of[BIAS];
    int64_t mx = m ? m->x : 0, kx = k ? k->x : 0, kw = k ? k->w : 0, nw = n ? n->w : 0;
    if (work->swapped) {
        set_matrix(x, outer, k, kx, m, mx);
        set_matrix(w, outer, n, nw, k, kw);
        set_matrix(y, outer, n, n ? n->y : 0, m, m ? m->y : 0);
    } else {
        set_matrix(x, outer, m, mx, k, kx);
        set_matrix(w, outer, k, kw, n, nw);
        set_matrix(y, outer, m, m ? m->y : 0, n, n ? n->y : 0);
    }
    for (int i = 0; i < outer; i++) {
        set_outer(x, i, c->outer[i].extent, c->outer[i].x);
        set_outer(w, i, c->outer[i].extent, c->outer[i].w);
        set_outer(y, i, c->outer[i].extent, c->outer[i].y);
    }
    x->type = w->type = onednn_type(work->call->dtype);
    y->type = onednn_type(work->y_dtype);
    if (work->fused && !add) {
        set_matrix(bias, outer, NULL, 0, n, 1);
        for (int i = 0; i < outer; i++) set_outer(bias, i, 1, 0);
        bias->type = onednn_type(work->call->bias_dtype);
    }
    form.rank = outer + 2;
    form.threads = omp_get_max_threads();
    form.scale = work->call->scale;
    form.add = add;
    return form;
}

static const void *offset_by(const void *data, ht_dtype dtype, int64_t elements) {
    return data ? (const char *)data + elements * (dtype == HT_BF16 ? 2 : 4) : NULL;
}

/* Computes the elements of y at `base`, one primitive for each index of the summed axes besides k.
 * Returns false, before anything is written, if oneDNN does not support the form. */
static bool run_sums(const Work *work, int outer, Place base) {
    const ht_product_call *call = work->call;
    const Contraction *c = &work->c;
    Form first = form_of(work, outer, work->biased), more = form_of(work, outer, true);
    for (int64_t s = 0; s < c->sum_total; s++) {
        Place at = place_of(s, c->sum_count, c->sum);
        const void *x = offset_by(call->x, call->dtype, base.x + at.x),
                   *w = offset_by(call->w, call->dtype, base.w + at.w);
        const void *data[MATRICES] = {
            [SOURCE] = work->swapped ? w : x,
            [WEIGHTS] = work->swapped ? x : w,
            [BIAS] = call->bias,
            [RESULT] = offset_by(work->y, work->y_dtype, base.y),
        };
        if (!execute(s ? &more : &first, data)) return false;
    }
    return true;
}

/* Computes y with the axes around the product as dimensions of one primitive, else by a primitive
 * for each product if these are large. */
static bool run_work(const Work *work) {
    const Contraction *c = &work->c;
    if (c->outer_count <= MOST_OUTER && run_sums(work, c->outer_count, (Place){0, 0, 0, 0}))
        return true;
    if (c->outer_count == 0 || contraction_size(c) < WORTH_A_CALL) return false;
    for (int64_t i = 0; i < c->outer_total; i++)
        if (!run_sums(work, 0, place_of(i, c->outer_count, c->outer))) return false;
    return true;
}

/* Returns whether oneDNN can add the bias: it has the axis of the columns of y alone. */
static bool bias_fuses(const Work *work) {
    const Contraction *c = &work->c;
    const ht_axis *n = contraction_axis(c, c->n);
    for (int i = 0; i < c->rank; i++)
        if (i != c->n && c->axes[i].b) return false;
    return n && n->b == 1 && !work->swapped && work->call->scale == 1 &&
           (work->call->dtype == HT_BF16 || work->call->bias_dtype == HT_F32);
}

/* Writes the bias to the sums in f32. */
static void write_sums_bias(Work *work) {
    const ht_product_call *call = work->call;
    Copies copies = {0};
    ht_view bias = product_view(call, call->bias, call->bias_dtype, offsetof(ht_axis, b));
    product_bias(work->y, view_load(&bias, "a product", &copies), call->rank, call->axes);
    copies_free(&copies);
    work->biased = true;
}

bool onednn_product(const ht_product_call *call, float *sums) {
    if (!sums && (call->aux || call->epilogue != HT_NO_EPILOGUE)) return false;
    for (int i = 0; i < call->rank; i++)
        if (call->axes[i].extent == 0) return false;
    Work work = {.call = call,
                 .c = contraction_of(call->rank, call->axes),
                 .y = sums ? sums : call->y,
                 .y_dtype = sums ? HT_F32 : call->y_dtype};
    const ht_axis *m = contraction_axis(&work.c, work.c.m),
                  *n = contraction_axis(&work.c, work.c.n);
    if (!takes(call->dtype, &work.c) || (!m && !n)) return false;
    work.swapped = n && (m ? n->y != 1 || m->y < n->extent : n->y != 1);
    work.fused = call->bias && bias_fuses(&work);
    if (work.y_dtype == HT_BF16 && (work.c.sum_total > 1 || (call->bias && !work.fused)))
        return false;
    sort_outer(&work.c);
    if (call->bias && !work.fused) write_sums_bias(&work);
    return run_work(&work);
}

#endif
