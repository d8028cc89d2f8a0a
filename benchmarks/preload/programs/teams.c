/* teams [REGIONS]: many short parallel regions, as iterative solvers and phylogenetics have.
 * Two such programs at once fill the machine twice, and the runtimes' threads spin for one
 * another: here pinning gains. Prints the seconds. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 20000 };
static double a[N];

int main(int argc, char **argv)
{
    int regions = argc > 1 ? atoi(argv[1]) : 8000;
    double sum = 0;
    for (int i = 0; i < N; i++) {
        a[i] = i % 13;
    }
#pragma omp parallel
    ;
    double begun = omp_get_wtime();
    for (int r = 0; r < regions; r++) {
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < N; i++) {
            sum += a[i] / (1 + a[i]);
        }
    }
    fprintf(stderr, "%g\n", sum);
    printf("%.4f\n", omp_get_wtime() - begun);
    return 0;
}
