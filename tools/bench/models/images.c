/* Models of images: ResNet-18 and ResNet-50 (He et al., 2015), a U-Net (Ronneberger et al., 2015),
 * a vision transformer (Dosovitskiy et al., 2020), a diffusion transformer (Peebles and Xie, 2022).
 */
#include "timed.h"

static ht_tensor convolved(ht_tensor x, int channels, int size, int stride, const char *name) {
    ht_tensor w = normal(ht_shape(channels, ht_extent(x, 1), size, size), name);
    return ht_conv2d(x, w, HT_NONE, .stride = stride, .padding = size / 2);
}

static ht_tensor batch_normed(ht_tensor x, const char *name) {
    ht_scope("%s", name);
    ht_dims channels = ht_shape(ht_extent(x, 1));
    ht_tensor g = ht_param(channels, ht_ones(), "g"), b = ht_param(channels, ht_zeros(), "b");
    return ht_batch_norm_running(x, g, b, "running", true);
}

static ht_tensor shortcut(ht_tensor x, int channels, int stride) {
    bool same = stride == 1 && ht_extent(x, 1) == channels;
    return same ? x : batch_normed(convolved(x, channels, 1, stride, "short"), "norm");
}

static ht_tensor basic(ht_tensor x, int channels, int stride) {
    ht_tensor y = ht_relu(batch_normed(convolved(x, channels, 3, stride, "conv0"), "norm0"));
    y = batch_normed(convolved(y, channels, 3, 1, "conv1"), "norm1");
    return ht_relu(ht_add(shortcut(x, channels, stride), y));
}

static ht_tensor bottleneck(ht_tensor x, int channels, int stride) {
    ht_tensor y = ht_relu(batch_normed(convolved(x, channels, 1, 1, "conv0"), "norm0"));
    y = ht_relu(batch_normed(convolved(y, channels, 3, stride, "conv1"), "norm1"));
    y = batch_normed(convolved(y, 4 * channels, 1, 1, "conv2"), "norm2");
    return ht_relu(ht_add(shortcut(x, 4 * channels, stride), y));
}

/* The loss of classes 0 to `classes` - 1 by the means of images. */
static ht_tensor classified(ht_tensor x, int classes) {
    ht_tensor labels = ht_input("y", HT_I32, ht_shape(ht_extent(x, 0)));
    ht_tensor pooled = ht_mean(x, .dim = ht_shape(2, 3));
    return ht_mean(ht_cross_entropy(dense(pooled, classes, "head"), labels));
}

ht_tensor resnet18(void) {
    ht_tensor x = ht_input("x", HT_F32, ht_shape(32, 3, 32, 32));
    x = ht_relu(batch_normed(convolved(x, 64, 3, 1, "stem"), "norm"));
    for (int l = 0; l < 8; l++) {
        ht_scope("block%d", l);
        x = basic(x, 64 << l / 2, l > 0 && l % 2 == 0 ? 2 : 1);
    }
    return classified(x, 10);
}

ht_tensor resnet50(void) {
    static const int counts[] = {3, 4, 6, 3};
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 3, 224, 224));
    x = ht_relu(batch_normed(convolved(x, 64, 7, 2, "stem"), "norm"));
    x = ht_max_pool2d(x, 3, .stride = 2, .padding = 1);
    for (int group = 0; group < 4; group++)
        for (int l = 0; l < counts[group]; l++) {
            ht_scope("group%d.block%d", group, l);
            x = bottleneck(x, 64 << group, group > 0 && l == 0 ? 2 : 1);
        }
    return classified(x, 1000);
}

static ht_tensor group_normed(ht_tensor x, const char *name) {
    ht_scope("%s", name);
    ht_dims channels = ht_shape(ht_extent(x, 1));
    ht_tensor g = ht_param(channels, ht_ones(), "g"), b = ht_param(channels, ht_zeros(), "b");
    return ht_group_norm(x, 8, g, b, 1e-5f);
}

static ht_tensor twice(ht_tensor x, int channels, const char *name) {
    ht_scope("%s", name);
    x = ht_silu(group_normed(convolved(x, channels, 3, 1, "conv0"), "norm0"));
    return ht_silu(group_normed(convolved(x, channels, 3, 1, "conv1"), "norm1"));
}

ht_tensor unet(void) {
    ht_tensor x = ht_input("x", HT_F32, ht_shape(8, 3, 64, 64)), seen[2];
    ht_tensor wanted = ht_input("y", HT_F32, ht_shape(8, 3, 64, 64));
    seen[0] = twice(x, 32, "down0");
    seen[1] = twice(ht_avg_pool2d(seen[0], 2), 64, "down1");
    x = twice(ht_avg_pool2d(seen[1], 2), 128, "middle");
    x = twice(ht_concat(ht_list(ht_upsample_nearest(x, 32, 32), seen[1]), 1), 64, "up1");
    x = twice(ht_concat(ht_list(ht_upsample_nearest(x, 64, 64), seen[0]), 1), 32, "up0");
    return ht_mse_loss(convolved(x, 3, 3, 1, "last"), wanted);
}

