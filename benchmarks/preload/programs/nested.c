/* nested [REGIONS]: parallel regions within parallel regions, two by two threads, whose inner
 * teams are made anew each time. Prints the seconds. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 20000 };
static double a[N];

int main(int argc, char **argv)
{
    int regions = argc > 1 ? atoi(argv[1]) : 1000;
    double sum = 0;
    for (int i = 0; i < N; i++) {
        a[i] = i % 13;
    }
    omp_set_max_active_levels(2);
    double begun = omp_get_wtime();
    for (int r = 0; r < regions; r++) {
#pragma omp parallel num_threads(2) reduction(+ : sum)
        {
#pragma omp parallel for num_threads(2) reduction(+ : sum)
            for (int i = 0; i < N; i++) {
                sum += a[i] / (1 + a[i]);
            }
        }
    }
    fprintf(stderr, "%.10g\n", sum);
    printf("%.4f\n", omp_get_wtime() - begun);
    return 0;
}
