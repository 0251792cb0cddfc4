/* The public interface on four ranks: main on rank 0 alone, feeds, outputs, parameters in and out, two programs that share parameters, numbers of the optimizer.

RUN: %hetucc -O1 %s -o %t
RUN: env HETU_CHECK=1 %mpirun 4 %t one two | FileCheck %s
CHECK: before
CHECK: rank 0 has 3 arguments and 4 devices
CHECK-NOT: rank
CHECK: w has 35 elements, bias has 7
CHECK: the model's value is the mean of its output
CHECK: w came back
CHECK: ht_infer sees the new weights
CHECK: a rate of zero changes nothing
CHECK: a step changes the weights of both programs
CHECK: closed
*/
#include <hetu/hetu.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#pragma hspmd strategy four
#pragma hspmd   split rows:dp wide:tp
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

enum { ROWS = 5, IN = 5, OUT = 7 };

static ht_tensor apply(ht_tensor x)
{
    ht_tensor w = ht_param(ht_shape(OUT, IN), ht_normal(0.5f), "w"), bias = ht_param(ht_shape(OUT), ht_constant(0.25f), "bias");
#pragma hspmd dims(x: rows, _)
#pragma hspmd dims(w: wide, _)
    return ht_output(ht_linear(x, w, bias), "y");
}

static ht_tensor loss(void)
{
    return ht_mean(apply(ht_input("x", HT_F32, ht_shape(ROWS, IN))));
}

static ht_tensor forward(void)
{
    return apply(ht_input("x", HT_F32, ht_shape(ROWS, IN)));
}

static float y[ROWS * OUT], other[ROWS * OUT], w[OUT * IN], now[OUT * IN];

static double mean(const float *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum / count;
}

static int same(const float *a, const float *b, int count)
{
    for (int i = 0; i < count; i++)
        if (fabsf(a[i] - b[i]) > 1e-5f)
            return 0;
    return 1;
}

static void print_shapes(ht_session *session)
{
    size_t first, second;
    const char *a = ht_param_name(session, 0, &first), *b = ht_param_name(session, 1, &second);
    printf("%s has %zu elements, %s has %zu\n", a, first, b, second);
}

int main(int argc, char **argv)
{
    puts("before");
    fflush(stdout);
    ht_session *session = ht_open(&argc, &argv);
    printf("rank 0 has %d arguments and %d devices\n", argc, ht_device_count(session));
    ht_seed(session, 7);
    ht_program *train = ht_train(session, loss, ht_sgd(.lr = 0)), *infer = ht_infer(session, forward);
    print_shapes(session);
    float x[ROWS * IN];
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = (float)(i % 7) - 2;

    float value = ht_step(train, ht_feed("x", x));
    ht_fetch(train, "y", y);
    if (fabs(value - mean(y, ROWS * OUT)) < 1e-5 && fabs(value) > 1e-3)
        puts("the model's value is the mean of its output");

    ht_get_param(session, "w", w, OUT * IN);
    for (int i = 0; i < OUT * IN; i++)
        w[i] += (float)i;
    ht_set_param(session, "w", w, OUT * IN);
    ht_get_param(session, "w", now, OUT * IN);
    puts(memcmp(w, now, sizeof w) ? "w differs" : "w came back");

    ht_run(infer, ht_feed("x", x));
    ht_fetch(infer, "", other);
    ht_step(train);
    ht_fetch(train, "y", y);
    puts(same(y, other, ROWS * OUT) && fabs(other[0]) > 1 ? "ht_infer sees the new weights" : "ht_infer differs");

    ht_get_param(session, "w", now, OUT * IN);
    puts(memcmp(w, now, sizeof w) ? "w changed" : "a rate of zero changes nothing");
    ht_set_rate(train, 0.5f);
    ht_step(train);
    ht_run(infer);
    ht_fetch(infer, "y", y);
    puts(same(y, other, ROWS * OUT) ? "nothing changed" : "a step changes the weights of both programs");
    ht_close(session);
    puts("closed");
    return 0;
}
