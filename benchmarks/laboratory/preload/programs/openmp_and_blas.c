/* openmp_and_blas [ROUNDS]: OpenMP regions and calls of a threaded BLAS in turns, as many codes of
 * chemistry do. Prints the sum and the seconds. */
#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 192 };
static double a[N * N], b[N * N], c[N * N];

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    for (int i = 0; i < N * N; i++) {
        a[i] = b[i] = i % 7;
    }
    double begun = omp_get_wtime(), sum = 0;
    for (int r = 0; r < rounds; r++) {
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < N * N; i++) {
            sum += a[i] * b[i] / (1 + c[i] * c[i]);
        }
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1e-9, a, N, b, N, 0, c, N);
    }
    printf("%g\n%.4f\n", sum, omp_get_wtime() - begun);
    return 0;
}
