/* Operators with kernels: each checks shapes, says what its results are, and runs its kernel. Gradients are those of ops.h. */
#include "device/kernels.h"
#include "eager/tape.h"

#include <string.h>

enum { MAX_OPERANDS = 8 };

/* A call under construction. */
typedef struct Call {
    const char *name;
    ht_application a;
    ht_tensor operand[MAX_OPERANDS];
    ht_attr attr[4];
    const char *first; // the first of the operands that have one type, and its type
    ht_dtype dtype;
} Call;

static Call call_of(const char *name, ht_kernel *kernel, void (*gradient)(ht_grad *))
{
    return (Call){.name = name, .a = {.kernel = kernel, .gradient = gradient}};
}

static void add_result(Call *c, ht_dtype dtype, ht_dims dims) { c->a.result[c->a.result_count++] = (ht_result){dtype, dims}; }

/* The types of kernels that compute, and of those that move elements. */
enum { COMPUTED = 1 << HT_F32 | 1 << HT_BF16, FLOATS = COMPUTED | 1 << HT_F64, ALL = FLOATS | 1 << HT_I32 | 1 << HT_I64 };

/* Notes that an operand has the type that all such operands of the call have, one of `types`. */
static void note_type(Call *c, const char *name, const ht_node *x, unsigned types)
{
    eager_need_types(c->name, name, x, types);
    if (c->first)
        eager_need_alike(c->name, c->first, &(ht_node){.dtype = c->dtype}, name, x);
    c->first = name;
    c->dtype = x->dtype;
}

static ht_node *add_typed(Call *c, const char *name, ht_tensor x, unsigned types)
{
    ht_node *node = eager_operand(c->name, x);
    note_type(c, name, node, types);
    c->operand[c->a.operand_count++] = x;
    return node;
}

/* An operand of a type in which sums are kept, or one of integers; both may be absent where the kernel allows it. */
static void add_wide(Call *c, const char *name, ht_tensor x)
{
    if (x.node)
        eager_need_type(c->name, name, eager_operand(c->name, x), eager_working(c->dtype));
    c->operand[c->a.operand_count++] = x;
}

static void add_integers(Call *c, const char *name, ht_tensor x)
{
    if (x.node)
        eager_need_integers(c->name, name, eager_operand(c->name, x));
    c->operand[c->a.operand_count++] = x;
}

static void add_integer(Call *c, int64_t i) { c->attr[c->a.attr_count++] = (ht_attr){.i = i}; }

static void add_number(Call *c, float f) { c->attr[c->a.attr_count++] = (ht_attr){.f = f}; }

static void run(Call *c, ht_tensor *results)
{
    c->a.operand = c->operand;
    c->a.attr = c->attr;
    eager_apply(&c->a, results, true);
}

static ht_tensor run_one(Call *c)
{
    ht_tensor y;
    run(c, &y);
    return y;
}

/* ---- checks of shapes ---- */

static void need_rank(const Call *c, const ht_node *x, int rank)
{
    if (x->dims.rank < rank)
        ht_fail("%s: a tensor of shape %s has fewer than %d dimensions", c->name, eager_shape_text(x->dims), rank);
}

/* x and z agree in their first `count` dimensions, and z has no others. */
static void need_leading(const Call *c, const ht_node *x, const ht_node *z, int count)
{
    if (z->dims.rank != count || memcmp(x->dims.extent, z->dims.extent, (size_t)count * sizeof(int64_t)) != 0)
        eager_mismatch(c->name, x, z, "the leading dimensions differ");
}

/* An absent z, or a vector as long as the last dimension of x. */
static void need_row(const Call *c, const ht_node *x, ht_tensor z)
{
    if (z.node && (eager_operand(c->name, z)->dims.rank != 1 || z.node->dims.extent[0] != x->dims.extent[x->dims.rank - 1]))
        eager_mismatch(c->name, x, z.node, "the second must be a vector as long as the last dimension of the first");
}

static void need_same(const Call *c, const ht_node *x, const ht_node *z)
{
    if (!eager_same_shape(x->dims, z->dims))
        eager_mismatch(c->name, x, z, "they must be equal");
}

static ht_dims without_last(ht_dims dims)
{
    dims.rank--;
    dims.extent[dims.rank] = 0;
    return dims;
}

static int need_dim(const Call *c, const ht_node *x, int dim)
{
    if (dim < 0 || dim >= x->dims.rank)
        ht_fail("%s: a tensor of shape %s has no dimension %d", c->name, eager_shape_text(x->dims), dim);
    return dim;
}

