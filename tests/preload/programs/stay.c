/* Becomes a rank, makes N threads, reports, and stays until its standard input ends:  stay N */
#include <pthread.h>

#include "report.h"

#define MOST 16

int MPI_Init(int *count, char ***values);

static pthread_barrier_t started, leaving;

static void *work(void *argument)
{
    report_worker(0, (int)(long)argument);
    pthread_barrier_wait(&started);
    pthread_barrier_wait(&leaving);
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t thread[MOST];
    char byte;
    if (MPI_Init(NULL, NULL) != 0) {
        return 3;
    }
    pthread_barrier_init(&started, NULL, (unsigned)count + 1);
    pthread_barrier_init(&leaving, NULL, (unsigned)count + 1);
    for (long i = 0; i < count && i < MOST; i++) {
        if (pthread_create(&thread[i], NULL, work, (void *)(i + 1)) != 0) {
            return 4;
        }
    }
    report_worker(0, 0);
    pthread_barrier_wait(&started);
    report_line("ready\n");
    while (read(STDIN_FILENO, &byte, 1) > 0) {
        ;
    }
    pthread_barrier_wait(&leaving);
    for (int i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
    }
    return 0;
}
