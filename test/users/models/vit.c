/* A vision transformer (Dosovitskiy et al., 2020): patches by a convolution, a class token in front of them, label smoothing. */
#include "blocks.h"

enum { BATCH = 12, SIZE = 12, PATCH = 4, PLACES = (SIZE / PATCH) * (SIZE / PATCH), LAYERS = 4, CLASSES = 9 };

ht_tensor vit_loss(void)
{
    ht_tensor images = ht_input("images", HT_F32, ht_shape(BATCH, 3, SIZE, SIZE)), labels = ht_input("labels", HT_I32, ht_shape(BATCH));
#pragma hspmd dims(images, labels : batch)
    ht_tensor patch = normal_at(0.1f, "patch", ht_shape(WIDTH, 3, PATCH, PATCH)), at = normal_at(0.1f, "at", ht_shape(PLACES + 1, WIDTH));
    ht_tensor seen = ht_conv2d(images, patch, vector(WIDTH, "patch.bias"), .stride = {PATCH, PATCH});
    ht_tensor places = ht_transpose(ht_reshape(seen, ht_shape(BATCH, WIDTH, PLACES)), 1, 2);
    ht_tensor token = ht_expand(normal_at(0.1f, "token", ht_shape(1, 1, WIDTH)), ht_shape(BATCH, 1, WIDTH));
    ht_tensor x = ht_add(ht_concat(ht_list(token, places), 1), at);
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        x = block(x, false);
    }
    ht_tensor first = ht_reshape(ht_slice(normed(x, "norm"), 1, 0, 1), ht_shape(BATCH, WIDTH));
    ht_tensor logits = ht_linear(first, matrix(CLASSES, WIDTH, "head"), HT_NONE);
    return ht_cross_entropy_loss(logits, labels, .label_smoothing = 0.1f);
}

static float images[BATCH * 3 * SIZE * SIZE];
static int32_t labels[BATCH];

static void draw_batch(uint64_t *draw)
{
    draw_normals(draw, images, COUNT(images));
    draw_integers(draw, labels, BATCH, CLASSES);
}

MODEL_MAIN(vit_loss, BATCH, draw_batch, ht_feed("images", images), ht_feed("labels", labels))