/* ---- normalisation ---- */

ht_tensor ht_softmax(ht_tensor x)
{
    Call c = call_of("ht_softmax", ht_softmax_kernel, ht_softmax_gradient);
    ht_node *n = add_typed(&c, "x", x, COMPUTED);
    need_rank(&c, n, 1);
    add_result(&c, c.dtype, n->dims);
    return run_one(&c);
}

ht_tensor ht_softmax_backward(ht_tensor dy, ht_tensor y)
{
    Call c = call_of("ht_softmax_backward", ht_softmax_backward_kernel, NULL);
    ht_node *n = add_typed(&c, "dy", dy, COMPUTED);
    need_same(&c, n, add_typed(&c, "y", y, COMPUTED));
    add_result(&c, c.dtype, n->dims);
    return run_one(&c);
}

ht_layer_norm_result ht_layer_norm_stats(ht_tensor x, ht_tensor weight, ht_tensor bias, float eps)
{
    Call c = call_of("ht_layer_norm", ht_layer_norm_kernel, ht_layer_norm_gradient);
    ht_node *n = add_typed(&c, "x", x, COMPUTED);
    ht_tensor y[3];
    need_rank(&c, n, 1);
    need_row(&c, n, weight);
    need_row(&c, n, bias);
    add_wide(&c, "weight", weight);
    add_wide(&c, "bias", bias);
    add_number(&c, eps);
    add_result(&c, c.dtype, n->dims);
    add_result(&c, HT_F32, without_last(n->dims));
    add_result(&c, HT_F32, without_last(n->dims));
    run(&c, y);
    return (ht_layer_norm_result){y[0], y[1], y[2]};
}

ht_layer_norm_backward_result ht_layer_norm_backward(ht_tensor dy, ht_tensor x, ht_tensor mean, ht_tensor rstd, ht_tensor weight)
{
    Call c = call_of("ht_layer_norm_backward", ht_layer_norm_backward_kernel, NULL);
    ht_node *d0 = add_typed(&c, "dy", dy, COMPUTED), *n = add_typed(&c, "x", x, COMPUTED);
    ht_tensor d[3];
    need_same(&c, n, d0);
    add_wide(&c, "mean", mean);
    add_wide(&c, "rstd", rstd);
    add_wide(&c, "weight", weight);
    add_result(&c, c.dtype, n->dims);
    add_result(&c, HT_F32, ht_shape(n->dims.extent[n->dims.rank - 1]));
    add_result(&c, HT_F32, ht_shape(n->dims.extent[n->dims.rank - 1]));
    run(&c, d);
    return (ht_layer_norm_backward_result){d[0], d[1], d[2]};
}

ht_rms_norm_result ht_rms_norm_stats(ht_tensor x, ht_tensor weight, float eps)
{
    Call c = call_of("ht_rms_norm", ht_rms_norm_kernel, ht_rms_norm_gradient);
    ht_node *n = add_typed(&c, "x", x, COMPUTED);
    ht_tensor y[2];
    need_rank(&c, n, 1);
    need_row(&c, n, weight);
    add_wide(&c, "weight", weight);
    add_number(&c, eps);
    add_result(&c, c.dtype, n->dims);
    add_result(&c, HT_F32, without_last(n->dims));
    run(&c, y);
    return (ht_rms_norm_result){y[0], y[1]};
}

ht_rms_norm_backward_result ht_rms_norm_backward(ht_tensor dy, ht_tensor x, ht_tensor rstd, ht_tensor weight)
{
    Call c = call_of("ht_rms_norm_backward", ht_rms_norm_backward_kernel, NULL);
    ht_node *d0 = add_typed(&c, "dy", dy, COMPUTED), *n = add_typed(&c, "x", x, COMPUTED);
    ht_tensor d[2];
    need_same(&c, n, d0);
    add_wide(&c, "rstd", rstd);
    add_wide(&c, "weight", weight);
    add_result(&c, c.dtype, n->dims);
    add_result(&c, HT_F32, ht_shape(n->dims.extent[n->dims.rank - 1]));
    run(&c, d);
    return (ht_rms_norm_backward_result){d[0], d[1]};
}

