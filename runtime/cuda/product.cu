/* ht_product by cuBLASLt.
 *
 * A contraction becomes one matrix product. The product is batched over the largest of the
 * remaining axes, with loops over the other axes. Tensors whose storage cuBLASLt cannot use well
 * are copied to scratch memory:
 *
 * - bf16 whose columns do not begin at multiples of 16 bytes: a copy with a padded pitch
 * - axes that would need many loops: copies with an order of axes that needs no loop
 * - a result whose epilogue cuBLASLt lacks: f32 sums, which contract_copy finishes */
#include "cuda/autotune.h"
#include "cuda/product.h"
#include "cuda/views.h"

#include <stddef.h>
#include <stdio.h>

enum {
    PITCH = 16,     // bytes, of which the pitch of a padded copy is a multiple
    PAD_FROM = 512, // least `third` for which wants_padding can be true
    MOST_CALLS = 32 // calls of cuBLASLt above which the operands' axes are reordered by copies
};

static const int64_t MOST_APART = 256 << 20; // most bytes of sums for which may_part can be true

/* Pointer to the member of an axis that is a tensor's stride. */
typedef int64_t ht_axis::*Stride;

/* A tensor of a product: its address, and a copy if it needs one. */
typedef struct Tensor {
    Stride stride;
    const void *data;
    ht_dtype dtype;
    bool copied;
    int64_t count; // elements of the copy
} Tensor;

typedef struct Plan {
    const ht_product_call *call;
    int rank;
    ht_axis before[HT_MAX_AXES], axes[HT_MAX_AXES]; // with strides of the call, and of the copies
    Contraction c;                                  // contraction of `axes`
    int batch; // index in c.outer of cuBLASLt's batch; -1: no batch
    Tensor x, w, y;
    Matmul matmul;
    bool left_is_w;     // the first matrix is w, the second x
    const ht_axis *row; // axis of y's matrix along which y has stride 1; NULL: no such axis
} Plan;

static int64_t rounded(int64_t number, int64_t multiple) {
    return (number + multiple - 1) / multiple * multiple;
}

static int64_t extent_of(const ht_axis *axis) { return axis ? axis->extent : 1; }

static const ht_axis *batch_axis(const Plan *p) {
    return p->batch < 0 ? NULL : &p->c.outer[p->batch];
}

/* ---- matrices ---- */

/* Describes a tensor as a column-major matrix; after op (transposed or not) it has extent(row) x
 * extent(column). One of the two axes must have stride 1, or both are absent. */
static Matrix matrix_of(const Plan *p, const Tensor &tensor, const ht_axis *row,
                        const ht_axis *column) {
    const int64_t rows = extent_of(row), columns = extent_of(column),
                  batch = batch_axis(p) ? batch_axis(p)->*tensor.stride : 0;
    if (row && row->*tensor.stride != 1)
        return {tensor.dtype, CUBLAS_OP_T, columns, rows, row->*tensor.stride, batch};
    return {tensor.dtype, CUBLAS_OP_N, rows, columns, column ? column->*tensor.stride : rows,
            batch};
}

/* Classifies the axes by strides (m, n, k, batch, loops) and sets the product's matrices. */
static void arrange(Plan *p) {
    p->c = contraction_of(p->rank, p->axes);
    p->batch = -1;
    for (int i = 0; i < p->c.outer_count; i++)
        if (p->batch < 0 || p->c.outer[i].extent > p->c.outer[p->batch].extent) p->batch = i;
    const ht_axis *m = contraction_axis(&p->c, p->c.m), *n = contraction_axis(&p->c, p->c.n),
                  *k = contraction_axis(&p->c, p->c.k);
    p->row = n && n->y == 1 ? n : m && m->y == 1 ? m : NULL;
    const ht_axis *column = p->row == n ? m : n;
    p->left_is_w = column == m;
    p->matmul.a = matrix_of(p, p->left_is_w ? p->w : p->x, p->row, k);
    p->matmul.b = matrix_of(p, p->left_is_w ? p->x : p->w, k, column);
    p->matmul.d = matrix_of(p, p->y, p->row, column);
    p->matmul.batch = extent_of(batch_axis(p));
}

/* Returns how many cuBLASLt calls the plan makes. */
static int64_t call_count(const Plan *p) {
    return p->c.outer_total / extent_of(batch_axis(p)) * p->c.sum_total;
}

