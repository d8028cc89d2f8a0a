/* Where a thread is right now, as the kernel tells from outside: for the report at exit and for
 * `servet-show --live`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct profile_thread_now {
    pid_t pid, tid;
    char name[32];
    char allowed[256]; /* cpulist */
    int32_t last_pu;   /* it last ran on */
    int32_t only_pu;   /* it may run nowhere else; -1: it may */
    bool runs;         /* is running or ready to */
    bool works;        /* has run, or was ready to, for a tenth of its life; it ran for a tick */
};

/* A thread works for a tenth of its life: one that waits for input or for others has less. */
static inline bool profile_works(uint64_t ran, uint64_t lived)
{
    return ran > 0 && ran >= lived / 10;
}

/* 0; -ESRCH when there is no such thread (any more), or it is one of the kernel's. */
int profile_affinity_of_thread(pid_t pid, pid_t tid, struct profile_thread_now *out);

/* The PU that a thread keeps from others, -1: none. Two of three must hold: it may run nowhere
 * else, it runs at this moment, it works. A shell that waits on one PU is no worker, nor is a
 * command that comes by. */
int32_t profile_thread_pu(const struct profile_thread_now *now);

/* Calls `see` for each thread of the process. False: there is no such process. */
bool profile_affinity_of_threads(pid_t pid,
                                 void (*see)(const struct profile_thread_now *now, void *argument),
                                 void *argument);

/* In a report: the purpose of a thread, and who decided where it runs. */
enum profile_role {
    PROFILE_ROLE_MAIN,
    PROFILE_ROLE_WORKER, /* of an OpenMP runtime or a library's pool */
    PROFILE_ROLE_THREAD, /* of the program */
    PROFILE_ROLE_BRIEF,  /* of a kind that ends within a moment */
    PROFILE_ROLE_HELPER,
    PROFILE_ROLE_WATCH,
    PROFILE_ROLE_UNKNOWN,
};
enum profile_decider {
    PROFILE_BY_SERVET,
    PROFILE_BY_KERNEL, /* it may run wherever its process may */
    PROFILE_BY_PROGRAM,
    PROFILE_BY_USER, /* OMP_PLACES and the like */
    PROFILE_BY_OTHERS,
};

/* Facts on a thread that the kernel does not know. */
struct profile_thread_said {
    const char *rank; /* on its node, "-" where it is none */
    enum profile_role role;
    enum profile_decider decider;
    const char *pus; /* that it may run on */
};

/* The record of a thread. */
void profile_affinity_print(FILE *out, bool json, const struct profile_thread_now *now,
                            const struct profile_thread_said *said);
