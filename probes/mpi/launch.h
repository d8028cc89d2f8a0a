/* A program of ranks (servet-probe-mpi, servet-bsp-mpi) under mpirun, as a child that answers line
 * by line. */
#ifndef SERVET_PROBES_MPI_LAUNCH_H
#define SERVET_PROBES_MPI_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "profile/base/error.h"

struct mpi_child {
    pid_t pid;
    int to, from, errors; /* pipes, and a memory file with its stderr */
    char pending[4096];   /* read but not yet handed out */
    size_t pending_count;
};

/* Starts `mpirun -np ranks program pus`. -ENOENT (mpirun or the program not installed, `error` says
 * which), -errno. As root the two variables that Open MPI asks for are set, for the child only;
 * *as_root says so. */
int probe_mpi_child_start(const char *program, size_t ranks, const char *pus,
                          struct mpi_child *child, bool *as_root, struct servet_error *error);

/* Waits for its first line, "ready N". 0, -EINTR, -EIO with what it or mpirun said instead. */
int probe_mpi_child_greet(struct mpi_child *child, const volatile sig_atomic_t *cancel,
                          struct servet_error *error);

/* Sends one line. 0 or -EIO. */
int probe_mpi_child_send(struct mpi_child *child, const char *line);

/* Waits for one line (without its end) at most `seconds`. 0, -EINTR (*cancel), -ETIMEDOUT, -EIO (it
 * ended). */
int probe_mpi_child_receive(struct mpi_child *child, double seconds,
                            const volatile sig_atomic_t *cancel, char *line, size_t size);

/* First line of what it said on stderr, or "". */
void probe_mpi_child_complaint(const struct mpi_child *child, char *text, size_t size);

/* Lets it end by itself (`patient`) or not, and reaps it: afterwards no process of it is left. */
void probe_mpi_child_end(struct mpi_child *child, bool patient);

#endif
