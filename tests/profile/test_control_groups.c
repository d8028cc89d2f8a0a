/* Are quotas of control groups read as the kernel writes them, in both versions, and is what cannot
 * be read or meant no quota, with the reason? */
#include <errno.h>

#include "profile/base/control_groups.h"
#include "tests/base/runner.h"
#include "tests/profile/tree.h"

static double quota_of(void)
{
    double cpus = -1;
    ck_assert_int_eq(profile_quota_read(scratch_folder(), &cpus), 0);
    return cpus;
}

static int refusal_of(void)
{
    double cpus = -1;
    int rc = profile_quota_read(scratch_folder(), &cpus);
    ck_assert_double_eq(cpus, 0);
    return rc;
}

TEST(the_least_of_all_groups_counts_under_v2)
{
    put_file("/proc/self/cgroup", "0::/pod/box\n");
    put_file("/sys/fs/cgroup/pod/box/cpu.max", "max 100000\n");
    ck_assert_double_eq(quota_of(), 0);
    put_file("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
    ck_assert_double_eq_tol(quota_of(), 1.5, 1e-9);
    put_file("/sys/fs/cgroup/pod/box/cpu.max", "25000 50000\n");
    ck_assert_double_eq_tol(quota_of(), 0.5, 1e-9);
}

TEST(v1_has_a_tree_of_its_own_and_minus_one_is_no_limit)
{
    put_file("/proc/self/cgroup",
             "4:cpuset,cpuacct:/box\n3:memory:/box\n2:net_cls,cpu:/box\n0::/\n");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    ck_assert_double_eq(quota_of(), 0);
    put_file("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "300000\n");
    put_file("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    ck_assert_double_eq_tol(quota_of(), 3, 1e-9);
}

TEST(without_groups_there_is_no_quota)
{
    ck_assert_double_eq(quota_of(), 0);
}

TEST(a_container_that_sees_only_its_own_groups_has_their_quota)
{
    put_file("/proc/self/cgroup", "0::/kubepods/pod7/box\n");
    put_file("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    ck_assert_double_eq_tol(quota_of(), 2.5, 1e-9);
}

TEST(what_cannot_be_meant_or_read_is_no_quota)
{
    put_file("/proc/self/cgroup", "0::/box\n");
    put_file("/sys/fs/cgroup/box/cpu.max", "999 100000\n");
    ck_assert_int_eq(refusal_of(), -ERANGE);
    put_file("/sys/fs/cgroup/box/cpu.max", "much 100000\n");
    ck_assert_int_eq(refusal_of(), -EINVAL);
    put_file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    ck_assert_double_eq_tol(quota_of(), 2, 1e-9); /* what another group says counts */
}

TEST(a_group_that_hides_its_quota_is_named_as_such)
{
    put_file("/proc/self/cgroup", "0::/box\n");
    put_file("/sys/fs/cgroup/box/cpu.max/is-a-folder", "");
    ck_assert_int_eq(refusal_of(), -EISDIR);
}

TEST(how_often_a_quota_ran_out)
{
    put_file("/proc/self/cgroup", "2:cpu,cpuacct:/box\n0::/pod/box\n");
    ck_assert_double_eq(profile_quota_throttled(scratch_folder()), 0);
    put_file("/sys/fs/cgroup/cpu/box/cpu.stat", "nr_periods 9\nnr_throttled 3\n");
    ck_assert_double_eq(profile_quota_throttled(scratch_folder()), 3);
    put_file("/sys/fs/cgroup/pod/cpu.stat", "usage_usec 7\nnr_periods 9\nnr_throttled 8\n");
    ck_assert_double_eq(profile_quota_throttled(scratch_folder()), 8);
}

TESTS(.seconds = 20)
