/* start_latency N HAND: the microseconds from pthread_create() to the thread's first
 * instruction while its creator goes on computing; median, 90th percentile and longest of N.
 * HAND 1: the thread has PU 1 by its attribute and the main thread is bound to PU 0. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static atomic_int started;
static double started_us;

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static void *start(void *argument)
{
    started_us = now_us();
    atomic_store(&started, 1);
    return argument;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void pin_by_hand(pthread_attr_t *attributes)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof set, &set);
    CPU_ZERO(&set);
    CPU_SET(1, &set);
    pthread_attr_setaffinity_np(attributes, sizeof set, &set);
}

int main(int argc, char **argv)
{
    pthread_attr_t attributes;
    int n = argc > 1 ? atoi(argv[1]) : 0, hand = argc > 2 ? atoi(argv[2]) : 0;
    double *took_us = n > 0 ? malloc((size_t)n * sizeof *took_us) : NULL;
    if (argc != 3 || !took_us) {
        fputs("usage: start_latency N HAND, from 1 thread\n", stderr);
        return 2;
    }
    pthread_attr_init(&attributes);
    if (hand) {
        pin_by_hand(&attributes);
    }
    for (int i = -1; i < n; i++) { /* the first is not counted */
        pthread_t thread;
        atomic_store(&started, 0);
        double begun = now_us();
        pthread_create(&thread, hand ? &attributes : NULL, start, NULL);
        while (!atomic_load(&started)) {
        }
        if (i >= 0) {
            took_us[i] = started_us - begun;
        }
        pthread_join(thread, NULL);
    }
    qsort(took_us, (size_t)n, sizeof *took_us, ascending);
    printf("median %.0f p90 %.0f max %.0f us\n", took_us[n / 2], took_us[n * 9 / 10],
           took_us[n - 1]);
    free(took_us);
    return 0;
}