ht_l2_norm_result ht_l2_norm_stats(ht_tensor x, float eps)
{
    Call c = call_of("ht_l2_norm", ht_l2_norm_kernel, ht_l2_norm_gradient);
    ht_node *n = add_typed(&c, "x", x, COMPUTED);
    ht_tensor y[2];
    need_rank(&c, n, 1);
    add_number(&c, eps);
    add_result(&c, c.dtype, n->dims);
    add_result(&c, HT_F32, without_last(n->dims));
    run(&c, y);
    return (ht_l2_norm_result){y[0], y[1]};
}

ht_tensor ht_l2_norm_backward(ht_tensor dy, ht_tensor y, ht_tensor rnorm, float eps)
{
    Call c = call_of("ht_l2_norm_backward", ht_l2_norm_backward_kernel, NULL);
    ht_node *n = add_typed(&c, "dy", dy, COMPUTED);
    need_same(&c, n, add_typed(&c, "y", y, COMPUTED));
    add_wide(&c, "rnorm", rnorm);
    add_number(&c, eps);
    add_result(&c, c.dtype, n->dims);
    return run_one(&c);
}

/* ---- tables, attention ---- */

/* The shape of an id with one dimension more. */
static ht_dims with_last(const Call *c, ht_dims dims, int64_t extent)
{
    if (dims.rank == HT_MAX_RANK)
        ht_fail("%s: a result of more than %d dimensions", c->name, HT_MAX_RANK);
    dims.extent[dims.rank++] = extent;
    return dims;
}

ht_tensor ht_embedding_at(ht_tensor table, ht_tensor id)
{
    Call c = call_of("ht_embedding", ht_embedding_kernel, ht_embedding_gradient);
    ht_node *t = add_typed(&c, "table", table, FLOATS), *n = eager_operand(c.name, id);
    add_integers(&c, "id", id);
    if (t->dims.rank != 2)
        ht_fail("%s: the table has two dimensions, not shape %s", c.name, eager_shape_text(t->dims));
    add_result(&c, c.dtype, with_last(&c, n->dims, t->dims.extent[1]));
    return run_one(&c);
}

ht_tensor ht_embedding_backward(ht_tensor dy, ht_tensor id, int64_t rows)
{
    Call c = call_of("ht_embedding_backward", ht_embedding_backward_kernel, NULL);
    ht_node *d = add_typed(&c, "dy", dy, COMPUTED), *n = eager_operand(c.name, id);
    need_rank(&c, d, 1);
    if (memcmp(d->dims.extent, n->dims.extent, (size_t)n->dims.rank * sizeof(int64_t)) != 0 || d->dims.rank != n->dims.rank + 1)
        eager_mismatch(c.name, d, n, "the leading dimensions differ");
    add_integers(&c, "id", id);
    add_integer(&c, rows);
    add_result(&c, HT_F32, ht_shape(rows, d->dims.extent[d->dims.rank - 1]));
    return run_one(&c);
}

ht_tensor ht_rope_at(ht_tensor x, ht_tensor position, float base, int direction)
{
    Call c = call_of("ht_rope", ht_rope_kernel, ht_rope_gradient);
    ht_node *n = add_typed(&c, "x", x, COMPUTED);
    need_rank(&c, n, 3);
    if (n->dims.extent[n->dims.rank - 1] % 2 != 0)
        ht_fail("%s: the last dimension of shape %s must be even", c.name, eager_shape_text(n->dims));
    add_integers(&c, "position", position);
    if (position.node)
        need_leading(&c, n, position.node, n->dims.rank - 2);
    add_number(&c, base);
    add_integer(&c, direction);
    add_result(&c, c.dtype, n->dims);
    return run_one(&c);
}

static void check_attention(const Call *c, const ht_node *q, const ht_node *k, const ht_node *v, const ht_node *segments)
{
    need_rank(c, q, 3);
    need_same(c, k, v);
    int r = q->dims.rank;
    if (k->dims.rank != r || memcmp(q->dims.extent, k->dims.extent, (size_t)(r - 3) * sizeof(int64_t)) != 0 ||
        q->dims.extent[r - 1] != k->dims.extent[r - 1])
        eager_mismatch(c->name, q, k, "queries and keys must agree but for their length and heads");
    int64_t heads = q->dims.extent[r - 2], groups = k->dims.extent[r - 2];
    if (groups == 0 ? heads != 0 : heads % groups != 0)
        eager_mismatch(c->name, q, k, "the query heads are no multiple of the key-value heads");
    if (!segments)
        return;
    need_leading(c, q, segments, r - 2);
    if (q->dims.extent[r - 3] != k->dims.extent[r - 3])
        eager_mismatch(c->name, q, k, "with segments there are as many keys as queries");
}

