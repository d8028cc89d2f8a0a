/* Which MPI a program is linked with, and the launcher that belongs to it: under another MPI's
 * launcher every rank starts as a program of its own, and N of them are measured as one of N
 * ranks. */
#pragma once

#include <stdbool.h>

#include "profile/base/error.h"

enum bench_mpi {
    BENCH_MPI_UNKNOWN, /* none, a script, linked statically, or behind another library */
    BENCH_MPI_OPEN,
    BENCH_MPI_MPICH, /* and what keeps its ABI: Intel MPI, MVAPICH, Cray MPICH */
};

struct bench_linked {
    enum bench_mpi mpi;
    char library[64]; /* that says so, such as "libmpi.so.40"; "" when unknown */
    bool openmp;
};

/* Libraries that the program needs (DT_NEEDED of its ELF file). All are unknown if the file cannot
 * be read or is no ELF file of this kind of machine. */
void bench_linked_with(const char *path, struct bench_linked *out);

/* The launcher for programs of that MPI (unknown: Open MPI's rather than another's) and in *kind
 * whose it is. $SERVET_BENCH_MPIRUN is taken whatever it is, if it is of that MPI. A new string in
 * *out. 0; -ENOENT: there is none; -EINVAL: $SERVET_BENCH_MPIRUN is another MPI's. */
int bench_launcher(const struct bench_linked *linked, enum bench_mpi *kind, char **out,
                   struct servet_error *error);
