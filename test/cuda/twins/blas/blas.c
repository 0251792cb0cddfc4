/* The product of matrices of BLAS. */
#include "cblas.h"

#include <stddef.h>

/* c (n) += factor * b, where the elements of b stand `step` apart. */
static void add_row(float *restrict c, const float *restrict b, ptrdiff_t step, blasint n, float factor)
{
    if (step == 1)
        for (blasint j = 0; j < n; j++)
            c[j] += factor * b[j];
    else
        for (blasint j = 0; j < n; j++)
            c[j] += factor * b[j * step];
}

void cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k, float alpha, const float *a,
                 blasint lda, const float *b, blasint ldb, float beta, float *c, blasint ldc)
{
    (void)order;
    const ptrdiff_t a_row = ta == CblasTrans ? 1 : lda, a_column = ta == CblasTrans ? lda : 1;
    const ptrdiff_t b_row = tb == CblasTrans ? 1 : ldb, b_column = tb == CblasTrans ? ldb : 1;
#pragma omp parallel for schedule(static)
    for (blasint i = 0; i < m; i++) {
        float *row = c + (ptrdiff_t)i * ldc;
        for (blasint j = 0; j < n; j++)
            row[j] = beta == 0 ? 0 : beta * row[j];
        for (blasint l = 0; l < k; l++)
            add_row(row, b + l * b_row, b_column, n, alpha * a[i * a_row + l * a_column]);
    }
}
