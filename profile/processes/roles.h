/* The roles of a process's threads, by the library whose code each was made to run: for the report
 * at exit and for `servet-show --live`, which look at threads that they have not made. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/processes/threads.h"

/* Libraries that are known to make threads. */
enum profile_owner {
    PROFILE_OWNER_OTHER,   /* no list names it: the program, its libraries */
    PROFILE_OWNER_RUNTIME, /* of OpenMP */
    PROFILE_OWNER_POOL,    /* a numeric library or task library with a pool of its own */
    PROFILE_OWNER_HELPER,  /* of progress, event and management threads: they never take a worker's
                              place */
};

/* `name`: of a file, without its folder. */
enum profile_owner profile_owner_of(const char *name);

/* The start of the shim's record of a thread, which is the argument of its start routine. */
struct profile_thread_record {
    const void *code; /* that the thread was made to run */
    atomic_int pu;    /* that it was given; below 0: none */
};

/* All threads of a process whose control blocks (glibc's) were found and could be read. */
struct profile_roles {
    size_t count;
    struct profile_thread_code {
        pid_t tid;
        enum profile_role role;
        int32_t given_pu; /* by the shim; below 0: none */
    } * each;
};

/* Reads the process's memory, which the kernel allows to those who may trace it; else there are no
 * entries. */
void profile_roles_read(pid_t pid, struct profile_roles *out);
void profile_roles_free(struct profile_roles *roles);
/* PROFILE_ROLE_UNKNOWN without an entry. */
enum profile_role profile_role_of(const struct profile_roles *roles,
                                  const struct profile_thread_now *now, int32_t *given_pu);
