/* A library whose constructor makes a thread, which asks what an interposed function answers, and
 * waits for it. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

extern int rare_constructor_runs;

static void *ask(void *argument)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    pthread_getaffinity_np(pthread_self(), sizeof set, &set);
    return argument;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    __atomic_store_n(&rare_constructor_runs, 1, __ATOMIC_RELEASE);
    usleep(300000);
    if (pthread_create(&thread, NULL, ask, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}
