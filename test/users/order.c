/* A long row in order, its places, and what lies at these: prints how many elements are out of order, how many places name another element,
 * how far the gradient of a weighted sum of the sorted row is from the weights in their places, and how far sums up to each place, and the gradient
 * of a weighted sum of these, are from sums in double, beside the largest. */
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
    ht_tensor z = ht_param(ht_shape(N), ht_uniform(1), "z"), sums = ht_output(ht_cumsum(z, 0), "sums");
#pragma hspmd dims(z: n)
    return ht_add(ht_sum(ht_mul(sorted.values, weight)), ht_sum(ht_mul(sums, weight)));
}

/* How far sums of elements up to each place (from the other end: behind it) are from `found`, beside the largest. */
static double sums_off(const float *elements, const float *found, int first, int step)
{
    double sum = 0, off = 0, most = 1;
    for (int k = 0, i = first; k < N; k++, i += step) {
        sum += elements[i];
        off = fmax(off, fabs(sum - found[i]));
        most = fmax(most, fabs(sum));
    }
    return off / most;
}

int main(int argc, char **argv)
{
    static float weight[N], values[N], gathered[N], before[N], after[N], sums[N], gradient[N], z[N];
    static int64_t indices[N];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 1));
    int unordered = 0, misplaced = 0;
    double off = 0;
    for (int i = 0; i < N; i++)
        weight[i] = (float)(i % 7 - 3);
    ht_get_param(session, "x", before, N);
    ht_get_param(session, "z", z, N);
    ht_step(program, ht_feed("weight", weight));
    ht_get_param(session, "x", after, N);
    ht_get_param(session, "z", gradient, N);
    ht_fetch(program, "sums", sums);
    ht_fetch(program, "values", values);
    ht_fetch(program, "gathered", gathered);
    ht_fetch(program, "indices", indices);
    for (int i = 0; i < N; i++) {
        unordered += i > 0 && (values[i] > values[i - 1] || (values[i] == values[i - 1] && indices[i] < indices[i - 1]));
        misplaced += gathered[i] != values[i] || before[indices[i]] != values[i];
        off = fmax(off, fabs((double)before[indices[i]] - weight[i] - after[indices[i]]));
    }
    for (int i = 0; i < N; i++)
        gradient[i] = z[i] - gradient[i];
    printf("%d %d %.9g %.9g %.9g\n", unordered, misplaced, off, sums_off(z, sums, 0, 1), sums_off(weight, gradient, N - 1, -1));
    return 0;
}
