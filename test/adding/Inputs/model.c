/* One step with the two operators that the test adds: their values and gradients against closed forms. */
#include <hetu/hetu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 6, WIDTH = 5 };

#pragma hspmd strategy four
#pragma hspmd   split rows:x
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(x:4)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_param(ht_shape(ROWS, WIDTH), ht_normal(1), "x");
    ht_tensor z = ht_param(ht_shape(WIDTH), ht_normal(1), "z");
    ht_tensor w = ht_input("w", HT_F32, ht_shape(ROWS, WIDTH));
#pragma hspmd dims(x, w: rows, _)
    ht_tensor y = ht_output(ht_damped_square(x, z), "y");
    ht_tensor s = ht_output(ht_running_sum(x, 1), "s");
    return ht_add(ht_sum(ht_mul(y, w)), ht_sum(ht_mul(s, w)));
}

static int wrong;

static void check(const char *what, int row, int column, double found, double wanted)
{
    if (fabs(found - wanted) <= 1e-5 * (1 + fabs(wanted)))
        return;
    printf("%s (%d, %d) is %.7g, not %.7g\n", what, row, column, found, wanted);
    wrong++;
}

/* loss = sum of w x^2 / (1 + z^2), plus the sum of w s where s are the running sums of x. */
int main(int argc, char **argv)
{
    static float x[ROWS][WIDTH], z[WIDTH], w[ROWS][WIDTH], y[ROWS][WIDTH], s[ROWS][WIDTH], x1[ROWS][WIDTH], z1[WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 1));
    for (int i = 0; i < ROWS * WIDTH; i++)
        w[i / WIDTH][i % WIDTH] = (float)(i * 7 % 11 - 5) / 4;
    ht_get_param(session, "x", &x[0][0], ROWS * WIDTH);
    ht_get_param(session, "z", z, WIDTH);
    ht_step(program, ht_feed("w", w));
    ht_fetch(program, "y", y);
    ht_fetch(program, "s", s);
    ht_get_param(session, "x", &x1[0][0], ROWS * WIDTH);
    ht_get_param(session, "z", z1, WIDTH);
    for (int c = 0; c < WIDTH; c++) {
        double damp = 1 + (double)z[c] * z[c], dz = 0;
        for (int r = 0; r < ROWS; r++) {
            double sum = 0, behind = 0;
            for (int k = 0; k < WIDTH; k++)
                *(k <= c ? &sum : &(double){0}) += x[r][k], *(k >= c ? &behind : &(double){0}) += w[r][k];
            check("y", r, c, y[r][c], (double)x[r][c] * x[r][c] / damp);
            check("s", r, c, s[r][c], sum);
            check("dx", r, c, (double)x[r][c] - x1[r][c], w[r][c] * 2 * (double)x[r][c] / damp + behind);
            dz -= w[r][c] * (double)x[r][c] * x[r][c] * 2 * z[c] / (damp * damp);
        }
        check("dz", 0, c, (double)z[c] - z1[c], dz);
    }
    printf(wrong ? "%d are wrong\n" : "all is right\n", wrong);
    return wrong != 0;
}
