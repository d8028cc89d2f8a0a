/* How launchers tell a process which rank of its node it is, and how many there are: names of
 * variables in its environment. For the shim, which is such a process, and for `servet-show
 * --live`, which looks at one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ranks of one node at most; a variable that says more is not believed. */
#define PROFILE_MOST_RANKS 8192u

/* The variable of the size holds the number, Slurm's counts of all nodes ("2(x3),1"), or
 * Flux's ranks of the whole job. */
enum profile_local_size { PROFILE_SIZE_HERE, PROFILE_SIZE_BY_NODE, PROFILE_SIZE_OF_JOB };

/* Lists are words with a blank between. */
struct profile_launcher {
    const char *name, *rank, *size; /* size NULL: no variable tells */
    const char *also;               /* NULL; else without it these two are not this launcher's */
    enum profile_local_size holds;
    bool workers; /* processes without MPI_Init: each has an equal part of the node, where those
                     that it starts live, too */
    bool takes;   /* worker k takes GPU k of those that all of them see */
    bool common;  /* scripts under other launchers set the two as well: if those say the same
                     numbers, it is them */
    const char *daemon; /* list: beginnings of the names of the processes that start ranks; NULL */
    const char *job;    /* list: variables that name a job together; NULL: none does */
    const char *bound, *asked; /* lists: variables, one of which is set where it binds ranks one by
                                  one, and where the user has said how (NAME=TEXT in its value) */
};

/* The value of a variable in an environment `of` the caller's kind, valid until the next call;
 * NULL: it is not set. */
typedef const char *profile_variable(const void *of, const char *name);

struct profile_local_rank {
    const struct profile_launcher *row;
    uint32_t rank, size; /* size > rank */
    bool contradicts;    /* the rank is beyond the size, or the size is none */
};

/* Variables by which users place the threads of OpenMP runtimes. */
static const char *const profile_users_places[] = {"OMP_PLACES", "OMP_PROC_BIND",
                                                   "GOMP_CPU_AFFINITY", "KMP_AFFINITY", NULL};

/* False: no launcher that is known. */
bool profile_launcher_find(profile_variable *variable, const void *of,
                           struct profile_local_rank *out);

/* Begins the name of a process like that of any launcher's daemon? */
bool profile_is_daemon(const char *name);
