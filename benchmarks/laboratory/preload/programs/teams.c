/* teams [REGIONS [nested]]: many short parallel regions, as iterative solvers and phylogenetics
 * have. Two such programs at once fill the machine twice, and the runtimes' threads spin for one
 * another: here pinning gains. `nested`: within parallel regions, two by two threads, so that the
 * inner teams are made anew each time. Prints the seconds. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 20000 };
static double a[N];

static double region(int threads)
{
    double sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
    for (int i = 0; i < N; i++) {
        sum += a[i] / (1 + a[i]);
    }
    return sum;
}

int main(int argc, char **argv)
{
    int regions = argc > 1 ? atoi(argv[1]) : 8000, threads = omp_get_max_threads();
    double sum = 0;
    for (int i = 0; i < N; i++) {
        a[i] = i % 13;
    }
    omp_set_max_active_levels(2);
#pragma omp parallel
    ;
    double begun = omp_get_wtime();
    for (int r = 0; r < regions; r++) {
        if (argc > 2) {
#pragma omp parallel num_threads(2) reduction(+ : sum)
            sum += region(2);
        } else {
            sum += region(threads);
        }
    }
    fprintf(stderr, "%.10g\n", sum);
    printf("%.4f\n", omp_get_wtime() - begun);
    return 0;
}
