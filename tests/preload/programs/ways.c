/* Other ways to make a thread, and what the program itself sees:
 *   worker 0 1    thrd_create
 *   worker 0 2    a SIGEV_THREAD timer's notification
 *   asked THREAD HOW PUS    the answers of sched_getaffinity and pthread_getaffinity_np to the
 *                           program, thread 0 is
 * main */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <threads.h>
#include <time.h>

#include "report.h"

static sem_t fired;

static void print_set(int thread, const char *how, const cpu_set_t *set)
{
    char line[512];
    size_t used = (size_t)snprintf(line, sizeof line, "asked %d %s", thread, how);
    for (size_t pu = 0; pu < CPU_SETSIZE && used < 400; pu++) {
        if (CPU_ISSET(pu, set)) {
            used += (size_t)snprintf(line + used, sizeof line - used, " %zu", pu);
        }
    }
    report_line("%s\n", line);
}

static void ask(int thread)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        print_set(thread, "sched", &set);
    }
    if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0) {
        print_set(thread, "pthread", &set);
    }
}

static int work(void *unused)
{
    (void)unused;
    report_worker(0, 1);
    ask(1);
    return 5;
}

static void notify(union sigval value)
{
    report_worker(0, value.sival_int);
    sem_post(&fired);
}

int main(void)
{
    thrd_t thread;
    timer_t timer;
    int result;
    sem_init(&fired, 0, 0);
    if (thrd_create(&thread, work, NULL) != thrd_success ||
        thrd_join(thread, &result) != thrd_success || result != 5) {
        return 4;
    }
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD, .sigev_notify_function = notify, .sigev_value.sival_int = 2};
    struct itimerspec soon = {.it_value.tv_nsec = 1000000};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &soon, NULL) != 0) {
        return 5;
    }
    sem_wait(&fired);
    report_worker(0, 0);
    ask(0);
    return 0;
}
