/* optimizers.h: optimizers built from operators, averages of parameters, and learning rate
 * schedules. Included by hetu.h. AdamW, SGD and Lion are operators (ops.h) with kernels in
 * runtime/cpu/optimizer.c and runtime/cuda/optimizer.cu. compiler/frontend/models.c finds which
 * optimizer updates which parameters (parameter groups). */
#ifndef HETU_OPTIMIZERS_H
#define HETU_OPTIMIZERS_H

#include <hetu/reductions.h>

#include <math.h>

/* Returns a + t (b - a). */
static inline ht_tensor ht_towards(ht_tensor a, ht_tensor b, ht_tensor t) { return ht_add(a, ht_mul(ht_sub(b, a), t)); }

/* Applies weight decay: returns p * (1 - rate * decay), or p where decay does not apply. */
static inline ht_tensor ht_decayed(const ht_update *u, ht_tensor rate, ht_tensor decay)
{
    return u->decay ? ht_mul(u->p, ht_sub(ht_scalar(1), ht_mul(rate, decay))) : u->p;
}

/* ---- Adafactor ---- */

/* Returns the root of the mean of the squares of all elements. */
static inline ht_tensor ht_root_mean_square(ht_tensor x) { return ht_sqrt(ht_mean(ht_mul(x, x))); }

/* Updates the state `name`, the running mean of g^2 over dimension `dim`, and returns it. */
static inline ht_tensor ht_adafactor_mean(const ht_update *u, int dim, const char *name, ht_tensor weight)
{
    ht_tensor mean = ht_mean(ht_mul(u->g, u->g), .dim = ht_shape(dim), .keepdim = true), old = ht_state(ht_dims_of(mean), ht_zeros(), name);
    ht_tensor next = ht_towards(old, mean, weight);
    ht_assign(old, next);
    return next;
}

/* Estimates the second moment g^2: factored into rows and columns of the last two dimensions, or by
 * element for rank below 2. */
static inline ht_tensor ht_adafactor_variance(const ht_update *u, ht_tensor weight, double eps)
{
    if (ht_rank(u->p) < 2) {
        ht_tensor old = ht_state(ht_dims_of(u->p), ht_zeros(), "variance"), next = ht_towards(old, ht_mul(u->g, u->g), weight);
        ht_assign(old, next);
        return next;
    }
    ht_tensor row = ht_adafactor_mean(u, -1, "rows", weight), column = ht_adafactor_mean(u, -2, "columns", weight);
    return ht_div(ht_mul(row, column), ht_maximum(ht_mean(row, .dim = ht_shape(-2), .keepdim = true), ht_scalar(eps)));
}

/* Adafactor (Shazeer and Stern, 2018), as in PyTorch. Hyper-parameters: 0 learning rate, 1 exponent
 * of beta2, 2 least root mean square of the parameter, 3 clipping threshold, 4 weight decay. */
static inline ht_tensor ht_adafactor_rule(const ht_update *u)
{
    const double eps = 1.1920928955078125e-07;
    ht_tensor rate = ht_hyper(u->first), step = ht_add(ht_steps(), ht_scalar(1));
    ht_tensor variance = ht_adafactor_variance(u, ht_pow(step, ht_hyper(u->first + 1)), eps);
    ht_tensor update = ht_mul(u->g, ht_rsqrt(ht_maximum(variance, ht_scalar(eps * eps))));
    ht_tensor size = ht_mul(ht_maximum(ht_root_mean_square(u->p), ht_hyper(u->first + 2)), ht_minimum(rate, ht_rsqrt(step)));
    ht_tensor large = ht_maximum(ht_div(ht_root_mean_square(update), ht_hyper(u->first + 3)), ht_scalar(1));
    return ht_sub(ht_decayed(u, rate, ht_hyper(u->first + 4)), ht_mul(update, ht_div(size, large)));
}

typedef struct ht_adafactor_options {
    float lr, beta2_decay, eps2, d, decay;
} ht_adafactor_options;

static inline ht_optimizer ht_adafactor_with(ht_adafactor_options o)
{
    return (ht_optimizer){.name = "adafactor", .hyper = {o.lr, o.beta2_decay, o.eps2, o.d, o.decay}, .rule = ht_adafactor_rule, .rule_name = "ht_adafactor_rule"};
}

#define ht_adafactor(...) \
    ht_adafactor_with((ht_adafactor_options){.lr = 1e-2f, .beta2_decay = -0.8f, .eps2 = 1e-3f, .d = 1, .decay = 0 __VA_OPT__(,) __VA_ARGS__})

/* ---- Muon ---- */

/* Returns a matrix with the singular vectors of x, and singular values near 1, by five steps of the
 * Newton-Schulz iteration with the coefficients of Jordan et al., 2024. */
