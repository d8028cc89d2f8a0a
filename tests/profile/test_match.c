/* Is a profile of another machine noticed, and one of this machine known again? */
#include "tests/profile/fixture.h"
#include "tests/profile/tree.h"

#include <errno.h>

#include "profile/model.h"
#include "profile/scope.h"
#include "tests/base/runner.h"

static struct servet_profile *from_tree(void)
{
    put_smt_machine();
    struct servet_profile *profile = of_sysfs(scratch_folder());
    free(profile->host_name);
    profile->host_name = strdup("smt.example");
    profile->topology_signature = calloc(1, PROFILE_SIGNATURE_SIZE);
    ck_assert_int_eq(profile_signature(scratch_folder(), profile->topology_signature), 0);
    return profile;
}

TEST(the_signature_stays_when_a_pu_goes_offline)
{
    const char *root = scratch_folder();
    char before[PROFILE_SIGNATURE_SIZE], after[PROFILE_SIGNATURE_SIZE];
    put_smt_machine();
    ck_assert_int_eq(profile_signature(root, before), 0);
    ck_assert_uint_eq(strspn(before, "0123456789abcdef"), 16);
    put_file("/sys/devices/system/cpu/online", "1-7\n");
    put_file("/sys/devices/system/cpu/cpu1/cache/index3/shared_cpu_list", "1,4-5\n");
    ck_assert_int_eq(profile_signature(root, after), 0);
    ck_assert_str_eq(before, after);
}

static const char *const changes[][2] = {
    {"/sys/devices/system/cpu/present", "0-15\n"},
    {"/sys/devices/system/node/online", "0-3\n"},
    {"/proc/cpuinfo", "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n"},
    {"/sys/devices/system/cpu/cpu0/cache/index3/size", "16384K\n"},
};

TEST(another_machine_has_another_signature, .loops = sizeof changes / sizeof *changes)
{
    const char *root = scratch_folder();
    char before[PROFILE_SIGNATURE_SIZE], after[PROFILE_SIGNATURE_SIZE];
    struct servet_profile *profile = from_tree();
    struct servet_error error = {""};
    ck_assert_int_eq(profile_signature(root, before), 0);
    ck_assert_int_eq(profile_matches(profile, root, NULL, &error), 0);
    put_file(changes[_i][0], changes[_i][1]);
    ck_assert_int_eq(profile_signature(root, after), 0);
    ck_assert_str_ne(before, after);
    ck_assert_int_eq(profile_matches(profile, root, NULL, &error), -ESTALE);
    ck_assert_msg(strstr(error.text, "of another machine (smt.example") != NULL, "%s", error.text);
}

TEST(this_machine_is_known_again)
{
    struct servet_profile *profile = described(NULL);
    struct servet_error error = {""};
    ck_assert_msg(profile_matches(profile, "", &profile->classes[0].pus, &error) == 0, "%s",
                  error.text);
}

TEST(a_pu_that_the_profile_does_not_know_is_noticed)
{
    struct servet_profile *profile = from_tree();
    struct servet_error error = {""};
    FREED_BY(profile_set_free) struct profile_set allowed;
    ck_assert_int_eq(profile_set_parse("0-3,9", &allowed), 0);
    ck_assert_int_eq(profile_matches(profile, scratch_folder(), &allowed, &error), -ESTALE);
    ck_assert_msg(strstr(error.text, "does not know PU 9") != NULL, "%s", error.text);
}

TEST(a_cluster_profile_is_matched_by_host_name)
{
    const char *root = scratch_folder();
    struct servet_profile *p = loaded(NEHALEM);
    struct servet_error error = {""};
    put_smt_machine();
    ck_assert_int_eq(profile_matches(p, root, NULL, &error), -ESTALE);
    ck_assert_msg(strstr(error.text, "of node[1-2], not of this host, smt.example") != NULL, "%s",
                  error.text);
    put_file("/proc/sys/kernel/hostname", "node2.cluster.example\n");
    ck_assert_msg(profile_matches(p, root, NULL, &error) == 0, "%s", error.text);
    ck_assert_ptr_eq(profile_class_of_host(p, "node1"), &p->classes[0]);
    ck_assert_ptr_null(profile_class_of_host(p, "node3"));
}

TEST(host_lists_expand_in_order)
{
    const char *list = "login,node[008-010,200]-ib,x";
    const char *names[] = {"login", "node008-ib", "node009-ib", "node010-ib", "node200-ib", "x"};
    uint32_t count;
    char name[64];
    ck_assert_int_eq(profile_hostlist_count(list, &count), 0);
    ck_assert_uint_eq(count, 6);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_int_eq(profile_hostlist_name(list, i, name, sizeof name), 0);
        ck_assert_str_eq(name, names[i]);
        ck_assert_int_eq(profile_hostlist_find(list, names[i]), i);
    }
    ck_assert_int_eq(profile_hostlist_name(list, 6, name, sizeof name), -ERANGE);
    ck_assert_int_eq(profile_hostlist_name(list, 1, name, 5), -ENAMETOOLONG);
    ck_assert_int_eq(profile_hostlist_find(list, "node8-ib"), -1);
    ck_assert_int_eq(profile_hostlist_find(list, "node011-ib"), -1);
    ck_assert_int_eq(profile_hostlist_find(list, "x.example.org"), 5);
}

TEST(a_number_may_be_followed_by_a_digit)
{
    const char *list = "rack[1-12]0,n[08-11]7.cluster";
    char name[64];
    for (uint32_t i = 0; i < 16; i++) {
        ck_assert_int_eq(profile_hostlist_name(list, i, name, sizeof name), 0);
        ck_assert_msg(profile_hostlist_find(list, name) == i, "'%s' is not found", name);
    }
    ck_assert_int_eq(profile_hostlist_find(list, "rack130"), -1);
    ck_assert_int_eq(profile_hostlist_find(list, "rack1"), -1);
    ck_assert_int_eq(profile_hostlist_find(list, "n097"), 13);
}

TEST(malformed_host_lists_are_refused)
{
    const char *bad[] = {"",    ",",     "a,",    "a,,b",   "n[",    "n]",      "n[]",
                         "n[1", "n[1-]", "n[-1]", "n[2-1]", "n[1,]", "n[1][2]", "a b"};
    uint32_t count;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(profile_hostlist_count(bad[i], &count) == -EINVAL, "'%s' was taken", bad[i]);
    }
    ck_assert_int_eq(profile_hostlist_count("n[0-999999999]", &count), -ERANGE);
    ck_assert_int_eq(profile_hostlist_count("n[0-9999999999]", &count), -ERANGE);
}
