/* What the models of this folder share: random batches, and a main program that trains one on them.
 *
 * Each is written as one would for a single device, without an operator of its own. -DSGD trains by SGD with momentum instead of AdamW, -DDTYPE=HT_BF16 computes in bf16.
 */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include "../../../examples/common/train.h"

#include <hetu/layers.h>
#include <hetu/losses.h>

#include <stdlib.h>

#ifndef DTYPE
#define DTYPE HT_F32
#endif

#ifdef SGD
#define OPTIMIZER(rate_) ht_sgd(.lr = 5 * (rate_), .momentum = 0.9f)
#else
#define OPTIMIZER(rate_) ht_adamw(.lr = (rate_), .clip = 1)
#endif

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static inline void draw_normals(uint64_t *draw, float *x, int count)
{
    for (int i = 0; i < count; i++)
        x[i] = (float)draw_normal(draw);
}

/* Integers from 0 to before `below`. */
static inline void draw_integers(uint64_t *draw, int32_t *x, int count, int below)
{
    for (int i = 0; i < count; i++)
        x[i] = (int32_t)(draw_bits(draw) % (uint64_t)below);
}

static inline ht_tensor normal_at(float deviation, const char *name, ht_dims dims) { return ht_param(dims, ht_normal(deviation), name); }

/* A matrix of parameters (outputs, inputs), and a vector. */
static inline ht_tensor matrix(int outputs, int inputs, const char *name) { return normal_at(0.15f, name, ht_shape(outputs, inputs)); }
static inline ht_tensor vector(int count, const char *name) { return normal_at(0.1f, name, ht_shape(count)); }

static inline ht_tensor normed(ht_tensor x, const char *name)
{
    ht_scope("%s", name);
    int width = (int)ht_extent(x, -1);
    return ht_layer_norm(x, ht_param(ht_shape(width), ht_ones(), "g"), vector(width, "b"), 1e-5f);
}

/* The main program of a model with one loss: batches are what draw_batch(&draw) makes, and the other arguments feed them. */
#define MODEL_MAIN(loss, rows, draw_batch, ...)                                                                                            \
    int main(int argc, char **argv)                                                                                                        \
    {                                                                                                                                      \
        ht_session *session = ht_open(&argc, &argv);                                                                                       \
        Options options = options_read(argc, argv, (Options){.steps = 5, .rate = 2e-3f});                                                  \
        ht_seed(session, options.seed);                                                                                                    \
        ht_program *model = ht_train(session, loss, OPTIMIZER(options.rate), .dtype = DTYPE);                                              \
        uint64_t draw = options.seed;                                                                                                      \
        Progress progress = progress_start(&options, rows, "rows");                                                                        \
        for (int step = 0; step < options.steps; step++) {                                                                                 \
            draw_batch(&draw);                                                                                                             \
            progress_step(&progress, ht_step(model, __VA_ARGS__));                                                                         \
        }                                                                                                                                  \
        progress_end(&progress, session);                                                                                                  \
        ht_close(session);                                                                                                                 \
        return 0;                                                                                                                          \
    }

#endif
