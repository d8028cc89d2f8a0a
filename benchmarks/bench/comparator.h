/* The ways to place a program that are compared. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "benchmarks/bench/run.h"
#include "profile/base/error.h"

struct program {
    char *label;
    struct words argv;
    size_t ranks;   /* 0: not started by mpirun */
    size_t threads; /* OMP_NUM_THREADS; 0: as the environment has it */
    /* For a program with ranks, see bench_program_launcher(): */
    char *launcher; /* path; NULL: there is none, and why is in `obstacle` */
    bool hydra;     /* its options are those of MPICH's hydra, not Open MPI's */
    char *obstacle;
};

/* Finds the launcher of program->argv[0], once for all runs. 0, or as bench_launcher(): the reason
 * stays with the program, and every comparator is left out with it. */
int bench_program_launcher(struct program *program, struct servet_error *error);
void bench_program_free(struct program *program);

/* How the launcher binds ranks. */
enum bench_binding {
    BENCH_AS_IT_DOES,
    BENCH_NOTHING,
    BENCH_CORES,
    BENCH_CORES_BY_SOCKET,
    BENCH_CORES_BY_NUMA
};

struct comparator {
    const char *name;
    const char *meaning;
    bool for_threads; /* of one process */
    bool for_ranks;
    enum bench_binding binding;
    const char *proc_bind;  /* OMP_PROC_BIND, of cores; or NULL */
    const char *needs;      /* a command, or NULL */
    const char *options[4]; /* of what it needs, before the program; ends with NULL */
};

extern const struct comparator bench_comparators[];
extern const size_t bench_comparator_count;

/* Is it a way to place of this project? */
static inline bool bench_comparator_ours(const struct comparator *comparator)
{
    return strncmp(comparator->name, "servet-", 7) == 0;
}

/* NULL when there is none of that name. */
const struct comparator *bench_comparator_find(const char *name);

/* Why the comparator cannot be used for that program here, as a new string; NULL when it can: *tool
 * (may be NULL in the result) is then the path of what it needs, a new string. */
char *bench_comparator_obstacle(const struct comparator *comparator, const struct program *program,
                                char **tool);

/* Command line of the program under that comparator, and "NAME=value" beside the inherited
 * environment, which is free of OMP_*BIND, OMP_PLACES, *_AFFINITY, SERVET_* (but SERVET_PROFILE);
 * bench_words_free() both. */
void bench_comparator_command(const struct comparator *comparator, const struct program *program,
                              const char *tool, struct words *argv, struct words *environment);
