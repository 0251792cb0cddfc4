/* A long row in order, its places, and what lies at these: prints how many elements are out of order, how many places name another element, and
 * how far the gradient of a weighted sum of the sorted row is from the weights in their places. */
#include <hetu/hetu.h>
#include <math.h>
#include <stdio.h>

enum { N = 200000 };

#pragma hspmd strategy two
#pragma hspmd   split n:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_param(ht_shape(N), ht_normal(1), "x"), weight = ht_input("weight", HT_F32, ht_shape(N));
#pragma hspmd dims(x: n)
    ht_sorted sorted = ht_sort(x, 0, true);
    ht_output(sorted.values, "values");
    ht_output(ht_gather(x, 0, sorted.indices), "gathered");
    ht_output(sorted.indices, "indices");
    return ht_sum(ht_mul(sorted.values, weight));
}

int main(int argc, char **argv)
{
    static float weight[N], values[N], gathered[N], before[N], after[N];
    static int64_t indices[N];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 1));
    int unordered = 0, misplaced = 0;
    double off = 0;
    for (int i = 0; i < N; i++)
        weight[i] = (float)(i % 7 - 3);
    ht_get_param(session, "x", before, N);
    ht_step(program, ht_feed("weight", weight));
    ht_get_param(session, "x", after, N);
    ht_fetch(program, "values", values);
    ht_fetch(program, "gathered", gathered);
    ht_fetch(program, "indices", indices);
    for (int i = 0; i < N; i++) {
        unordered += i > 0 && (values[i] > values[i - 1] || (values[i] == values[i - 1] && indices[i] < indices[i - 1]));
        misplaced += gathered[i] != values[i] || before[indices[i]] != values[i];
        off = fmax(off, fabs((double)before[indices[i]] - weight[i] - after[indices[i]]));
    }
    printf("%d %d %.9g\n", unordered, misplaced, off);
    return 0;
}
