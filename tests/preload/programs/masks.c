/* A runtime that changes and asks for masks, in a worker:
 *   worker 0 1, 2    after it has set the whole set by sched_setaffinity, by pthread_setaffinity_np
 *   worker 0 3       after it has set one PU, that of the argument
 *   count 4 N        PUs of the calling thread by sched_getaffinity(), count 5 N: of another thread
 *   worker 0 6, 8    the worker, and the main thread, after a library has visited every PU
 *   count 6 N        PUs of that worker by the same call then
 *   worker 0 9       a thread that the main thread makes then
 *   worker 0 7       a helper's thread, made by the pinned main thread:  masks PU */
#include "threads.h"

int stub_widen_by_sched(const cpu_set_t *all);
int stub_widen_by_pthread(const cpu_set_t *all);
int stub_count(pid_t tid);
int stub_help(void);
int stub_visit(const cpu_set_t *all);

static cpu_set_t all, one;

static void *work(void *unused)
{
    must(stub_widen_by_sched(&all));
    report_worker(0, 1);
    must(stub_widen_by_pthread(&all));
    report_worker(0, 2);
    must(stub_visit(&all));
    report_worker(0, 6);
    report_count(6, stub_count(0));
    report_count(4, stub_count(0));
    report_count(5, stub_count(getpid()));
    must(stub_widen_by_sched(&one));
    report_worker(0, 3);
    return unused;
}

int main(int argc, char **argv)
{
    if (argc < 2 || sched_getaffinity(0, sizeof all, &all) != 0) {
        return 3;
    }
    one = only_pu(argv[1]);
    run_thread(work, NULL);
    must(stub_visit(&all));
    report_worker(0, 8);
    run_reporter(9);
    return stub_help();
}
