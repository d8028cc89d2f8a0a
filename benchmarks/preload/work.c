/* work THREADS ROUNDS LOOPS: each thread computes ROUNDS times LOOPS steps, with a barrier after
 * each round, as a fork-join program does; prints the seconds that it took. The main thread is one.
 * */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long rounds, loops;
static pthread_barrier_t barrier;

static void *work(void *result)
{
    volatile uint64_t value = 1;
    for (long round = 0; round < rounds; round++) {
        uint64_t state = value;
        for (long i = 0; i < loops; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
        }
        value = state;
        pthread_barrier_wait(&barrier);
    }
    return result;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    pthread_t thread[64];
    int threads = argc == 4 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > 64) {
        fputs("usage: work THREADS ROUNDS LOOPS, at most 64 threads\n", stderr);
        return 2;
    }
    rounds = atol(argv[2]);
    loops = atol(argv[3]);
    double begun = now_s();
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 1; i < threads; i++) {
        if (pthread_create(&thread[i], NULL, work, NULL) != 0) {
            return 1;
        }
    }
    work(NULL);
    for (int i = 1; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    printf("%.6f\n", now_s() - begun);
    return 0;
}
