/* A product whose first operand is cut along what it adds up: the rest of the strategy leaves open who computes it. */
#include <hetu/hetu.h>
#include <hetu/ops.h>

enum { ROWS = 256, WIDTH = 256 };

static ht_tensor chain(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH));
#pragma hspmd shard(x: {1:tp})
    ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.1f), "w");
    ht_tensor y = ht_linear(x, w, HT_NONE);
    return ht_mean(ht_mul(y, y));
}

int main(int argc, char **argv)
{
    static float rows[ROWS * WIDTH], y;
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_infer(session, chain);
    ht_run(program, ht_feed("x", rows));
    ht_fetch(program, "", &y);
    return 0;
}
