/* Threads that come and go:  churn end|exit|cancel|detach|grow N   makes N threads one after the
 * other that end in that way, then two that stay and report as threads 1 and 2 while main reports
 * as 0. "grow": all run the same routine, and the last half of the N take longer. */
#include <stdbool.h>

#include "threads.h"

static pthread_barrier_t all_here;
static const char *way;
static bool takes_longer;

static void *lasting(void *argument)
{
    report_worker(0, (int)(long)argument);
    pthread_barrier_wait(&all_here);
    return NULL;
}

static void *brief(void *stays)
{
    if (stays) {
        return lasting(stays);
    }
    if (strcmp(way, "grow") == 0 && takes_longer) {
        usleep(1000);
    }
    if (strcmp(way, "exit") == 0) {
        pthread_exit(NULL);
    }
    if (strcmp(way, "cancel") == 0) {
        for (;;) {
            pause();
        }
    }
    return NULL;
}

/* An emulator has a thread of its own from the beginning on. */
static int threads_of_main;

static void wait_until_alone(void)
{
    for (int i = 0; i < 2000 && count_threads() > threads_of_main; i++) {
        usleep(1000);
    }
}

static void one(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (strcmp(way, "detach") == 0) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    }
    must(pthread_create(&thread, &attributes, brief, NULL));
    if (strcmp(way, "detach") == 0) {
        wait_until_alone(); /* or there are more at once than PUs */
        return;
    }
    if (strcmp(way, "cancel") == 0) {
        pthread_cancel(thread);
    }
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    pthread_t thread[2];
    if (argc < 3) {
        return 2;
    }
    way = argv[1];
    threads_of_main = count_threads();
    pthread_barrier_init(&all_here, NULL, 3);
    for (int i = 0; i < atoi(argv[2]); i++) {
        takes_longer = i >= atoi(argv[2]) / 2;
        one();
    }
    wait_until_alone();
    for (long i = 0; i < 2; i++) {
        thread[i] = begin_thread(strcmp(way, "grow") == 0 ? brief : lasting, (void *)(i + 1));
    }
    report_worker(0, 0);
    pthread_barrier_wait(&all_here);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    return errno != 0;
}
