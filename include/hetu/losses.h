/* losses.h: losses, made of operators.
 *
 * Names and meanings are PyTorch's unless a comment says otherwise. Optional arguments are named:
 * ht_mse_loss(x, target, .reduction = HT_REDUCE_SUM). Classes are in the last dimension, which a
 * strategy may cut (vocabulary parallelism: ht_cross_entropy). Included by hetu.h. */
#ifndef HETU_LOSSES_H
#define HETU_LOSSES_H

#include <hetu/reductions.h>

typedef enum ht_loss_reduction { HT_REDUCE_MEAN, HT_REDUCE_SUM, HT_REDUCE_NONE } ht_loss_reduction;

/* Reduces the elements of a loss to a scalar, or returns them unchanged (HT_REDUCE_NONE). */
static inline ht_tensor ht_reduced(ht_tensor loss, ht_loss_reduction reduction)
{
    return reduction == HT_REDUCE_NONE ? loss : reduction == HT_REDUCE_SUM ? ht_sum(loss) : ht_mean(loss);
}

/* ---- regression ---- */

typedef struct ht_loss_options {
    ht_loss_reduction reduction;
} ht_loss_options;

static inline ht_tensor ht_mse_loss_with(ht_tensor x, ht_tensor target, ht_loss_options o)
{
    ht_tensor off = ht_sub(x, target);
    return ht_reduced(ht_mul(off, off), o.reduction);
}

static inline ht_tensor ht_l1_loss_with(ht_tensor x, ht_tensor target, ht_loss_options o)
{
    return ht_reduced(ht_abs(ht_sub(x, target)), o.reduction);
}

typedef struct ht_huber_options {
    float delta;
    ht_loss_reduction reduction;
} ht_huber_options;

static inline ht_tensor ht_huber_loss_with(ht_tensor x, ht_tensor target, ht_huber_options o)
{
    return ht_reduced(ht_huber(ht_sub(x, target), o.delta), o.reduction);
}

/* ---- probabilities ---- */

typedef struct ht_bce_options {
    ht_tensor weight, pos_weight; // factor of each element; factor of the positive term, target * log(sigmoid(x))
    ht_loss_reduction reduction;
} ht_bce_options;

static inline ht_tensor ht_bce_with_logits_with(ht_tensor x, ht_tensor target, ht_bce_options o)
{
    ht_tensor weight = ht_scalar(1);
    if (ht_present(o.pos_weight))
        weight = ht_add(ht_mul(target, ht_sub(o.pos_weight, ht_scalar(1))), ht_scalar(1));
    ht_tensor loss = ht_logistic(x, target, ht_expand(weight, ht_dims_of(x)));
    return ht_reduced(ht_present(o.weight) ? ht_mul(loss, o.weight) : loss, o.reduction);
}

typedef struct ht_kl_options {
    bool log_target; // the target holds logarithms of probabilities
    bool batchmean;  // divides the sum by the batch size, the first dimension
    ht_loss_reduction reduction;
} ht_kl_options;

/* Returns the Kullback-Leibler divergence; x holds logarithms of probabilities. */
static inline ht_tensor ht_kl_div_with(ht_tensor x, ht_tensor target, ht_kl_options o)
{
    ht_tensor loss = o.log_target ? ht_mul(ht_exp(target), ht_sub(target, x)) : ht_divergence(x, target);
    if (o.batchmean)
        return ht_scale(ht_sum(loss), 1.0f / (float)ht_extent(x, 0));
    return ht_reduced(loss, o.reduction);
}

/* ---- classes ---- */

/* Returns the loss of each row, -log softmax(logits)[target], or 0 where target is -100. logits:
 * (.., classes), target: (..).
 *
 * Where a strategy cuts the classes (vocabulary parallelism), each device has the largest logit and
 * the sum of exponentials of its own classes, and the target's logit if it is one of these, else 0.
 * Conversions combine them: a maximum for the peak, sums for m.mass and m.hit. So no device gathers
 * the logits. ops.h has the rules of the operators. */
static inline ht_tensor ht_cross_entropy(ht_tensor logits, ht_tensor target)
{
    assert(ht_is_integer(target) && "the targets of ht_cross_entropy are integers");
    ht_tensor peak = ht_row_max(logits);
    ht_mass_result m = ht_mass(logits, target, peak);
    return ht_nll(m.mass, m.hit, peak, target);
}

typedef struct ht_cross_entropy_options {
    ht_tensor weight; // weight of each class
    int64_t ignore_index;
    float label_smoothing;
    float z_loss; // factor of an added term, the square of log(sum(exp(x))) (Chowdhery et al., PaLM, 2022); not PyTorch's
    ht_loss_reduction reduction;
} ht_cross_entropy_options;

/* Returns the label smoothing term of each row: the mean over all classes of the weighted loss with
 * that class as the target. */
