/* Calls one entry of entries_stub by its name and reports as rank 0:  entries NAME
 *
 * The entries are referred to as a program refers to its MPI library. */
#include "report.h"

// clang-format off
#define ENTRIES(with) \
    with(MPI_Init) \
    with(MPI_Init_thread) \
    with(PMPI_Init) \
    with(PMPI_Init_thread) \
    with(mpi_init) \
    with(mpi_init_) \
    with(mpi_init__) \
    with(MPI_INIT) \
    with(mpi_init_thread) \
    with(mpi_init_thread_) \
    with(mpi_init_thread__) \
    with(MPI_INIT_THREAD) \
    with(MPI_Session_init) \
    with(PMPI_Session_init) \
    with(shmem_init) \
    with(shmem_init_thread) \
    with(start_pes)
// clang-format on

#define DECLARE(name) int name(void *a, void *b, void *c, void *d);
#define ROW(name) {#name, name},

ENTRIES(DECLARE)

static const struct {
    const char *name;
    int (*call)(void *, void *, void *, void *);
} entries[] = {ENTRIES(ROW)};

int main(int argc, char **argv)
{
    int first = 0, second = 0, third = 0, fourth = 0;
    for (size_t i = 0; argc > 1 && i < sizeof entries / sizeof entries[0]; i++) {
        if (strcmp(entries[i].name, argv[1]) == 0) {
            int code = entries[i].call(&first, &second, &third, &fourth);
            report_worker(0, 0);
            report_count(0, code);
            return 0;
        }
    }
    return 3;
}
