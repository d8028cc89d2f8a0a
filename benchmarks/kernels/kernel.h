/* What every kernel shares: the command line, the report, and what VERIFICATION SUCCESSFUL means.
 *
 *   NAME_omp [CLASS]    NAME_mpi [CLASS]    NAME_hybrid [CLASS]        CLASS: S (default), W, A, B
 *
 * A kernel of the NAS Parallel Benchmarks is written from the specification (D. Bailey et al.: The
 * NAS Parallel Benchmarks, RNR-94-007, NASA Ames 1994) and shares no code with NPB. Sizes and
 * verification values of all classes are those that NASA publishes with NPB 2 and later: the
 * specification itself has no class W, and its tables of the others were not at hand to compare
 * digit by digit. The values as they stand here are quoted alike by many ports of NPB, and these
 * programs, which owe nothing to any of them, reach each to 1e-12 or better (IS: exactly): all five
 * in classes S, W, A and B (tests/benchmarks; meson test --suite slow runs A and B). A kernel for
 * which there are no published values says CHECK PASSED instead, and what was checked:
 * "VERIFICATION SUCCESSFUL" always means published numbers.
 *
 * Exit status: 0 verified, 1 not, 2 bad usage.
 */
#ifndef SERVET_BENCHMARKS_KERNEL_H
#define SERVET_BENCHMARKS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

struct kernel_result {
    double seconds;      /* of the timed part, slowest rank */
    double rate;         /* in rate_unit */
    const char *unit;    /* "Mop/s", "GB/s", … */
    bool verified;       /* on every rank */
    const char *checked; /* NULL: the published values; else what was checked instead */
};

/* What a kernel source defines. `problem` is 'S', 'W', 'A' or 'B'. run() gives false and one line
 * in *reason when it cannot run on so many ranks. */
extern const char kernel_name[];
bool kernel_run(char problem, struct kernel_result *result, const char **reason);

/* One line "what   value   published   relative error" on rank 0; is the error at most `tolerance`?
 */
bool kernel_compare(const char *what, double value, double published, double tolerance);

/* Memory that is not there ends the program (status 1): a benchmark cannot go on. Zeroed, by the
 * threads that will use it (static schedule over the bytes), so that pages lie near them; 64-byte
 * aligned. free() it. */
void *kernel_memory(size_t count, size_t bytes_each);

/* Index of the class in tables: S 0, W 1, A 2, B 3. */
size_t kernel_class_index(char problem);

#endif
