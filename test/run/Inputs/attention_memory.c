/* One attention: what its devices hold of it (ring.py). */
#include <hetu/hetu.h>

enum { LENGTH = 4096, HEADS = 2, WIDTH = 16 };

static ht_tensor model(void)
{
    ht_dims shape = ht_shape(1, LENGTH, HEADS, WIDTH);
    ht_tensor q = ht_input("q", HT_F32, shape), k = ht_input("k", HT_F32, shape), v = ht_input("v", HT_F32, shape);
#pragma hspmd dims(q, k, v: batch, seq, heads)
    return ht_sum(ht_attention(ht_mul(q, q), ht_mul(k, k), ht_mul(v, v), HT_NONE, true));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_infer(session, model);
    return 0;
}
