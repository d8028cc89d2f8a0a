/* Which ranks and PUs do the launcher's variables give, and which values are refused? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload/place/launcher.h"
#include "profile/base/clock.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

static struct child child;

/* Task 1 of two of a Slurm step on this node. */
static void be_task(const char *type, const char *list)
{
    setenv("SLURM_LOCALID", "1", 1);
    setenv("SLURM_NODEID", "0", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "2", 1);
    setenv("SLURM_CPU_BIND_TYPE", type, 1);
    setenv("SLURM_CPU_BIND_LIST", list, 1);
}

static bool is_oversubscribed(uint32_t pus)
{
    struct pin_launcher launcher;
    struct profile_mask start = {0};
    for (uint32_t pu = 0; pu < pus; pu++) {
        profile_mask_add(&start, pu);
    }
    pin_launcher_read(false, &launcher);
    ck_assert_uint_eq(launcher.node_rank, 1);
    ck_assert_uint_eq(launcher.node_ranks, 2);
    return pin_launcher_oversubscribed(&launcher, &start);
}

TEST(tasks_of_slurm_share_pus_or_do_not)
{
    be_task("mask_cpu:", "0x1,0x2"); /* each has one, this one's mask */
    ck_assert(!is_oversubscribed(1));
    be_task("mask_cpu:", "0x1,0x1");
    ck_assert(is_oversubscribed(1));
    be_task("none", "");
    ck_assert(is_oversubscribed(1));
    ck_assert(!is_oversubscribed(2));
}

TEST(ranks_in_one_pu_are_too_many)
{
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    ck_assert(is_oversubscribed(1)); /* taskset, a container: whatever the node has */
    ck_assert(!is_oversubscribed(2));
}

/* A mistake in the environment must not cost the program seconds. */
TEST(absurd_numbers_cost_nothing)
{
    static const char *const size[] = {"2000000000", "8191", "99999999999999999999"};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        char ranks[64];
        snprintf(ranks, sizeof ranks, "OMPI_COMM_WORLD_LOCAL_SIZE=%s", size[i]);
        child_run_preloaded(&child,
                            CHANGES("OMPI_COMM_WORLD_LOCAL_RANK=0", ranks, "OMP_NUM_THREADS=8000"),
                            ARGV("/bin/sh", "-c", "ulimit -t 2; exec " PROGRAMS "/pthreads 1"));
        ck_assert_msg(child.status == 0, "%s ranks: exit status %d: %s", size[i], child.status,
                      child.err);
        child_expect(&child, 0, 0, 0);
    }
}
