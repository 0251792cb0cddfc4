/* Layers that read what others than the one before them have made: the encoded rows, a mask, and the first layer. */
#include <hetu/hetu.h>

#include <stdio.h>

enum { ROWS = 15, WIDTH = 7, HIDDEN = 18, LAYERS = 6, STEPS = 5 };

static ht_tensor dense(ht_tensor x, int outputs, const char *name)
{
    ht_scope("%s", name);
    return ht_linear(x, ht_param(ht_shape(outputs, ht_extent(x, 1)), ht_normal(0.3f), "w"), ht_param(ht_shape(outputs), ht_zeros(), "b"));
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH));
#pragma hspmd dims(x : batch, _)
    ht_tensor encoded = ht_relu(dense(x, HIDDEN, "in")), mask = ht_sigmoid(encoded), h = encoded, first = encoded;
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        {
            h = ht_add(ht_mul(ht_silu(dense(h, HIDDEN, "up")), mask), h);
            if (l == 0)
                first = h;
            if (l == 3)
                h = ht_add(h, ht_mul(first, encoded));
            if (l == 4)
                h = ht_sub(h, first);
        }
    }
#pragma hspmd dims(h : batch, hidden)
    ht_tensor error = ht_sub(dense(h, WIDTH, "out"), x);
    return ht_mean(ht_mul(error, error));
}

int main(int argc, char **argv)
{
    static float rows[ROWS * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-2f, .clip = 0.5f));
    for (int i = 0; i < ROWS * WIDTH; i++)
        rows[i] = (float)(i * 7 % 13 - 6) / 6;
    for (int step = 0; step < STEPS; step++)
        printf("step %d loss %.9g\n", step, ht_step(program, ht_feed("x", rows)));
    return 0;
}
