/* ResNet-18 (He et al., 2015) on small images: batch norm over the whole batch, with running means, and blocks that halve the image. */
#include "model.h"

enum { BATCH = 12, SIZE = 16, CLASSES = 7 };

static ht_tensor convolved(ht_tensor x, int channels, int size, int stride, const char *name)
{
    int inputs = (int)ht_extent(x, 1);
    ht_tensor w = normal_at(0.2f, name, ht_shape(channels, inputs, size, size)), y;
#pragma hspmd dims(w : channels)
    y = ht_conv2d(x, w, HT_NONE, .stride = {stride, stride}, .padding = {size / 2, size / 2});
    return y;
}

static ht_tensor batch_normed(ht_tensor x, const char *name)
{
    ht_scope("%s", name);
    int channels = (int)ht_extent(x, 1);
    ht_tensor g = ht_param(ht_shape(channels), ht_ones(), "g"), b = vector(channels, "b");
    return ht_batch_norm_running(x, g, b, "running", true);
}

static ht_tensor basic(ht_tensor x, int channels, int stride)
{
    ht_tensor y = ht_relu(batch_normed(convolved(x, channels, 3, stride, "conv0"), "norm0"));
    y = batch_normed(convolved(y, channels, 3, 1, "conv1"), "norm1");
    if (stride > 1 || ht_extent(x, 1) != channels)
        x = batch_normed(convolved(x, channels, 1, stride, "short"), "norm2");
    return ht_relu(ht_add(x, y));
}

ht_tensor resnet_loss(void)
{
    ht_tensor images = ht_input("images", HT_F32, ht_shape(BATCH, 3, SIZE, SIZE)), labels = ht_input("labels", HT_I32, ht_shape(BATCH));
#pragma hspmd dims(images, labels : batch)
    static const int widths[] = {4, 6, 8, 12};
    ht_tensor x = ht_max_pool2d(ht_relu(batch_normed(convolved(images, widths[0], 3, 1, "stem"), "norm")), {3, 3}, .stride = {2, 2}, .padding = {1, 1});
    for (int l = 0; l < 8; l++) {
        ht_scope("block%d", l);
#pragma hspmd layer(l)
        x = basic(x, widths[l / 2], l > 0 && l % 2 == 0 ? 2 : 1);
    }
    ht_tensor head = matrix(CLASSES, widths[3], "head"), pooled = ht_reshape(ht_adaptive_avg_pool2d(x, 1, 1), ht_shape(BATCH, widths[3]));
    return ht_mean(ht_cross_entropy(ht_linear(pooled, head, vector(CLASSES, "bias")), labels));
}

static float images[BATCH * 3 * SIZE * SIZE];
static int32_t labels[BATCH];

static void draw_batch(uint64_t *draw)
{
    draw_normals(draw, images, COUNT(images));
    draw_integers(draw, labels, BATCH, CLASSES);
}

MODEL_MAIN(resnet_loss, BATCH, draw_batch, ht_feed("images", images), ht_feed("labels", labels))
