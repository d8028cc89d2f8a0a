/* one: one computing thread, and a main thread that only joins it. Prints the seconds. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

/* `volatile`: the loop stays. */
static volatile long sum;

static void *compute(void *argument)
{
    for (long i = 0; i < 200000000; i++) {
        sum += i;
    }
    return argument;
}

int main(void)
{
    struct timespec begun, ended;
    pthread_t thread;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    pthread_create(&thread, NULL, compute, NULL);
    pthread_join(thread, NULL);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%f\n",
           (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec));
    return 0;
}
