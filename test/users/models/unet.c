/* A U-Net that takes noise from images (Ho et al., 2020): the step's number as sines, two halvings, and as many doublings that read what the way down has seen. */
#include "model.h"

enum { BATCH = 12, SIZE = 8, CHANNELS = 3, GROUPS = 2, TIME = 8 };

static ht_tensor convolved(ht_tensor x, int channels, const char *name)
{
    ht_tensor w = normal_at(0.15f, name, ht_shape(channels, (int)ht_extent(x, 1), 3, 3));
#pragma hspmd dims(w : channels)
    return ht_conv2d(x, w, HT_NONE, .padding = {1, 1});
}

static ht_tensor group_normed(ht_tensor x, const char *name)
{
    ht_scope("%s", name);
    int channels = (int)ht_extent(x, 1);
    return ht_group_norm(x, GROUPS, ht_param(ht_shape(channels), ht_ones(), "g"), vector(channels, "b"), 1e-5f);
}

/* A residual block, told the time. */
static ht_tensor block(ht_tensor x, ht_tensor time, int channels)
{
    ht_tensor told = ht_linear(time, matrix(channels, TIME, "time"), vector(channels, "bias"));
    ht_tensor y = ht_silu(group_normed(convolved(x, channels, "conv0"), "norm0"));
    y = ht_add(y, ht_reshape(told, ht_shape(BATCH, channels, 1, 1)));
    y = ht_silu(group_normed(convolved(y, channels, "conv1"), "norm1"));
    return ht_extent(x, 1) == channels ? ht_add(x, y) : y;
}

/* Sines and cosines of a number (batch) at several rates. */
static ht_tensor time_of(ht_tensor number)
{
    ht_tensor rate = ht_exp(ht_scale(ht_arange(0, TIME / 2, 1, HT_F32), -1.5f));
    ht_tensor angle = ht_mul(ht_reshape(number, ht_shape(BATCH, 1)), rate);
    return ht_concat(ht_list(ht_sin(angle), ht_cos(angle)), 1);
}

ht_tensor unet_loss(void)
{
    ht_tensor images = ht_input("images", HT_F32, ht_shape(BATCH, CHANNELS, SIZE, SIZE)), noise = ht_input("noise", HT_F32, ht_shape(BATCH, CHANNELS, SIZE, SIZE));
    ht_tensor number = ht_input("number", HT_F32, ht_shape(BATCH)), seen[2];
#pragma hspmd dims(images, noise, number : batch)
    ht_tensor kept = ht_reshape(ht_sigmoid(number), ht_shape(BATCH, 1, 1, 1)), time = time_of(number);
    ht_tensor x = ht_add(ht_mul(images, kept), ht_mul(noise, ht_sub(ht_scalar(1), kept)));
    for (int l = 0; l < 2; l++) {
        ht_scope("down%d", l);
#pragma hspmd layer(l)
        seen[l] = block(x, time, 4 + 4 * l);
        x = ht_avg_pool2d(seen[l], {2, 2});
    }
    {
        ht_scope("middle");
#pragma hspmd layer(2)
        x = block(x, time, 12);
    }
    for (int l = 1; l >= 0; l--) {
        ht_scope("up%d", l);
        ht_tensor wide = ht_upsample_nearest(x, ht_extent(seen[l], 2), ht_extent(seen[l], 3));
#pragma hspmd layer(4 - l)
        x = block(ht_concat(ht_list(wide, seen[l]), 1), time, 4 + 4 * l);
    }
    return ht_mse_loss(convolved(x, CHANNELS, "last"), noise);
}

static float images[BATCH * CHANNELS * SIZE * SIZE], noise[BATCH * CHANNELS * SIZE * SIZE], number[BATCH];

static void draw_batch(uint64_t *draw)
{
    draw_normals(draw, images, COUNT(images));
    draw_normals(draw, noise, COUNT(noise));
    draw_normals(draw, number, COUNT(number));
}

MODEL_MAIN(unet_loss, BATCH, draw_batch, ht_feed("images", images), ht_feed("noise", noise), ht_feed("number", number))