ht_attention_result ht_attention_stats(ht_tensor q, ht_tensor k, ht_tensor v, ht_tensor segments, bool causal)
{
    Call c = call_of("ht_attention", ht_attention_kernel, ht_attention_gradient);
    ht_node *n = add_typed(&c, "q", q, COMPUTED), *keys = add_typed(&c, "k", k, COMPUTED), *values = add_typed(&c, "v", v, COMPUTED);
    ht_tensor y[2];
    add_integers(&c, "segments", segments);
    check_attention(&c, n, keys, values, segments.node);
    add_integer(&c, causal);
    add_result(&c, c.dtype, n->dims);
    add_result(&c, HT_F32, without_last(n->dims));
    run(&c, y);
    return (ht_attention_result){y[0], y[1]};
}

ht_attention_backward_result ht_attention_backward(ht_tensor dy, ht_tensor q, ht_tensor k, ht_tensor v, ht_tensor y, ht_tensor lse,
                                                   ht_tensor segments, ht_tensor dlse, bool causal)
{
    Call c = call_of("ht_attention_backward", ht_attention_backward_kernel, NULL);
    ht_node *d0 = add_typed(&c, "dy", dy, COMPUTED), *n = add_typed(&c, "q", q, COMPUTED), *keys = add_typed(&c, "k", k, COMPUTED);
    ht_node *values = add_typed(&c, "v", v, COMPUTED);
    ht_tensor d[3];
    need_same(&c, n, d0);
    need_same(&c, n, add_typed(&c, "y", y, COMPUTED));
    add_wide(&c, "lse", lse);
    add_integers(&c, "segments", segments);
    check_attention(&c, n, keys, values, segments.node);
    add_wide(&c, "dlse", dlse);
    add_integer(&c, causal);
    add_result(&c, c.dtype, n->dims);
    add_result(&c, c.dtype, keys->dims);
    add_result(&c, c.dtype, keys->dims);
    run(&c, d);
    return (ht_attention_backward_result){d[0], d[1], d[2]};
}

/* ---- loss ---- */

ht_tensor ht_row_max(ht_tensor x)
{
    Call c = call_of("ht_row_max", ht_row_max_kernel, NULL);
    ht_node *n = add_typed(&c, "x", x, COMPUTED);
    need_rank(&c, n, 1);
    add_result(&c, HT_F32, without_last(n->dims));
    return run_one(&c);
}

ht_mass_result ht_mass(ht_tensor x, ht_tensor target, ht_tensor peak)
{
    Call c = call_of("ht_mass", ht_mass_kernel, ht_mass_gradient);
    ht_node *n = add_typed(&c, "x", x, COMPUTED), *t = eager_operand(c.name, target);
    ht_tensor y[2];
    need_rank(&c, n, 1);
    add_integers(&c, "target", target);
    need_leading(&c, n, t, n->dims.rank - 1);
    add_wide(&c, "peak", peak);
    add_result(&c, HT_F32, t->dims);
    add_result(&c, HT_F32, t->dims);
    run(&c, y);
    return (ht_mass_result){y[0], y[1]};
}

ht_tensor ht_mass_backward(ht_tensor dmass, ht_tensor dhit, ht_tensor x, ht_tensor target, ht_tensor peak)
{
    Call c = call_of("ht_mass_backward", ht_mass_backward_kernel, NULL);
    note_type(&c, "x", eager_operand(c.name, x), COMPUTED);
    add_wide(&c, "dmass", dmass);
    add_wide(&c, "dhit", dhit);
    ht_node *n = add_typed(&c, "x", x, COMPUTED);
    add_integers(&c, "target", target);
    add_wide(&c, "peak", peak);
    add_result(&c, c.dtype, n->dims);
    return run_one(&c);
}

/* ---- shapes ---- */

/* Gradients flow between floating-point types. */
static void cast_gradient(ht_grad *g)
{
    ht_dtype from = ht_dtype_of(g->x[0]);
    if (from != HT_I32 && from != HT_I64)
        g->dx[0] = ht_cast(g->dy[0], from);
}

ht_tensor ht_cast(ht_tensor x, ht_dtype dtype)
{
    Call c = call_of("ht_cast", ht_cast_kernel, cast_gradient);
    ht_node *n = add_typed(&c, "x", x, ALL);
    add_integer(&c, dtype);
    add_result(&c, dtype, n->dims);
    return run_one(&c);
}