/* Returns whether every column begins at a multiple of PITCH bytes; true for f32. */
static bool is_aligned(const Matrix &m, const void *data) {
    const int64_t bytes = dtype_bytes(m.dtype);
    return m.dtype != HT_BF16 || ((m.columns == 1 || m.pitch * bytes % PITCH == 0) &&
                                  m.stride * bytes % PITCH == 0 && aligned_to(PITCH, {data}));
}

/* ---- copies ---- */

/* Sets the strides of a tensor's copy, with the axes in `order`, the innermost first. The first
 * `padded` axes form a column, whose pitch is rounded up to PITCH bytes. */
static void store_copy(Plan *p, Tensor *tensor, const int *order, int count, int padded) {
    int64_t next = 1;
    for (int i = 0; i < count; i++) {
        if (i == padded) next = rounded(next, PITCH / dtype_bytes(tensor->dtype));
        p->axes[order[i]].*tensor->stride = next;
        next *= p->axes[order[i]].extent;
    }
    tensor->copied = true;
    tensor->count = next;
}

/* Plans a copy of a tensor with the same axis order and a padded pitch. */
static void pad(Plan *p, Tensor *tensor) {
    int order[HT_MAX_AXES], count = 0;
    for (int i = 0; i < p->rank; i++) {
        if (!(p->axes[i].*tensor->stride)) continue;
        int at = count++;
        for (; at > 0 && p->axes[order[at - 1]].*tensor->stride > p->axes[i].*tensor->stride; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    store_copy(p, tensor, order, count, 1);
}

/* Tensors that an axis occurs in, as bits: IN_X | IN_W is a summed axis, IN_ALL a batch axis. */
enum { IN_Y = 1, IN_X = 2, IN_W = 4, IN_ALL = IN_Y | IN_X | IN_W };

static int axis_kind(const ht_axis &axis) {
    return (axis.y ? IN_Y : 0) | (axis.x ? IN_X : 0) | (axis.w ? IN_W : 0);
}

static int add_kind(const Plan *p, int *order, int count, int kind) {
    for (int i = p->rank - 1; i >= 0; i--)
        if (axis_kind(p->before[i]) == kind) order[count++] = i;
    return count;
}

/* Plans a copy of a tensor that needs no loop; axes: batch, `outer`, `inner`, outermost first. */
static void reorder(Plan *p, Tensor *tensor, int outer, int inner) {
    int order[HT_MAX_AXES], padded = add_kind(p, order, 0, inner);
    int count = add_kind(p, order, add_kind(p, order, padded, outer), IN_ALL);
    store_copy(p, tensor, order, count, padded);
}

/* Returns whether to copy an unaligned tensor to a padded pitch. `third` is the extent of the axis
 * (m, n or k) that the tensor lacks; only a large extent makes up for the copy's time. */
static bool wants_padding(const Matrix &m, const Tensor &tensor, int64_t third) {
    return !tensor.copied && !is_aligned(m, tensor.data) && third >= PAD_FROM;
}

static void copy_operands(Plan *p) {
    if (call_count(p) > MOST_CALLS || (p->c.m < 0 && p->c.n < 0)) {
        reorder(p, &p->x, IN_Y | IN_X, IN_X | IN_W);
        reorder(p, &p->w, IN_Y | IN_W, IN_X | IN_W);
        reorder(p, &p->y, IN_Y | IN_X, IN_Y | IN_W);
        arrange(p);
    }
    const int64_t rows = p->matmul.d.rows, columns = p->matmul.d.columns;
    Tensor *left = p->left_is_w ? &p->w : &p->x, *right = p->left_is_w ? &p->x : &p->w;
    if (wants_padding(p->matmul.a, *left, columns)) pad(p, left);
    if (wants_padding(p->matmul.b, *right, rows)) pad(p, right);
    arrange(p);
}

/* ---- the result ---- */

/* Returns whether the bias runs along the columns of the result's matrix, as cuBLASLt requires. */
static bool is_column_bias(const Plan *p) {
    for (int i = 0; i < p->c.rank; i++)
        if (p->c.axes[i].y && p->c.axes[i].b != (&p->c.axes[i] == p->row ? 1 : 0)) return false;
    return true;
}

/* Returns whether the result is bf16 but an operand or bias f32, which cuBLASLt cannot do. */
static bool is_narrowed(const ht_product_call *call) {
    return call->y_dtype == HT_BF16 &&
           (call->dtype == HT_F32 || (call->bias && call->bias_dtype == HT_F32));
}

/* Returns the operands' addresses in cuBLASLt's order: left, right, result, bias, aux. */
static Operands operands_of(const Plan *p, const void *x, const void *w, const void *y,
                            const void *bias, void *aux) {
    return {p->left_is_w ? w : x, p->left_is_w ? x : w, const_cast<void *>(y), bias, aux};
}

/* Returns whether cuBLASLt can write an operand's sums, along the axis that it shares with y. */
static bool takes_sums(const Plan *p) {
    const ht_product_call *call = p->call;
    const bool left = p->left_is_w == (call->sums_of_w != 0);
    const ht_axis *column = p->row == contraction_axis(&p->c, p->c.n)
                                ? contraction_axis(&p->c, p->c.m)
                                : contraction_axis(&p->c, p->c.n);
    const ht_axis *kept = left ? p->row : column;
    for (int i = 0; i < p->c.rank; i++)
        if (p->c.axes[i].b != (&p->c.axes[i] == kept ? 1 : 0)) return false;
    return kept && call->y_dtype == HT_F32 && p->c.outer_total == 1 && p->c.sum_total == 1;
}

/* Returns whether cuBLASLt can add bias, activation, aux and sums; sets these in p->matmul. */
static bool has_epilogue(Plan *p) {
    const ht_product_call *call = p->call;
    if (p->y.copied || is_narrowed(call) || call_count(p) > 1 ||
        (call->bias && !is_column_bias(p)) || (call->aux && call->epilogue != HT_GELU) ||
        (call->sums && !takes_sums(p)))
        return false;
    p->matmul.sums_of = !call->sums ? 0 : p->left_is_w == (call->sums_of_w != 0) ? 'a' : 'b';
    p->matmul.biased = call->bias != NULL;
    p->matmul.epilogue = call->epilogue;
    p->matmul.aux = call->aux != NULL;
    const bool typed =
        call->bias_dtype == call->y_dtype; // otherwise an aligned copy of the bias is used
    return matmul_possible(p->matmul, operands_of(p, p->x.data, p->w.data, p->y.data,
                                                  call->sums ? call->sums
                                                  : typed    ? call->bias
                                                             : NULL,
                                                  call->aux));
}

/* Chooses where cuBLASLt writes the result: y, or a copy that contract_copy finishes. If `fused`,
 * cuBLASLt adds the bias and applies the activation where it can; otherwise contract_copy does. */
static void choose_result(Plan *p, bool fused) {
    const ht_product_call *call = p->call;
    const bool plain = !call->bias && call->epilogue == HT_NO_EPILOGUE && !call->aux && !call->sums;
    const int64_t third = p->matmul.a.op == CUBLAS_OP_N ? p->matmul.a.columns : p->matmul.a.rows;
    const bool narrow = wants_padding(p->matmul.d, p->y, third);
    if (!narrow && (fused || plain) && has_epilogue(p)) return;
    p->matmul.biased = p->matmul.aux = false;
    p->matmul.sums_of = 0;
    p->matmul.epilogue = HT_NO_EPILOGUE;
    if (call->y_dtype == HT_BF16 && (!plain || p->c.sum_total > 1 || is_narrowed(call)))
        p->y.dtype = HT_F32;
    if (!p->y.copied && (narrow || p->y.dtype != call->y_dtype)) pad(p, &p->y);
    arrange(p);
}

/* Returns whether contract_copy must still copy y, or apply bias, activation or aux. */
static bool is_unfinished(const Plan *p) {
    const ht_product_call *call = p->call;
    return p->y.copied || (call->bias && !p->matmul.biased) ||
           call->epilogue != p->matmul.epilogue || (call->aux && !p->matmul.aux);
}

/* ---- running ---- */

static int64_t copy_bytes(const Tensor &tensor) {
    return tensor.copied ? cuda_aligned(tensor.count * dtype_bytes(tensor.dtype)) : 0;
}

/* Assigns scratch memory at *space to a copy, and advances *space. Returns its address. */
static void *place_copy(Tensor *tensor, char **space) {
    void *to = *space;
    *space += copy_bytes(*tensor);
    if (tensor->copied) tensor->data = to;
    return to;
}

static void fill_copy(const Plan *p, Tensor *tensor, char **space) {
    ht_axis axes[HT_MAX_AXES];
    int rank = 0;
    const void *from = tensor->data;
    void *to = place_copy(tensor, space);
    if (!tensor->copied) return;
    for (int i = 0; i < p->rank; i++)
        if (p->before[i].*tensor->stride)
            axes[rank++] = {p->before[i].extent, p->axes[i].*tensor->stride,
                            p->before[i].*tensor->stride, 0, 0};
    contract_copy({to, NULL, NULL, tensor->dtype, HT_F32, tensor->dtype, HT_NO_EPILOGUE}, from,
                  rank, axes);
}

/* Returns the bias in y's type, converted into `space` if it has another type. If cuBLASLt computes
 * sums, returns their output address instead. */
static const void *typed_bias(const Plan *p, char *space) {
    const ht_product_call *call = p->call;
    if (p->matmul.sums_of) return call->sums;
    if (!p->matmul.biased || call->bias_dtype == call->y_dtype) return call->bias;
    const ht_axis axis = {extent_of(p->row), 1, 1, 0, 0};
    contract_copy({space, NULL, NULL, call->y_dtype, HT_F32, call->bias_dtype, HT_NO_EPILOGUE},
                  call->bias, 1, &axis);
    return space;
}

static const void *element_at(const Tensor &tensor, int64_t i) {
    return static_cast<const char *>(tensor.data) + i * dtype_bytes(tensor.dtype);
}

/* Calls cuBLASLt for each index of the loop axes; calls after the first of a sum add to y. */
static void multiply(const Plan *p, const void *bias, void *workspace) {
    ht_axis loops[HT_MAX_AXES];
    int count = 0;
    for (int i = 0; i < p->c.outer_count; i++)
        if (i != p->batch) loops[count++] = p->c.outer[i];
    for (int i = 0; i < p->c.sum_count; i++) loops[count++] = p->c.sum[i];
    for (int64_t i = 0; i < call_count(p); i++) {
        const Place at = place_of(i, count, loops);
        const void *x = element_at(p->x, at.x), *w = element_at(p->w, at.w);
        matmul_run(p->matmul, operands_of(p, x, w, element_at(p->y, at.y), bias, p->call->aux),
                   p->call->scale, i % p->c.sum_total ? 1.0f : 0.0f, workspace);
    }
}

/* Computes y and aux from the sums by contract_copy: bias, activation, conversion. */
static void finish(const Plan *p) {
    const ht_product_call *call = p->call;
    ht_axis axes[HT_MAX_AXES];
    int rank = 0;
    for (int i = 0; i < p->rank; i++)
        if (p->before[i].y)
            axes[rank++] = {p->before[i].extent, p->before[i].y, p->axes[i].y, 0, p->before[i].b};
    contract_copy({call->y, call->aux, call->bias, call->y_dtype, call->bias_dtype, p->y.dtype,
                   call->epilogue},
                  p->y.data, rank, axes);
}

/* Warns once per process that cuBLASLt lacks an algorithm and a slower kernel runs. */
static void say_missing(const Matmul &m) {
    static bool said;
    if (!said)
        fprintf(stderr,
                "hetu: cuBLASLt has no algorithm for a product with a result of %ld x %ld, so a "
                "slower kernel computes it; others are not "
                "reported\n",
                (long)m.d.rows, (long)m.d.columns);
    said = true;
}

/* Computes the call without cuBLASLt. */
static void run_plain(const ht_product_call *call) {
    contract_plain(call);
    if (call->sums) contract_sums(call);
}

static void run(Plan *p) {
    const int64_t bias_bytes =
        cuda_aligned(p->matmul.biased ? extent_of(p->row) * dtype_bytes(p->call->y_dtype) : 0);
    char *workspace = static_cast<char *>(cuda_scratch(
        MATMUL_WORKSPACE + bias_bytes + copy_bytes(p->x) + copy_bytes(p->w) + copy_bytes(p->y)));
    char *space = workspace + MATMUL_WORKSPACE + bias_bytes;
    fill_copy(p, &p->x, &space);
    fill_copy(p, &p->w, &space);
    place_copy(&p->y, &space);
    const void *bias = typed_bias(p, workspace + MATMUL_WORKSPACE);
    if (!matmul_possible(p->matmul,
                         operands_of(p, p->x.data, p->w.data, p->y.data, bias, p->call->aux))) {
        say_missing(p->matmul);
        run_plain(p->call);
        return;
    }
    multiply(p, bias, workspace);
    if (is_unfinished(p)) finish(p);
    if (p->call->sums && !p->matmul.sums_of) contract_sums(p->call);
}

/* Returns whether the axes form a matrix product or a batch of matrix products. */
static bool is_matrix_product(const Plan *p) {
    bool matrix = false;
    for (int i = 0; i < p->rank; i++) {
        const int kind = axis_kind(p->axes[i]);
        if (kind == IN_X || kind == IN_W || kind == IN_Y || kind == 0) return false;
        matrix = matrix || kind == (IN_Y | IN_X) || kind == (IN_Y | IN_W);
    }
    return matrix;
}

static bool is_empty(const ht_product_call *call, bool of_result) {
    for (int i = 0; i < call->rank; i++)
        if (call->axes[i].extent == 0 && (call->axes[i].y || !of_result)) return true;
    return false;
}

static void need_float(ht_dtype dtype) {
    if (dtype != HT_F32 && dtype != HT_BF16)
        ht_fail("a product takes f32 and bf16 only; cast the operands first");
}

/* Makes the plan of a call; returns false if its axes do not form a matrix product. `fused` is as
 * in choose_result. A plan has pointers into itself: do not copy it, and run it once. */
static bool make_plan(Plan *p, const ht_product_call *call, bool fused) {
    const Contraction c = contraction_of(call->rank, call->axes);
    *p = {};
    p->call = call;
    p->x = {&ht_axis::x, call->x, call->dtype, false, 0};
    p->w = {&ht_axis::w, call->w, call->dtype, false, 0};
    p->y = {&ht_axis::y, call->y, call->y_dtype, false, 0};
    p->rank = c.rank;
    for (int i = 0; i < c.rank; i++) p->before[i] = p->axes[i] = c.axes[i];
    if (!is_matrix_product(p)) return false;
    arrange(p);
    copy_operands(p);
    choose_result(p, fused);
    return true;
}

/* Returns whether a separate kernel could compute the plan's epilogue within MOST_APART bytes. */
static bool may_part(const Plan *fused) {
    Plan apart;
    make_plan(&apart, fused->call, false);
    return (fused->matmul.biased || fused->matmul.aux || fused->matmul.sums_of ||
            fused->matmul.epilogue != HT_NO_EPILOGUE) &&
           copy_bytes(apart.y) <= MOST_APART;
}

/* Returns the key of a call for the cache of choices: types, epilogue, extents and strides. */
static std::vector<int64_t> key_of(const ht_product_call *call) {
    std::vector<int64_t> key = {
        call->dtype,    call->y_dtype,     call->bias ? call->bias_dtype : -1,
        call->epilogue, call->aux != NULL, call->sums ? 1 + (call->sums_of_w != 0) : 0};
    for (int i = 0; i < call->rank; i++) {
        const ht_axis &axis = call->axes[i];
        key.insert(key.end(), {axis.extent, axis.y, axis.x, axis.w, axis.b});
    }
    return key;
}

/* Runs a matrix product with a fused (way 0) or separate (way 1) epilogue. An AutotuneRun. */
static void run_way(int way, void *context) {
    Plan p;
    make_plan(&p, static_cast<const ht_product_call *>(context), way == 0);
    run(&p);
}

void ht_product(const ht_product_call *call) {
    need_float(call->y_dtype);
    need_float(call->dtype);
    need_float(call->bias ? call->bias_dtype : HT_F32);
    if (is_empty(call, true)) return;
    if (is_empty(call, false)) {
        run_plain(call);
        return;
    }
    Plan p;
    if (!make_plan(&p, call, true)) {
        run_plain(call);
        return;
    }
    void *context = const_cast<ht_product_call *>(call);
    run_way(may_part(&p) ? autotune_choose("epilogue", key_of(call), 2, run_way, context) : 0,
            context);
}
