/* Trains a small model for some steps, on any number of ranks: steps [STEPS [MILLISECONDS [FOLDER
 * [EVERY]]]]. A step lasts so long at least; checkpoints go to FOLDER every so many steps. */
#include <hetu/hetu.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 32, WIDTH = 64, HIDDEN = 256 };

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH));
    ht_tensor up = ht_param(ht_shape(HIDDEN, WIDTH), ht_normal(0.05f), "up");
    ht_tensor down = ht_param(ht_shape(WIDTH, HIDDEN), ht_normal(0.05f), "down");
#pragma hspmd dims(x: batch, _)
#pragma hspmd dims(up: hidden, _)
    ht_tensor y = ht_linear(ht_gelu(ht_linear(x, up, HT_NONE)), down, HT_NONE);
    ht_tensor error = ht_sub(y, x);
    return ht_mean(ht_mul(error, error));
}

int main(int argc, char **argv)
{
    static float rows[ROWS * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-3f));
    int steps = argc > 1 ? atoi(argv[1]) : 3, nap = argc > 2 ? atoi(argv[2]) : 0;
    const char *folder = argc > 3 ? argv[3] : NULL, *word = getenv("TEST_WORD");
    int every = argc > 4 ? atoi(argv[4]) : 1;
    for (int i = 0; i < ROWS * WIDTH; i++)
        rows[i] = (float)(i * 7 % 13 - 6) / 6;
    int64_t step = folder ? ht_resume(session, folder) : 0;
    if (word)
        printf("word %s\n", word);
    for (; step < steps; step++) {
        float value = ht_step(program, ht_feed("x", rows));
        nanosleep(&(struct timespec){nap / 1000, nap % 1000 * 1000000L}, NULL);
        printf("step %d loss %.5f\n", (int)step, value);
        fflush(stdout);
        if (folder && (step + 1) % every == 0)
            ht_save(session, folder);
    }
    return 0;
}
