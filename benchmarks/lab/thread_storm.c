/* Creates and joins threads one after the other, and says how long one took: the median of batches,
 * because a few crossings of PUs are slow. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/base/clock.h"

#define BATCHES 51
#define LEAST_BATCHES 5
#define ENOUGH_US 1e6 /* under a tool that takes 40 ms for a thread, fewer batches do */
#define BATCH 20

static void *nothing(void *argument)
{
    return argument;
}

static double now_us(void)
{
    return 1e6 * profile_now_s();
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    double times[BATCHES], started = now_us();
    size_t count = 0;
    while (count < BATCHES && (count < LEAST_BATCHES || now_us() - started < ENOUGH_US)) {
        double start = now_us();
        for (int i = 0; i < BATCH; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, nothing, NULL)) {
                return 1;
            }
            pthread_join(thread, NULL);
        }
        times[count++] = (now_us() - start) / BATCH;
    }
    qsort(times, count, sizeof *times, ascending);
    printf("us per thread: %.3f\n", times[count / 2]);
    return 0;
}
