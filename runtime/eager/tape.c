/* Records operators of a plain C model for backward, and allocates the memory of a step. */
#include "eager/tape.h"

#include "base/memory.h"
#include "cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Run eager_run;

/* Largest number of elements of a tensor, as in hetucc (compiler/ir/module.h). */
static const int64_t MAX_ELEMENTS = INT64_C(1) << 56;

/* A block of the step's bump allocator; kept between steps, freed with the tape. Sizes in bytes. */
typedef struct Chunk {
    char *memory;
    size_t size, used;
} Chunk;

struct Tape {
    int chunk_count, chunk_room, chunk_at;
    Chunk *chunks;
    int entry_count, entry_room;
    Entry **entries;
};

static Tape *current;

static void *must(void *memory, size_t bytes) {
    if (!memory) ht_fail("no memory for %zu bytes", bytes);
    return memory;
}

Tape *eager_tape_create(void) { return must(calloc(1, sizeof(Tape)), sizeof(Tape)); }

void eager_tape_begin(Tape *tape) {
    current = tape;
    tape->entry_count = tape->chunk_at = 0;
    for (int i = 0; i < tape->chunk_count; i++) tape->chunks[i].used = 0;
}

static void add_chunk(size_t bytes) {
    enum { CHUNK_BYTES = 1 << 22 };
    if (current->chunk_count == current->chunk_room) {
        current->chunk_room = current->chunk_room ? 2 * current->chunk_room : 16;
        current->chunks = must(
            realloc(current->chunks, (size_t)current->chunk_room * sizeof(Chunk)), sizeof(Chunk));
    }
    size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    current->chunks[current->chunk_count++] =
        (Chunk){must(aligned_alloc(MEMORY_ALIGNMENT, size), size), size, 0};
}

void *eager_alloc(size_t bytes) {
    bytes = (size_t)memory_aligned(bytes ? (int64_t)bytes : 1);
    while (current->chunk_at < current->chunk_count &&
           current->chunks[current->chunk_at].size - current->chunks[current->chunk_at].used <
               bytes)
        current->chunk_at++;
    if (current->chunk_at == current->chunk_count) add_chunk(bytes);
    Chunk *chunk = &current->chunks[current->chunk_at];
    chunk->used += bytes;
    return chunk->memory + chunk->used - bytes;
}

/* ---- nodes ---- */

int64_t eager_elements(ht_dims dims) {
    int64_t count = 1;
    for (int d = 0; d < dims.rank; d++) count *= dims.extent[d];
    return count;
}

bool eager_same_shape(ht_dims a, ht_dims b) {
    return a.rank == b.rank && memcmp(a.extent, b.extent, (size_t)a.rank * sizeof a.extent[0]) == 0;
}

const char *eager_shape_text(ht_dims dims) {
    static char text[4][256];
    static int next;
    char *to = text[next++ % 4];
    int at = snprintf(to, sizeof text[0], "(");
    for (int d = 0; d < dims.rank; d++)
        at += snprintf(to + at, sizeof text[0] - (size_t)at, d ? ", %ld" : "%ld",
                       (long)dims.extent[d]);
    snprintf(to + at, sizeof text[0] - (size_t)at, ")");
    return to;
}

void eager_check_rank(int rank) {
    if (rank < 0 || rank > HT_MAX_RANK)
        ht_fail("a shape of %d dimensions; at most %d are allowed", rank, HT_MAX_RANK);
}

void eager_check_shape(ht_dims dims) {
    int64_t total = 1;
    eager_check_rank(dims.rank);
    for (int d = 0; d < dims.rank; d++) {
        if (dims.extent[d] < 0)
            ht_fail("dimension %d of this shape is %ld; extents are not negative", d,
                    (long)dims.extent[d]);
        if (__builtin_mul_overflow(total, dims.extent[d], &total) || total > MAX_ELEMENTS)
            ht_fail("this shape has too many elements");
    }
}

ht_node *eager_node_like(ht_node like) {
    ht_node *node = eager_alloc(sizeof *node);
    *node = like;
    node->evaluation = eager_run.evaluation;
    node->number = ++eager_run.node_count;
    return node;
}

ht_node *eager_node(ht_dtype dtype, ht_dims dims) {
    eager_check_shape(dims);
    ht_node *node =
        eager_node_like((ht_node){.dtype = dtype, .dims = dims, .count = eager_elements(dims)});
    if (!eager_run.dry) node->data = eager_alloc((size_t)node->count * ht_dtype_bytes(dtype));
    return node;
}

ht_node *eager_zeros(const ht_node *like) {
    return eager_node_like(
        (ht_node){.dtype = like->dtype, .dims = like->dims, .count = like->count, .zero = true});
}

ht_node *eager_operand(const char *op, ht_tensor x) {
    if (!x.node) ht_fail("%s: an operand is absent (HT_NONE)", op);
    if (x.node->evaluation != eager_run.evaluation)
        ht_fail(
            "%s: an operand is of an earlier step, or of another program; a model keeps no tensors",
            op);
    eager_run.op = op;
    x.node->used = true;
    return x.node;
}

