/* Calls of an OpenMP runtime on masks, and a thread of its team, in an object with the name of one.
 * `all`: the PUs that it takes to be allowed. */
#include <pthread.h>
#include <sched.h>

int stub_widen_by_sched(const cpu_set_t *all);
int stub_widen_by_sched(const cpu_set_t *all)
{
    return sched_setaffinity(0, sizeof *all, all);
}

int stub_widen_by_pthread(const cpu_set_t *all);
int stub_widen_by_pthread(const cpu_set_t *all)
{
    return pthread_setaffinity_np(pthread_self(), sizeof *all, all);
}

/* PUs of a thread, 0: the calling one. */
int stub_count(pid_t tid);
int stub_count(pid_t tid)
{
    cpu_set_t set;
    return sched_getaffinity(tid, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

static void *run_work(void *work)
{
    ((void (*)(void))work)();
    return NULL;
}

int stub_fork(void (*work)(void));
int stub_fork(void (*work)(void))
{
    pthread_t thread;
    return pthread_create(&thread, NULL, run_work, (void *)work);
}
