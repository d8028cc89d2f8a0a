/* Common to all kernels: the command line and the report.
 *
 *   NAME_omp [CLASS]    NAME_mpi [CLASS]    NAME_hybrid [CLASS]        CLASS: S (default), W, A, B
 *
 * Each kernel checks its result and says CHECK PASSED, and what was checked.
 *
 * Exit status: 0 verified, 1 not, 2 bad usage. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kernel_result {
    double seconds;      /* of the timed part, slowest rank */
    double rate;         /* in `unit` */
    const char *unit;    /* "Mop/s", "GB/s", … */
    bool verified;       /* on every rank */
    const char *checked; /* what was checked; why it cannot run */
};

/* Defined by each kernel. `problem` is 'S', 'W', 'A' or 'B'. False when it cannot run on so many
 * ranks. */
extern const char kernel_name[];
bool kernel_run(char problem, struct kernel_result *result);

/* Memory that is not there ends the program (status 1): a benchmark cannot go on. Zeroed, by the
 * threads that will use it (static schedule over the bytes), so that pages lie near them; 64-byte
 * aligned. free() it. */
void *kernel_memory(size_t count, size_t bytes_each);

/* Index of the class in tables: S 0, W 1, A 2, B 3. */
size_t kernel_class_index(char problem);
