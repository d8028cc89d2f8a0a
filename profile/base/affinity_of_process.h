/* Where a thread is right now, as the kernel tells from outside: for the report at exit and for
 * `servet-show --live`. */
#ifndef SERVET_PROFILE_BASE_AFFINITY_OF_PROCESS_H
#define SERVET_PROFILE_BASE_AFFINITY_OF_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct profile_thread_now {
    pid_t pid, tid;
    char name[32];
    char allowed[256]; /* cpulist */
    int32_t last_pu;   /* it last ran on */
};

/* 0; -ESRCH when there is no such thread (any more). */
int profile_affinity_of_thread(pid_t pid, pid_t tid, struct profile_thread_now *out);

/* Facts on a thread that the kernel does not know. */
struct profile_thread_said {
    const char *host, *rank; /* rank: on its node, "-" where it is none */
    const char *role;        /* main, worker, helper ... */
    const char *pus;         /* that it may run on */
    const char *decided_by;
};

/* One line of a report: host, pid, local rank, tid, name, role, PUs, last PU, core/L3/NUMA of that,
 * decided by; or the same as a JSON object. */
void profile_affinity_print(FILE *out, bool json, const struct profile_thread_now *now,
                            const struct profile_thread_said *said);

#endif