ht_tensor ht_slice_at(ht_tensor x, int dim, int64_t start, int64_t length)
{
    Call c = call_of("ht_slice", ht_slice_kernel, ht_slice_gradient);
    ht_node *n = add_typed(&c, "x", x, ALL);
    ht_dims dims = n->dims;
    need_dim(&c, n, dim);
    if (start < 0 || length < 0 || start > dims.extent[dim] - length)
        ht_fail("%s: elements %ld to %ld of dimension %d are outside shape %s", c.name, (long)start, (long)((uint64_t)start + (uint64_t)length), dim,
                eager_shape_text(dims));
    dims.extent[dim] = length;
    add_integer(&c, dim);
    add_integer(&c, start);
    add_integer(&c, length);
    add_result(&c, c.dtype, dims);
    return run_one(&c);
}

ht_tensor ht_pad_at(ht_tensor x, int dim, int64_t start, int64_t extent)
{
    Call c = call_of("ht_pad", ht_pad_kernel, ht_pad_gradient);
    ht_node *n = add_typed(&c, "x", x, ALL);
    ht_dims dims = n->dims;
    need_dim(&c, n, dim);
    if (start < 0 || extent < 0 || start > extent - dims.extent[dim])
        ht_fail("%s: shape %s does not fit at %ld into extent %ld of dimension %d", c.name, eager_shape_text(dims), (long)start,
                (long)extent, dim);
    dims.extent[dim] = extent;
    add_integer(&c, dim);
    add_integer(&c, start);
    add_integer(&c, extent);
    add_result(&c, c.dtype, dims);
    return run_one(&c);
}

ht_tensor ht_concat_at(ht_tensors xs, int dim)
{
    Call c = call_of("ht_concat", ht_concat_kernel, ht_concat_gradient);
    if (xs.count < 1)
        ht_fail("%s: nothing to put together", c.name);
    ht_node *first = eager_operand(c.name, xs.at[0]);
    ht_dims dims = first->dims;
    dims.extent[need_dim(&c, first, dim)] = 0;
    for (int k = 0; k < xs.count; k++) {
        ht_node *x = eager_operand(c.name, xs.at[k]);
        ht_dims other = x->dims;
        note_type(&c, "xs", x, ALL);
        if (other.rank != dims.rank)
            eager_mismatch(c.name, first, x, "they must agree but for the joined dimension");
        dims.extent[dim] += other.extent[dim];
        other.extent[dim] = first->dims.extent[dim];
        if (!eager_same_shape(other, first->dims))
            eager_mismatch(c.name, first, x, "they must agree but for the joined dimension");
    }
    add_integer(&c, dim);
    add_result(&c, c.dtype, dims);
    c.a.operand = xs.at;
    c.a.operand_count = xs.count;
    c.a.attr = c.attr;
    ht_tensor y;
    eager_apply(&c.a, &y, true);
    return y;
}

ht_tensor ht_iota(int64_t n, ht_dtype dtype)
{
    Call c = call_of("ht_iota", ht_iota_kernel, NULL);
    if (n < 0)
        ht_fail("%s: an extent of %ld", c.name, (long)n);
    add_integer(&c, n);
    add_integer(&c, dtype);
    add_result(&c, dtype, ht_shape(n));
    return run_one(&c);
}

ht_tensor ht_dropout_at(ht_tensor x, float p, int64_t stream)
{
    Call c = call_of("ht_dropout", ht_dropout_kernel, ht_dropout_gradient);
    ht_node *n = add_typed(&c, "x", x, COMPUTED);
    if (!(p >= 0 && p <= 1))
        ht_fail("%s: a probability of %g", c.name, (double)p);
    add_number(&c, p);
    add_integer(&c, stream);
    add_result(&c, c.dtype, n->dims);
    return run_one(&c);
}

/* ---- optimizers ---- */

/* The first results have the storage of the first and later operands on one device as well: a program runs the kernel in place and does not
 * come here. */
ht_adamw_result ht_adamw_update(ht_tensor p, ht_tensor g, ht_tensor m, ht_tensor v, ht_tensor norm, bool decay)
{
    (void)p, (void)g, (void)m, (void)v, (void)norm, (void)decay;
    ht_fail("ht_adamw_update is for optimizers; a model does not call it");
}

ht_sgd_result ht_sgd_update(ht_tensor p, ht_tensor g, ht_tensor m, ht_tensor norm, bool decay)
{
    (void)p, (void)g, (void)m, (void)norm, (void)decay;
    ht_fail("ht_sgd_update is for optimizers; a model does not call it");
}
