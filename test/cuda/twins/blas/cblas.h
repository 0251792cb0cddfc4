/* cblas.h: the one function of BLAS that the CPU's kernels call, for machines without a BLAS. Row-major matrices only. */
#ifndef TWINS_CBLAS_H
#define TWINS_CBLAS_H

typedef int blasint;
typedef enum CBLAS_ORDER { CblasRowMajor = 101 } CBLAS_ORDER;
typedef enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112 } CBLAS_TRANSPOSE;

/* c (m, n) = alpha * op(a) (m, k) op(b) (k, n) + beta * c. */
void cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k, float alpha, const float *a,
                 blasint lda, const float *b, blasint ldb, float beta, float *c, blasint ldc);

#endif
