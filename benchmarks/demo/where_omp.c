/* An ordinary OpenMP program, not linked with anything of ours: a triad over arrays of its own per
 * thread, then who ran where. It is what ./quickstart puts behind servet-pin. */
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "benchmarks/demo/where.h"

int main(void)
{
    int threads = omp_get_max_threads();
    struct where *seen = calloc((size_t)threads, sizeof *seen);
    if (!seen) {
        fputs("where_omp: out of memory\n", stderr);
        return 1;
    }
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        double *arrays = where_arrays();
#pragma omp barrier
        seen[me] = where_triad(arrays);
        free(arrays);
    }
    printf("%-8s %-10s %-5s %s\n", "thread", "allowed", "ran", "triad");
    for (int i = 0; i < threads; i++) {
        printf("%-8d %-10s %-5d %.1f GB/s\n", i, seen[i].allowed, seen[i].cpu,
               seen[i].bytes_per_s / 1e9);
    }
    printf("omp_get_num_procs() = %d\n", omp_get_num_procs());
    free(seen);
    return 0;
}
