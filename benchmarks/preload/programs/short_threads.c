/* short_threads N HAND: the microseconds of the first thread, and of each of N further ones,
 * created and joined. HAND 1: pinned by their attributes, to PU 0 and 1 in turns; HAND 2: all
 * to PU 1, and the main thread is bound to PU 0. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *nothing(void *argument)
{
    return argument;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static cpu_set_t only(int pu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)pu, &set);
    return set;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    pthread_attr_t attributes;
    int n = argc > 1 ? atoi(argv[1]) : 0, hand = argc > 2 ? atoi(argv[2]) : 0;
    if (argc != 3 || n < 1) {
        fputs("usage: short_threads N HAND, from 1 thread\n", stderr);
        return 2;
    }
    double begun = now_s();
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
    double first = now_s();
    if (hand == 2) {
        cpu_set_t set = only(0);
        sched_setaffinity(0, sizeof set, &set);
    }
    pthread_attr_init(&attributes);
    for (int i = 0; i < n; i++) {
        if (hand) {
            cpu_set_t set = only(hand == 1 ? i & 1 : 1);
            pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
        }
        pthread_create(&thread, hand ? &attributes : NULL, nothing, NULL);
        pthread_join(thread, NULL);
    }
    printf("%.1f %.2f\n", (first - begun) * 1e6, (now_s() - first) * 1e6 / n);
    return 0;
}