bool eager_is_integer(const ht_node *node) {
    return node->dtype == HT_I32 || node->dtype == HT_I64;
}

ht_tensor eager_tensor(ht_node *node) { return (ht_tensor){node}; }

void *eager_data(ht_node *node) {
    if (node->zero) {
        size_t bytes = (size_t)node->count * ht_dtype_bytes(node->dtype);
        node->data = memset(eager_alloc(bytes), 0, bytes);
        node->zero = false;
    }
    return node->data;
}

float *eager_f32(ht_node *node) { return eager_data(node); }

bool eager_dry(void) { return eager_run.dry; }

/* ---- the tape ---- */

static void *copied(const void *from, size_t bytes) {
    return bytes ? memcpy(eager_alloc(bytes), from, bytes) : NULL;
}

void eager_record(const Entry *entry) {
    bool needed = false;
    for (int i = 0; i < entry->operand_count; i++)
        needed |= entry->operand[i] && entry->operand[i]->needs_gradient;
    if (!needed || !eager_run.recording) return;
    Entry *own = copied(entry, sizeof *entry);
    own->operand = copied(entry->operand, (size_t)entry->operand_count * sizeof *entry->operand);
    own->result = copied(entry->result, (size_t)entry->result_count * sizeof *entry->result);
    own->attr = copied(entry->attr, (size_t)entry->attr_count * sizeof *entry->attr);
    own->size = copied(entry->size, (size_t)entry->size_count * sizeof *entry->size);
    for (int i = 0; i < entry->result_count; i++)
        entry->result[i]->needs_gradient = !eager_is_integer(entry->result[i]);
    if (current->entry_count == current->entry_room) {
        current->entry_room = current->entry_room ? 2 * current->entry_room : 256;
        current->entries =
            must(realloc(current->entries, (size_t)current->entry_room * sizeof(Entry *)),
                 sizeof(Entry *));
    }
    current->entries[current->entry_count++] = own;
}

