/* A worker with children that work, too, as a loader of data does:  loaders   Each of two children
 * has a thread; main has three, and ends before the children do. */
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

#include "../threads.h"

enum { LOADERS = 2, THREADS = 3, SPIN_MS = 200 };

static void *spin(void *forever)
{
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += SPIN_MS * 1000000l;
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (forever || (now.tv_sec - end.tv_sec) * 1000000000l + now.tv_nsec < end.tv_nsec);
    return NULL;
}

int main(void)
{
    static bool forever = true;
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        thread[i] = begin_thread(spin, NULL);
    }
    for (int i = 0; i < LOADERS; i++) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run_thread(spin, &forever);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    return 0;
}
