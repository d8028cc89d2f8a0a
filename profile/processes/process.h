/* Processes that run, as /proc shows them at one moment: the one place that knows the form of its
 * files. Needs libc alone. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* A thread; a process is its main thread. */
struct profile_stat {
    char name[32], state; /* 'R': runs or is ready to */
    pid_t pid, parent;
    uint32_t threads;    /* of its process */
    uint64_t ran, began; /* in ticks; since the system started */
    uint64_t bytes;      /* of memory; the kernel's own threads have none */
    int32_t pu;          /* that it ran on last */
};

/* False: there is no such thread (any more). */
bool profile_stat_read(pid_t pid, pid_t tid, struct profile_stat *out);

/* How long a thread has run, and was ready to while others ran. False: it is gone, or this kernel
 * does not count (CONFIG_SCHED_INFO). */
bool profile_schedstat_read(pid_t pid, pid_t tid, uint64_t *ran_ns, uint64_t *waited_ns);

/* Has `ancestor` started `pid`, or one of those that did? */
bool profile_descends_from(pid_t pid, pid_t ancestor);

/* The threads of a process, or all processes (pid 0), to be read by profile_next_number(). NULL,
 * with errno: there is no such process. */
DIR *profile_open_numbers(pid_t pid);
/* 0: there is no further one, and the folder is closed. NULL has none. */
pid_t profile_next_number(DIR *folder);

/* The value of a variable in the environment that a process was started with, to be freed; NULL: it
 * has none, or may not be read. */
char *profile_variable_of(pid_t pid, const char *name);

/* A part of what a process has mapped. */
struct profile_region {
    uintptr_t from, to;
    char rights[5];
    char file[48]; /* without its folder; "": anonymous */
};

/* NULL, with errno: may not be read. */
FILE *profile_open_regions(pid_t pid);
/* False: there is no further one, and the file is closed. NULL has none. */
bool profile_next_region(FILE *file, struct profile_region *out);
