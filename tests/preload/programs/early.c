/* An object whose constructor makes a thread: it runs before the constructor of anything that was
 * preloaded. */
#include "threads.h"

void early(void);
static pthread_barrier_t leaving;
static pthread_t thread;

static void *work(void *unused)
{
    report_worker(0, 1);
    pthread_barrier_wait(&leaving);
    return unused;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_barrier_init(&leaving, NULL, 2);
    thread = begin_thread(work, NULL);
}

void early(void)
{
    report_worker(0, 0);
    pthread_barrier_wait(&leaving);
    pthread_join(thread, NULL);
}
