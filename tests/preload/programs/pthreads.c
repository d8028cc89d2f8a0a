/* A threads program: pthreads N [attribute PU]. Main and N threads that are alive at the same time;
 * with "attribute", the threads are created with that PU in their attribute. */
#include "threads.h"

#define MOST 64

static pthread_barrier_t all_here;

static void *work(void *argument)
{
    pthread_barrier_wait(&all_here);
    report_worker(0, (int)(long)argument);
    pthread_barrier_wait(&all_here);
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t thread[MOST];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (argc > 3) {
        const cpu_set_t set = only_pu(argv[3]);
        pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    }
    pthread_barrier_init(&all_here, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; i++) {
        must(pthread_create(&thread[i], argc > 3 ? &attributes : NULL, work, (void *)(i + 1)));
    }
    pthread_barrier_wait(&all_here);
    report_worker(0, 0);
    pthread_barrier_wait(&all_here);
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    return 0;
}
