/* Does a process become a rank, on the PU of its rank, in every entry of MPI, Fortran's MPI and
 * OpenSHMEM that a program can come through? The library behind them is a stub, so each entry
 * stands alone: none is reached through another. And is none of them seen where there is no MPI? */
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

static const char *const entries[] = {"MPI_Init",          "MPI_Init_thread",   "PMPI_Init",
                                      "PMPI_Init_thread",  "mpi_init",          "mpi_init_",
                                      "mpi_init__",        "MPI_INIT",          "mpi_init_thread",
                                      "mpi_init_thread_",  "mpi_init_thread__", "MPI_INIT_THREAD",
                                      "MPI_Session_init",  "PMPI_Session_init", "shmem_init",
                                      "shmem_init_thread", "start_pes"};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

static bool returns_nothing(const char *entry)
{
    return strcmp(entry, "shmem_init") == 0 || strcmp(entry, "start_pes") == 0 ||
           strncasecmp(entry, "mpi_init", 8) == 0;
}

TEST(the_entry_makes_a_rank, .loops = ENTRIES)
{
    static const char *const second_of_two[] = {"OMPI_COMM_WORLD_LOCAL_RANK=1",
                                                "OMPI_COMM_WORLD_LOCAL_SIZE=2", NULL};
    const char *const argv[] = {PROGRAMS "/entries", entries[_i], NULL};
    run_preloaded(second_of_two, argv, NULL);
    ck_assert_msg(strstr(child.out, formatted("reached %s\n", entries[_i])), "%s", child.out);
    child_expect(&child, 0, 0, order[1]);
    if (!returns_nothing(entries[_i])) {
        ck_assert_msg(strstr(child.out, "count 0 42\n"), "%s: not the library's answer:\n%s",
                      entries[_i], child.out);
    }
}

/* Its parent, whose copy it is, stays where it was. */
TEST(a_child_of_a_fork_that_libc_does_not_see_becomes_a_rank)
{
    run_preloaded(CHANGES(RANK),
                  ARGV("taskset", "-c", order_pair, PROGRAMS "/entries", "MPI_Init", "raw"),
                  "0.0=first 1.0=both");
    ck_assert_msg(!strstr(child.err, "servet: "), "%s", child.err);
}

/* In either of the ways of asking for it. */
TEST(no_entry_is_found_where_there_is_no_library)
{
    const char *argv[ENTRIES + 3] = {PROGRAMS "/odd", "find"};
    memcpy(argv + 2, entries, sizeof entries);
    child_run_preloaded(&child, NULL, argv);
    ck_assert_msg(child.status == 0 && strcmp(child.out, "count 0 0\n") == 0, "%d %s%s",
                  child.status, child.out, child.err);
}

TESTS(.begin = here_need_two_pus)