static void add_f32(float *to, const float *from, int64_t count) {
#pragma omp parallel for simd schedule(static) if (count > CPU_PARALLEL)
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static void add_f64(double *to, const double *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static void add_bf16(uint16_t *to, const uint16_t *from, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        to[i] = ht_bf16_store(ht_bf16_load(to[i]) + ht_bf16_load(from[i]));
}

static void add_into(ht_node *to, ht_node *from) {
    if (to->dtype == HT_F64) add_f64(to->data, eager_data(from), to->count);
    else if (to->dtype == HT_BF16) add_bf16(to->data, eager_data(from), to->count);
    else add_f32(to->data, eager_f32(from), to->count);
}

void eager_add_gradient(ht_node *node, ht_node *gradient) {
    if (!node || !node->needs_gradient || !gradient) return;
    if (!eager_same_shape(node->dims, gradient->dims) || eager_is_integer(gradient))
        ht_fail("a gradient of shape %s for a tensor of shape %s, or one of integers",
                eager_shape_text(gradient->dims), eager_shape_text(node->dims));
    if (node->dtype != gradient->dtype)
        gradient = ht_cast(eager_tensor(gradient), node->dtype).node;
    if (!node->gradient) {
        node->gradient = gradient;
        return;
    }
    if (!node->owns_gradient) {
        ht_node *sum = eager_node(node->dtype, node->dims);
        memcpy(sum->data, eager_data(node->gradient),
               (size_t)node->count * ht_dtype_bytes(node->dtype));
        node->gradient = sum;
        node->owns_gradient = true;
    }
    add_into(node->gradient, gradient);
}

ht_node *eager_gradient_of(ht_node *node) {
    return node->gradient ? node->gradient : eager_zeros(node);
}

/* Returns a copy of the node of a result's gradient. The copy's `used` flag shows whether a
 * gradient function reads the gradient. */
static ht_node *own_gradient_of(ht_node *result) {
    ht_node *own = eager_alloc(sizeof *own);
    *own = *eager_gradient_of(result);
    own->used = false;
    return own;
}

/* Ends the program if the gradient function has ignored dy of a result that the loss depends on. */
static void check_ignored(const Entry *entry, const ht_grad *g) {
    for (int i = 0; i < entry->result_count; i++) {
        bool used = g->dy[i].node->used || !entry->result[i]->gradient;
        for (int k = 0; k < entry->operand_count; k++) used |= g->dx[k].node == g->dy[i].node;
        if (!used)
            ht_fail("the loss depends on result %d, of shape %s, of an operator of %d results and "
                    "%d operands, but the gradient ignores "
                    "it: its "
                    "gradient function does not use dy[%d]; use it there, or give the result to "
                    "ht_detach where no gradient shall flow",
                    i, eager_shape_text(entry->result[i]->dims), entry->result_count,
                    entry->operand_count, i);
    }
}

/* Calls the gradient function of an entry and adds each dx to the gradient of its operand. */
static void backward_by_gradient(const Entry *entry) {
    int n = entry->operand_count;
    ht_tensor dy[EAGER_RESULTS], y[EAGER_RESULTS];
    ht_tensor *x = eager_alloc((size_t)(2 * n) * sizeof(ht_tensor)), *dx = x + n;
    for (int i = 0; i < entry->result_count; i++) {
        y[i] = eager_tensor(entry->result[i]);
        dy[i] = eager_tensor(own_gradient_of(entry->result[i]));
    }
    for (int i = 0; i < n; i++) {
        x[i] = eager_tensor(entry->operand[i]);
        dx[i] = HT_NONE;
    }
    ht_grad g = {dy, y, x, entry->attr, dx};
    entry->gradient(&g);
    check_ignored(entry, &g);
    for (int i = 0; i < n; i++) eager_add_gradient(entry->operand[i], dx[i].node);
}

static bool any_gradient(const Entry *entry) {
    for (int i = 0; i < entry->result_count; i++)
        if (entry->result[i]->gradient) return true;
    return false;
}

void eager_backward(ht_node *loss) {
    eager_run.recording = false;
    eager_run.backward = true;
    ht_node *one = eager_node(HT_F32, loss->dims);
    eager_f32(one)[0] = 1;
    eager_add_gradient(loss, one);
    for (int i = current->entry_count - 1; i >= 0; i--) {
        const Entry *entry = current->entries[i];
        if (!any_gradient(entry)) continue;
        eager_run.looked = entry->note;
        (entry->gradient ? backward_by_gradient : operator_backward)(entry);
        eager_look_backward(entry);
    }
}

/* ---- kernels ---- */

static ht_view view_of(ht_node *node) {
    ht_view view = {.data = NULL};
    if (!node) return view;
    view = (ht_view){.data = eager_data(node), .dtype = node->dtype, .rank = node->dims.rank};
    for (int d = 0; d < view.rank; d++) view.extent[d] = view.global[d] = node->dims.extent[d];
    return view;
}

void eager_run_kernel(ht_kernel *kernel, NodeList results, NodeList operands, const ht_attr *attr) {
    ht_view result[EAGER_RESULTS], *operand = eager_alloc((size_t)operands.count * sizeof(ht_view));
    for (int i = 0; i < operands.count; i++) operand[i] = view_of(operands.at[i]);
    for (int i = 0; i < results.count; i++) result[i] = view_of(results.at[i]);
    locale_t outside = uselocale(eager_run.own);
    kernel(&(ht_call){result, operand, results.count, operands.count, attr, eager_run.hyper,
                      eager_run.step, eager_run.training, eager_run.seed});
    uselocale(outside);
}

/* Ends the program if the arguments of ht_apply are incomplete or too many. */
static void check_application(const ht_application *a, const ht_tensor *results) {
    if (!a || !results)
        ht_fail("ht_apply was called with NULL for the %s", a ? "results" : "application");
    if (a->result_count < 1 || a->result_count > EAGER_RESULTS || a->attr_count < 0 ||
        a->attr_count > EAGER_ATTRS || a->operand_count < 0)
        ht_fail("an operator has 1 to %d results and at most %d arguments", EAGER_RESULTS,
                EAGER_ATTRS);
    if (!a->kernel || (a->operand_count && !a->operand) || (a->attr_count && !a->attr))
        ht_fail("ht_apply was called with NULL for the %s", !a->kernel ? "kernel"
                                                            : a->operand_count && !a->operand
                                                                ? "operands"
                                                                : "arguments");
}

/* Runs a user's kernel unless all results are empty; zeroes the results if an operand is empty. */
static void run_application(const ht_application *a, ht_node *const *results,
                            ht_node *const *operands) {
    bool empty = false, any = false;
    for (int i = 0; i < a->operand_count; i++) empty |= operands[i] && operands[i]->count == 0;
    for (int i = 0; i < a->result_count; i++) {
        any |= results[i]->count > 0;
        if (empty)
            memset(results[i]->data, 0,
                   (size_t)results[i]->count * ht_dtype_bytes(results[i]->dtype));
    }
    if (any && !empty)
        eager_run_kernel(a->kernel, (NodeList){results, a->result_count},
                         (NodeList){operands, a->operand_count}, a->attr);
}

void ht_apply(const ht_application *a, ht_tensor *results) {
    eager_check_model("ht_apply");
    check_application(a, results);
    ht_node *result[EAGER_RESULTS],
        **operand = eager_alloc((size_t)a->operand_count * sizeof(ht_node *));
    for (int i = 0; i < a->operand_count; i++)
        if ((operand[i] = a->operand[i].node)) operand[i]->used = true;
    for (int i = 0; i < a->result_count; i++)
        results[i] = eager_tensor(result[i] = eager_node(a->result[i].dtype, a->result[i].shape));
    eager_trace_operator((const void *)a->kernel, a->result_count, result, a->operand_count,
                         operand);
    for (int i = 0; i < a->attr_count; i++) eager_trace_argument(&a->attr[i]);
    if (!eager_run.dry) run_application(a, result, operand);
    Entry entry = {.gradient = a->gradient,
                   .result = result,
                   .result_count = a->result_count,
                   .operand = operand,
                   .operand_count = a->operand_count,
                   .attr = a->attr,
                   .attr_count = a->attr_count};
    eager_look("ht_apply", &entry);
    entry.note = eager_run.looked;
    if (a->gradient) eager_record(&entry);
}
