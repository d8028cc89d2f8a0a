/* serial_parts [ROUNDS [MICROSECONDS]]: an OpenMP program between whose parallel regions the main
 * thread works alone, as image tools and many solvers do. Prints the seconds. The amount of work
 * follows from processor time, which no other program changes. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TRIAL = 5000000 };

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double work(double us)
{
    static double per_us;
    volatile double x = 1;
    if (per_us == 0) {
        double begun = cpu_seconds();
        for (int i = 0; i < TRIAL; i++) {
            x = x * 1.0000001;
        }
        per_us = TRIAL / ((cpu_seconds() - begun) * 1e6);
    }
    for (long i = 0, n = (long)(us * per_us); i < n; i++) {
        x = x * 1.0000001;
    }
    return x;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 40;
    double us = argc > 2 ? atof(argv[2]) : 8000, sum = work(1), begun = omp_get_wtime();
    for (int r = 0; r < rounds; r++) {
        sum += work(us);
#pragma omp parallel reduction(+ : sum)
        sum += work(us);
    }
    fprintf(stderr, "%g\n", sum);
    printf("%.4f\n", omp_get_wtime() - begun);
    return 0;
}
