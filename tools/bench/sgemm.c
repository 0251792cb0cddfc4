/* Prints OpenBLAS's operations a second on 2048 x 2048 matrices of floats, the best of ten runs. */
#include <cblas.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZE = 2048, TIMES = 10 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *matrix(void) {
    float *at = malloc(sizeof *at * SIZE * SIZE);
    if (!at) exit(1);
    for (int i = 0; i < SIZE * SIZE; i++) at[i] = (float)(i % 7);
    return at;
}

int main(void) {
    float *a = matrix(), *b = matrix(), *c = matrix();
    double best = 1e30;
    for (int i = 0; i < TIMES; i++) {
        double start = now();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIZE, SIZE, SIZE, 1, a, SIZE, b,
                    SIZE, 0, c, SIZE);
        double took = now() - start;
        best = took < best ? took : best;
    }
    printf("%.6g\n", 2.0 * SIZE * SIZE * SIZE / best);
    return 0;
}
