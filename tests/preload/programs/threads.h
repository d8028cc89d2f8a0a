/* Threads as the test programs make them. A call that fails ends the program with status 4. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "report.h"

static inline void must(int failed)
{
    if (failed) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, strerror(errno));
        exit(4);
    }
}

/* -- routines -- */

static inline void *nothing(void *argument)
{
    return argument;
}

static inline void *reports(void *number)
{
    report_worker(0, (int)(long)number);
    return NULL;
}

/* -- threads -- */

static inline pthread_t begin_thread(void *(*routine)(void *), const void *argument)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, routine, (void *)(uintptr_t)argument));
    return thread;
}

static inline void run_thread(void *(*routine)(void *), const void *argument)
{
    pthread_join(begin_thread(routine, argument), NULL);
}

/* It reports as that thread. */
static inline void run_reporter(long number)
{
    run_thread(reports, (void *)number);
}

static inline cpu_set_t only_pu(const char *number)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)atoi(number), &set);
    return set;
}
