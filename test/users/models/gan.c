/* A generator and a discriminator (Goodfellow et al., 2014) with an optimizer each, which see the same parameters: what one trains is frozen for the other. */
#include "model.h"

enum { BATCH = 12, NOISE = 6, HIDDEN = 20, SIZE = 10 };

static ht_tensor net(ht_tensor x, int outputs, bool frozen, const char *name)
{
    ht_scope("%s", name);
    ht_tensor up = ht_param(ht_shape(HIDDEN, (int)ht_extent(x, 1)), ht_normal(0.3f), "up", .frozen = frozen);
    ht_tensor down = ht_param(ht_shape(outputs, HIDDEN), ht_normal(0.3f), "down", .frozen = frozen), bias = ht_param(ht_shape(HIDDEN), ht_zeros(), "bias", .frozen = frozen);
#pragma hspmd dims(up, bias : ffn)
#pragma hspmd dims(down : _, ffn)
    return ht_linear(ht_leaky_relu(ht_linear(x, up, bias), 0.2f), down, HT_NONE);
}

static ht_tensor made(bool frozen)
{
    ht_tensor noise = ht_input("noise", HT_F32, ht_shape(BATCH, NOISE)), y;
#pragma hspmd dims(noise : batch)
#pragma hspmd layer(0)
    y = net(noise, SIZE, frozen, "generator");
    return y;
}

static ht_tensor judged(ht_tensor x, bool frozen)
{
    ht_tensor y;
#pragma hspmd layer(1)
    y = net(x, 1, frozen, "discriminator");
    return ht_reshape(y, ht_shape(BATCH));
}

ht_tensor discriminator_loss(void)
{
    ht_tensor rows = ht_input("rows", HT_F32, ht_shape(BATCH, SIZE));
#pragma hspmd dims(rows : batch)
    ht_tensor true_rows = ht_softplus(ht_neg(judged(rows, false)), 1, 20), false_rows = ht_softplus(judged(made(true), false), 1, 20);
    return ht_mean(ht_add(true_rows, false_rows));
}

ht_tensor generator_loss(void) { return ht_mean(ht_softplus(ht_neg(judged(made(false), true)), 1, 20)); }

static float rows[BATCH * SIZE], noise[BATCH * NOISE];

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    Options options = options_read(argc, argv, (Options){.steps = 5, .rate = 2e-3f});
    ht_seed(session, options.seed);
    ht_program *discriminator = ht_train(session, discriminator_loss, OPTIMIZER(options.rate), .dtype = DTYPE);
    ht_program *generator = ht_train(session, generator_loss, OPTIMIZER(2 * options.rate), .dtype = DTYPE);
    uint64_t draw = options.seed;
    Progress progress = progress_start(&options, BATCH, "rows");
    for (int step = 0; step < options.steps; step++) {
        draw_normals(&draw, rows, COUNT(rows));
        draw_normals(&draw, noise, COUNT(noise));
        float loss = ht_step(discriminator, ht_feed("rows", rows), ht_feed("noise", noise));
        progress_step(&progress, loss + ht_step(generator, ht_feed("noise", noise)));
    }
    progress_end(&progress, session);
    ht_close(session);
    return 0;
}
