/* Recommendation (Naumov et al., DLRM, 2019): tables of unequal sizes with bags of rows, their products with each other, and clicks as targets. */
#include "model.h"

enum { BATCH = 12, DENSE = 5, TABLES = 3, BAG = 4, WIDTH = 8, FEATURES = TABLES + 1, HIDDEN = 18 };

static const int rows[TABLES] = {37, 50, 11};

/* The sum of a bag's rows. */
static ht_tensor looked_up(ht_tensor ids, int t)
{
    ht_tensor table = matrix(rows[t], WIDTH, "table");
#pragma hspmd dims(table : vocab)
    return ht_sum(ht_embedding(table, ids), .dim = ht_shape(1));
}

static ht_tensor dense(ht_tensor x, int inner, int outputs)
{
    ht_tensor up = matrix(inner, (int)ht_extent(x, 1), "up"), down = matrix(outputs, inner, "down"), bias = vector(inner, "bias");
#pragma hspmd dims(up, bias : ffn)
#pragma hspmd dims(down : _, ffn)
    return ht_linear(ht_relu(ht_linear(x, up, bias)), down, vector(outputs, "last"));
}

ht_tensor dlrm_loss(void)
{
    static const char *names[TABLES] = {"ids0", "ids1", "ids2"};
    ht_tensor numbers = ht_input("numbers", HT_F32, ht_shape(BATCH, DENSE)), clicks = ht_input("clicks", HT_F32, ht_shape(BATCH)), features[FEATURES];
#pragma hspmd dims(numbers, clicks : batch)
    {
        ht_scope("bottom");
#pragma hspmd layer(0)
        features[0] = dense(numbers, HIDDEN, WIDTH);
    }
    for (int t = 0; t < TABLES; t++) {
        ht_scope("table%d", t);
        ht_tensor ids = ht_input(names[t], HT_I64, ht_shape(BATCH, BAG));
#pragma hspmd dims(ids : batch)
        features[t + 1] = looked_up(ids, t);
    }
    ht_tensor all = ht_stack((ht_tensors){FEATURES, features}, 1), products = ht_matmul(all, ht_transpose(all, 1, 2)), x;
    ht_scope("top");
#pragma hspmd layer(1)
    x = dense(ht_concat(ht_list(features[0], ht_reshape(products, ht_shape(BATCH, FEATURES * FEATURES))), 1), HIDDEN, 1);
    return ht_bce_with_logits(ht_reshape(x, ht_shape(BATCH)), clicks);
}

static float numbers[BATCH * DENSE], clicks[BATCH];
static int64_t ids[TABLES][BATCH * BAG];

static void draw_batch(uint64_t *draw)
{
    draw_normals(draw, numbers, COUNT(numbers));
    for (int i = 0; i < BATCH; i++)
        clicks[i] = (float)(draw_bits(draw) % 2);
    for (int t = 0; t < TABLES; t++)
        for (int i = 0; i < BATCH * BAG; i++)
            ids[t][i] = (int64_t)(draw_bits(draw) % (uint64_t)rows[t]);
}

MODEL_MAIN(dlrm_loss, BATCH, draw_batch, ht_feed("numbers", numbers), ht_feed("clicks", clicks), ht_feed("ids0", ids[0]), ht_feed("ids1", ids[1]),
           ht_feed("ids2", ids[2]))
