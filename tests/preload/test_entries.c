/* Does a process become a rank, on the PU of its rank, in every entry of MPI, Fortran's MPI and
 * OpenSHMEM that a program can come through? The library behind them is a stub, so each entry
 * stands alone: none is reached through another. And is none of them seen where there is no MPI? */
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"
#include "tests/preload/programs/entries.h"

#define NAME(entry) #entry,
static const char *const entries[] = {ENTRIES(NAME)};
enum { COUNT = sizeof entries / sizeof entries[0] };

static bool returns_nothing(const char *entry)
{
    return strcmp(entry, "shmem_init") == 0 || strcmp(entry, "start_pes") == 0 ||
           strncasecmp(entry, "mpi_init", 8) == 0;
}

TEST(the_entry_makes_a_rank, .loops = COUNT)
{
    run_preloaded(CHANGES("OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2"),
                  ARGV(PROGRAMS "/entries", entries[_i]), "0.0=second");
    child_says(&child, "reached %s\n", entries[_i]);
    if (!returns_nothing(entries[_i])) {
        child_says(&child, "count 0 42\n"); /* the library's answer */
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
    const char *argv[COUNT + 3] = {PROGRAMS "/odd", "find"};
    memcpy(argv + 2, entries, sizeof entries);
    child_run_preloaded(&child, NULL, argv);
    ck_assert_msg(child.status == 0 && strcmp(child.out, "count 0 0\n") == 0, "%d %s%s",
                  child.status, child.out, child.err);
}

TESTS(.begin = here_need_two_pus)
