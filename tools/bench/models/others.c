/* A small net, a recommender (Naumov et al., DLRM, 2019), and a graph network (Battaglia et al.,
 * 2018). */
#include "timed.h"

ht_tensor mlp(void) {
    ht_tensor x = ht_input("x", HT_F32, ht_shape(32, 64));
    return ht_mse_loss(dense(ht_gelu(dense(x, 256, "up")), 64, "down"), x);
}

ht_tensor recommender(void) {
    enum { BATCH = 256, TABLES = 8, BAG = 4, ROWS = 20000, WIDTH = 32, FEATURES = TABLES + 1 };
    ht_tensor numbers = ht_input("x", HT_F32, ht_shape(BATCH, 13)),
              clicks = ht_input("y", HT_F32, ht_shape(BATCH));
    ht_tensor ids = ht_input("z", HT_I32, ht_shape(TABLES, BATCH, BAG)), features[FEATURES];
    features[0] = dense(ht_relu(dense(numbers, 128, "bottom0")), WIDTH, "bottom1");
    for (int t = 0; t < TABLES; t++) {
        ht_scope("table%d", t);
        ht_tensor own = ht_reshape(ht_slice(ids, 0, t, 1), ht_shape(BATCH, BAG));
        features[t + 1] =
            ht_sum(ht_embedding(normal(ht_shape(ROWS, WIDTH), "w"), own), .dim = ht_shape(1));
    }
    ht_tensor all = ht_stack((ht_tensors){FEATURES, features}, 1),
              products = ht_matmul(all, ht_transpose(all, 1, 2));
    products = ht_reshape(products, ht_shape(BATCH, FEATURES * FEATURES));
    ht_tensor x = ht_concat(ht_list(features[0], products), 1);
    x = dense(ht_relu(dense(ht_relu(dense(x, 256, "top0")), 128, "top1")), 1, "top2");
    return ht_bce_with_logits(ht_reshape(x, ht_shape(BATCH)), clicks);
}

ht_tensor graph(void) {
    enum { NODES = 2048, EDGES = 16384, WIDTH = 64, CLASSES = 16 };
    ht_tensor x = ht_input("x", HT_F32, ht_shape(NODES, WIDTH)),
              labels = ht_input("y", HT_I32, ht_shape(NODES));
    ht_tensor edges = ht_input("z", HT_I32, ht_shape(2, EDGES));
    ht_tensor from = ht_reshape(ht_slice(edges, 0, 0, 1), ht_shape(EDGES));
    ht_tensor to = ht_reshape(ht_slice(edges, 0, 1, 1), ht_shape(EDGES));
    ht_tensor rows = ht_expand(ht_reshape(to, ht_shape(EDGES, 1)), ht_shape(EDGES, WIDTH));
    for (int l = 0; l < 3; l++) {
        ht_scope("layer%d", l);
        ht_tensor ends =
            ht_concat(ht_list(ht_index_select(x, 0, from), ht_index_select(x, 0, to)), 1);
        ht_tensor messages = ht_relu(dense(ends, WIDTH, "message"));
        ht_tensor read =
            ht_scatter_add(ht_full(ht_shape(NODES, WIDTH), 0, HT_F32), 0, rows, messages);
        x = ht_add(x, ht_relu(dense(ht_concat(ht_list(x, read), 1), WIDTH, "node")));
    }
    return ht_mean(ht_cross_entropy(dense(x, CLASSES, "head"), labels));
}
