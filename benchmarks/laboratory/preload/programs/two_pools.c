/* two_pools [ROUNDS [WORKERS]]: two pools in one program, OpenMP regions in turns with a pool
 * of its own whose threads wait by sched_yield(), as OpenBLAS's do. Prints the seconds. */
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 40000, MOST = 256 };
static double a[N], b[N], sums[MOST][8];
static atomic_int turn[MOST], workers = 1;

static void part(int k, int of)
{
    double sum = 0;
    for (int i = k * (N / of); i < (k + 1) * (N / of); i++) {
        sum += a[i] * b[i] / (1 + a[i] * a[i]);
    }
    sums[k][0] += sum;
}

static void *worker(void *argument)
{
    int k = (int)(long)argument;
    for (int done = 0;;) {
        while (atomic_load(&turn[k]) == done) {
            sched_yield();
        }
        if ((done = atomic_load(&turn[k])) < 0) {
            return NULL;
        }
        part(k, workers + 1);
        atomic_store(&turn[k], ++done);
    }
}

static void compute_in_pool(void)
{
    for (int k = 1; k <= workers; k++) {
        atomic_fetch_add(&turn[k], 1);
    }
    part(0, workers + 1);
    for (int k = 1; k <= workers; k++) {
        while (atomic_load(&turn[k]) % 2) {
            sched_yield();
        }
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    pthread_t thread[MOST];
    workers = argc > 2 ? atoi(argv[2]) : 1;
    if (workers < 1 || workers >= MOST) {
        fputs("usage: two_pools [ROUNDS [WORKERS]], 1 to 255 workers\n", stderr);
        return 2;
    }
    for (int i = 0; i < N; i++) {
        a[i] = b[i] = i % 7;
    }
    for (long k = 1; k <= workers; k++) {
        pthread_create(&thread[k], NULL, worker, (void *)k);
    }
    double begun = omp_get_wtime(), sum = 0;
    for (int r = 0; r < rounds; r++) {
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < N; i++) {
            sum += a[i] * b[i] / (1 + a[i] * b[i]);
        }
        compute_in_pool();
    }
    double seconds = omp_get_wtime() - begun;
    for (int k = 1; k <= workers; k++) {
        atomic_store(&turn[k], -1);
        pthread_join(thread[k], NULL);
    }
    fprintf(stderr, "%g\n", sum);
    printf("%.4f\n", seconds);
    return 0;
}