static inline ht_tensor ht_orthogonalized(ht_tensor x)
{
    bool tall = ht_extent(x, 0) > ht_extent(x, 1);
    if (tall)
        x = ht_transpose(x, 0, 1);
    x = ht_div(x, ht_maximum(ht_sqrt(ht_sum(ht_mul(x, x))), ht_scalar(1e-7)));
    for (int i = 0; i < 5; i++) {
        ht_tensor square = ht_linear(x, x, HT_NONE);
        ht_tensor terms = ht_add(ht_mul(square, ht_scalar(-4.7750)), ht_mul(ht_matmul(square, square), ht_scalar(2.0315)));
        x = ht_add(ht_mul(x, ht_scalar(3.4445)), ht_matmul(terms, x));
    }
    return tall ? ht_transpose(x, 0, 1) : x;
}

/* Updates a matrix by Muon (Jordan et al., 2024) with Nesterov momentum, as PyTorch, but runs
 * Newton-Schulz in f32. Hyper-parameters: 0 learning rate, 1 momentum, 2 weight decay. */
static inline ht_tensor ht_muon_rule(const ht_update *u)
{
    assert(ht_rank(u->p) == 2 && "Muon updates matrices; other parameters belong to a group with another optimizer");
    ht_tensor rate = ht_hyper(u->first), momentum = ht_hyper(u->first + 1), old = ht_state(ht_dims_of(u->p), ht_zeros(), "momentum");
    ht_tensor next = ht_towards(u->g, old, momentum);
    ht_assign(old, next);
    double ratio = (double)ht_extent(u->p, 0) / (double)ht_extent(u->p, 1);
    ht_tensor update = ht_mul(ht_orthogonalized(ht_towards(u->g, next, momentum)), ht_scalar(sqrt(ratio > 1 ? ratio : 1)));
    return ht_sub(ht_decayed(u, rate, ht_hyper(u->first + 2)), ht_mul(update, rate));
}

typedef struct ht_muon_options {
    float lr, momentum, decay;
} ht_muon_options;

static inline ht_optimizer ht_muon_with(ht_muon_options o)
{
    return (ht_optimizer){.name = "muon", .hyper = {o.lr, o.momentum, o.decay}, .rule = ht_muon_rule, .rule_name = "ht_muon_rule"};
}

#define ht_muon(...) ht_muon_with((ht_muon_options){.lr = 1e-3f, .momentum = 0.95f, .decay = 0.1f __VA_OPT__(,) __VA_ARGS__})

/* ---- averages ---- */

/* Keeps an exponential moving average of a parameter in the state "NAME.average": average = decay *
 * average + (1 - decay) * p; the first step sets it to p. Returns p. */
static inline ht_tensor ht_average_rule(const ht_update *u)
{
    ht_tensor old = ht_state(ht_dims_of(u->p), ht_zeros(), "average");
    ht_tensor weight = ht_where(ht_eq(ht_steps(), ht_scalar(0)), ht_scalar(0), ht_hyper(u->first + HT_HYPER - 1));
    ht_assign(old, ht_towards(u->p, old, weight));
    return u->p;
}

/* Adds parameter averages to an optimizer: ht_averaged(ht_adamw(.lr = 1e-3f), 0.999f).
 * ht_infer(session, model, .averaged = true) reads the averages. */
static inline ht_optimizer ht_averaged(ht_optimizer optimizer, float decay)
{
    optimizer.after = ht_average_rule;
    optimizer.after_name = "ht_average_rule";
    optimizer.hyper[HT_HYPER - 1] = decay;
    return optimizer;
}

/* ---- schedules ---- */

/* Returns a learning rate factor for ht_set_schedule: linear warm-up to 1 over `warmup` steps, then
 * cosine decay to `least` at step `steps`. */
static inline double ht_warmup_cosine(int64_t step, int64_t warmup, int64_t steps, double least)
{
    if (step < warmup)
        return (double)(step + 1) / (double)warmup;
    double done = steps > warmup ? (double)(step - warmup) / (double)(steps - warmup) : 1;
    return least + (1 - least) * 0.5 * (1 + cos(3.14159265358979323846 * (done < 1 ? done : 1)));
}

/* Returns the factor of ht_warmup_cosine with linear instead of cosine decay. */
static inline double ht_warmup_linear(int64_t step, int64_t warmup, int64_t steps, double least)
{
    if (step < warmup)
        return (double)(step + 1) / (double)warmup;
    double done = steps > warmup ? (double)(step - warmup) / (double)(steps - warmup) : 1;
    return 1 - (1 - least) * (done < 1 ? done : 1);
}

#endif