/* Patches of x (batch, 3, size, size) as places: (batch, places, width). */
static ht_tensor places_of(ht_tensor x, int patch, int width) {
    ht_tensor w = normal(ht_shape(width, 3, patch, patch), "patch"),
              bias = normal(ht_shape(width), "bias");
    ht_tensor seen = ht_conv2d(x, w, bias, .stride = patch);
    int64_t places = ht_extent(seen, 2) * ht_extent(seen, 3);
    return ht_transpose(ht_reshape(seen, ht_shape(ht_extent(x, 0), width, places)), 1, 2);
}

ht_tensor vit(void) {
    enum { BATCH = 4, WIDTH = 192, PLACES = 196 };
    ht_tensor x = ht_input("x", HT_F32, ht_shape(BATCH, 3, 224, 224)),
              labels = ht_input("y", HT_I32, ht_shape(BATCH));
    ht_tensor token = normal(ht_shape(1, 1, WIDTH), "token"),
              at = normal(ht_shape(PLACES + 1, WIDTH), "at");
    x = ht_concat(ht_list(ht_expand(token, ht_shape(BATCH, 1, WIDTH)), places_of(x, 16, WIDTH)), 1);
    x = ht_add(x, at);
    for (int l = 0; l < 12; l++) {
        ht_scope("h%d", l);
        x = ht_add(x, attended(layer_normed(x, "norm0"), 3, false));
        x = ht_add(x,
                   dense(ht_gelu(dense(layer_normed(x, "norm1"), 4 * WIDTH, "up")), WIDTH, "down"));
    }
    ht_tensor first =
        ht_reshape(ht_slice(layer_normed(x, "norm"), 1, 0, 1), ht_shape(BATCH, WIDTH));
    return ht_mean(ht_cross_entropy(dense(first, 1000, "head"), labels));
}

/* Part `which` of the numbers that condition a block, for each place. */
static ht_tensor part(ht_tensor parts, int which) { return ht_slice(parts, 1, which, 1); }

/* Layer norm without parameters, then x * (1 + factor) + offset. */
static ht_tensor modulated(ht_tensor x, ht_tensor offset, ht_tensor factor) {
    ht_tensor y = ht_layer_norm(x, HT_NONE, HT_NONE, 1e-5f);
    return ht_add(ht_mul(y, ht_add(factor, ht_scalar(1))), offset);
}

ht_tensor diffusion(void) {
    enum { BATCH = 8, WIDTH = 192, PLACES = 64 };
    ht_tensor images = ht_input("x", HT_F32, ht_shape(BATCH, 3, 32, 32));
    ht_tensor at = normal(ht_shape(PLACES, WIDTH), "at");
    ht_tensor noise = ht_input("y", HT_F32, ht_shape(BATCH, 3, 32, 32)),
              time = ht_input("z", HT_F32, ht_shape(BATCH));
    /* How much of the image is left at its time, and the time as sines and cosines. */
    ht_tensor kept = ht_reshape(ht_cos(ht_scale(time, 1.5707964f)), ht_shape(BATCH, 1, 1, 1));
    ht_tensor added = ht_reshape(ht_sin(ht_scale(time, 1.5707964f)), ht_shape(BATCH, 1, 1, 1));
    ht_tensor rate =
        ht_exp(ht_scale(ht_arange(0, WIDTH / 2, 1, HT_F32), -9.2103404f / (WIDTH / 2)));
    ht_tensor angle = ht_mul(ht_reshape(ht_scale(time, 1000), ht_shape(BATCH, 1)), rate);
    ht_tensor told = ht_concat(ht_list(ht_sin(angle), ht_cos(angle)), 1);
    told = dense(ht_silu(dense(told, WIDTH, "time0")), WIDTH, "time1");
    ht_tensor x = ht_add(ht_mul(images, kept), ht_mul(noise, added));
    x = ht_add(places_of(x, 4, WIDTH), at);
    for (int l = 0; l < 6; l++) {
        ht_scope("h%d", l);
        ht_tensor parts =
            ht_reshape(dense(ht_silu(told), 6 * WIDTH, "condition"), ht_shape(BATCH, 6, WIDTH));
        ht_tensor y = attended(modulated(x, part(parts, 0), part(parts, 1)), 6, false);
        x = ht_add(x, ht_mul(y, part(parts, 2)));
        y = modulated(x, part(parts, 3), part(parts, 4));
        y = dense(ht_gelu(dense(y, 4 * WIDTH, "up")), WIDTH, "down");
        x = ht_add(x, ht_mul(y, part(parts, 5)));
    }
    ht_tensor made = ht_reshape(dense(ht_layer_norm(x, HT_NONE, HT_NONE, 1e-5f), 48, "last"),
                                ht_shape(BATCH, 8, 8, 3, 4, 4));
    made = ht_reshape(ht_permute(made, ht_shape(0, 3, 1, 4, 2, 5)), ht_shape(BATCH, 3, 32, 32));
    return ht_mse_loss(made, noise);
}
