/* What flows back through the statistics of normalisations, written out. Nothing is computed where nothing does. */
#include "eager/tape.h"

/* Rows of a tensor, with a number or two for each. */
typedef struct Stats {
    ht_node *x, *dx;
    int64_t rows, n;
} Stats;

/* The rows of x, whose statistics have a shape of one dimension less. */
static Stats stats_of(const char *operator, const char * name, ht_tensor x, const ht_tensor *statistics, int count)
{
    Stats s = {.x = eager_operand(operator, x), .rows = 1};
    ht_dims dims = s.x->dims;
    eager_need_types(operator, name, s.x, 1 << HT_F32 | 1 << HT_BF16);
    if (dims.rank < 1)
        ht_fail("%s: a tensor without dimensions has no rows", operator);
    s.n = dims.extent[--dims.rank];
    for (int d = 0; d < dims.rank; d++)
        s.rows *= dims.extent[d];
    for (int i = 0; i < count; i++) {
        ht_node *number = eager_operand(operator, statistics[i]);
        eager_need_type(operator, "a statistic", number, HT_F32);
        if (!eager_same_shape(number->dims, dims))
            eager_mismatch(operator, s.x, number, "the second has a number for each row of the first");
    }
    return s;
}

/* Makes room for the result; false where there is nothing to compute. */
static bool make_result(Stats *s, bool zero)
{
    s->dx = zero ? eager_zeros(s->x) : eager_node(s->x->dtype, s->x->dims);
    return !zero && !eager_dry();
}

ht_tensor ht_layer_norm_stats_backward(ht_tensor x, ht_tensor mean, ht_tensor rstd, ht_tensor dmean, ht_tensor drstd)
{
    Stats s = stats_of("ht_layer_norm_stats_backward", "x", x, (const ht_tensor[]){mean, rstd, dmean, drstd}, 4);
    if (!make_result(&s, dmean.node->zero && drstd.node->zero))
        return eager_tensor(s.dx);
    const float *from = eager_read(s.x), *m = eager_f32(mean.node), *r = eager_f32(rstd.node);
    const float *dm = eager_f32(dmean.node), *dr = eager_f32(drstd.node);
    float *to = eager_target(s.dx);
    for (int64_t i = 0; i < s.rows; i++)
        for (int64_t j = 0; j < s.n; j++)
            to[i * s.n + j] = (dm[i] - dr[i] * r[i] * r[i] * r[i] * (from[i * s.n + j] - m[i])) / (float)s.n;
    eager_written(s.dx, to);
    return eager_tensor(s.dx);
}

ht_tensor ht_rms_norm_stats_backward(ht_tensor x, ht_tensor rstd, ht_tensor drstd)
{
    Stats s = stats_of("ht_rms_norm_stats_backward", "x", x, (const ht_tensor[]){rstd, drstd}, 2);
    if (!make_result(&s, drstd.node->zero))
        return eager_tensor(s.dx);
    const float *from = eager_read(s.x), *r = eager_f32(rstd.node), *dr = eager_f32(drstd.node);
    float *to = eager_target(s.dx);
    for (int64_t i = 0; i < s.rows; i++)
        for (int64_t j = 0; j < s.n; j++)
            to[i * s.n + j] = -dr[i] * r[i] * r[i] * r[i] * from[i * s.n + j] / (float)s.n;
    eager_written(s.dx, to);
    return eager_tensor(s.dx);
}

ht_tensor ht_l2_norm_stats_backward(ht_tensor y, ht_tensor rnorm, ht_tensor drnorm, float eps)
{
    Stats s = stats_of("ht_l2_norm_stats_backward", "y", y, (const ht_tensor[]){rnorm, drnorm}, 2);
    if (!make_result(&s, drnorm.node->zero))
        return eager_tensor(s.dx);
    const float *from = eager_read(s.x), *r = eager_f32(rnorm.node), *dr = eager_f32(drnorm.node);
    float *to = eager_target(s.dx);
    for (int64_t i = 0; i < s.rows; i++)
        for (int64_t j = 0; j < s.n; j++)
            to[i * s.n + j] = r[i] < 1 / eps ? -dr[i] * r[i] * r[i] * from[i * s.n + j] : 0;
    eager_written(s.dx, to);
    return eager_tensor(s.dx);
}