static inline ht_tensor ht_smooth_entropy(ht_tensor x, ht_tensor lse, ht_tensor weight)
{
    ht_over classes = {ht_shape(-1), false};
    ht_tensor all = ht_present(weight) ? ht_sum(weight) : ht_scalar((double)ht_extent(x, -1));
    ht_tensor named = ht_sum_over(ht_present(weight) ? ht_mul(x, weight) : x, classes);
    return ht_scale(ht_sub(ht_mul(lse, all), named), 1.0f / (float)ht_extent(x, -1));
}

/* Replaces ignored targets by -100. When ignore_index is another number, a target of -100 becomes
 * -1, an invalid class. */
static inline ht_tensor ht_only_ignored(ht_tensor target, ht_tensor ignored, int64_t ignore_index)
{
    if (ignore_index != -100)
        target = ht_masked_fill(target, ht_eq(target, ht_scalar_at(-100, ht_dtype_of(target))), -1);
    return ht_masked_fill(target, ignored, -100);
}

/* HT_REDUCE_MEAN is the class-weighted mean over the rows whose target is not ignored. */
static inline ht_tensor ht_cross_entropy_loss_with(ht_tensor x, ht_tensor target, ht_cross_entropy_options o)
{
    assert(ht_is_integer(target) && "the targets of ht_cross_entropy_loss are integers");
    ht_dtype integer = ht_dtype_of(target);
    ht_tensor ignored = ht_eq(target, ht_scalar_at((double)o.ignore_index, integer)), none = ht_scalar(0);
    target = ht_only_ignored(target, ignored, o.ignore_index);
    ht_tensor peak = ht_row_max(x);
    ht_mass_result m = ht_mass(x, target, peak);
    ht_tensor lse = ht_add(ht_log(m.mass), peak), loss = ht_nll(m.mass, m.hit, peak, target),
              weight = ht_where(ignored, none, ht_scalar(1));
    if (ht_present(o.weight)) {
        weight = ht_pick(o.weight, target, ht_iota(ht_extent(x, -1), HT_I64));
        loss = ht_mul(loss, weight);
    }
    if (o.label_smoothing > 0) {
        ht_tensor smooth = ht_where(ignored, none, ht_smooth_entropy(x, lse, o.weight));
        loss = ht_add(ht_scale(loss, 1 - o.label_smoothing), ht_scale(smooth, o.label_smoothing));
    }
    if (o.z_loss > 0)
        loss = ht_add(loss, ht_scale(ht_where(ignored, none, ht_mul(lse, lse)), o.z_loss));
    return o.reduction == HT_REDUCE_MEAN ? ht_div(ht_sum(loss), ht_sum(weight)) : ht_reduced(loss, o.reduction);
}

/* Returns the symmetric loss of pairs (Radford et al., CLIP, 2021). Row i of a and row i of b are a
 * pair, with an L2 norm of 1. `scale` is a tensor of one element that multiplies the logits. */
static inline ht_tensor ht_contrastive_loss(ht_tensor a, ht_tensor b, ht_tensor scale)
{
    ht_tensor logits = ht_mul(ht_linear(a, b, HT_NONE), scale), target = ht_iota(ht_extent(a, 0), HT_I32);
    ht_tensor forth = ht_mean(ht_cross_entropy(logits, target)), back = ht_mean(ht_cross_entropy(ht_transpose(logits, 0, 1), target));
    return ht_scale(ht_add(forth, back), 0.5f);
}

#define ht_mse_loss(x, target, ...)                                                                                                        \
    ht_mse_loss_with((x), (target), (ht_loss_options){.reduction = HT_REDUCE_MEAN __VA_OPT__(, ) __VA_ARGS__})
#define ht_l1_loss(x, target, ...) ht_l1_loss_with((x), (target), (ht_loss_options){.reduction = HT_REDUCE_MEAN __VA_OPT__(, ) __VA_ARGS__})
#define ht_huber_loss(x, target, ...) ht_huber_loss_with((x), (target), (ht_huber_options){.delta = 1 __VA_OPT__(, ) __VA_ARGS__})
#define ht_bce_with_logits(x, target, ...)                                                                                                 \
    ht_bce_with_logits_with((x), (target), (ht_bce_options){.reduction = HT_REDUCE_MEAN __VA_OPT__(, ) __VA_ARGS__})
#define ht_kl_div(x, target, ...) ht_kl_div_with((x), (target), (ht_kl_options){.reduction = HT_REDUCE_MEAN __VA_OPT__(, ) __VA_ARGS__})
#define ht_cross_entropy_loss(x, target, ...)                                                                                              \
    ht_cross_entropy_loss_with((x), (target), (ht_cross_entropy_options){.ignore_index = -100 __VA_OPT__(, ) __VA_ARGS__})

#endif
