/* one: one computing thread, and a main thread that only joins it. Prints the seconds. */
#include <pthread.h>
#include <stdio.h>

#include "profile/base/clock.h"

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
    pthread_t thread;
    double begun = profile_now_s();
    pthread_create(&thread, NULL, compute, NULL);
    pthread_join(thread, NULL);
    printf("%f\n", profile_now_s() - begun);
    return 0;
}
