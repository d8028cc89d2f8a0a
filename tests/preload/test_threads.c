/* Does a program of plain threads get one PU per thread, from the profile that the user names, and
 * does a profile that cannot be used cost one line and nothing else? */
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

#define PROGRAM PROGRAMS "/pthreads"

TEST(threads_follow_the_mapper)
{
    run_preloaded(NULL, ARGV(PROGRAM, "1"), NULL);
    child_expect_pus(&child, 0, 0, all_pus); /* it waits, and is no worker */
    child_expect(&child, 0, 1, order[1]);
    ck_assert_str_eq(child.err, "");
}

TEST(as_many_threads_as_pus_have_one_each)
{
    size_t pus = here_pus();
    uint32_t *all = kept(calloc(pus, sizeof *all));
    here_order(MAP_MEMORY, pus, all);
    child_run_preloaded(&child, NULL, ARGV(PROGRAM, formatted("%zu", pus)));
    for (size_t i = 1; i < pus && i < 64; i++) {
        child_expect(&child, 0, (int)i, all[i]);
    }
    child_expect(&child, 0, (int)pus, all[0]); /* the main thread's comes last */
}

/* Forced too: no PU twice. */
TEST(more_threads_than_pus_are_left, .loops = 2)
{
    size_t pus = here_pus();
    child_run_preloaded(&child, CHANGES(_i ? "SERVET_FORCE=1" : "SERVET_FORCE=0"),
                        ARGV(PROGRAM, formatted("%zu", 2 * pus)));
    for (size_t i = 0; i <= 2 * pus && i < 64; i++) {
        child_expect_pus(&child, 0, (int)i, all_pus);
    }
}

TEST(the_profile_decides)
{
    const char *path = scratch_path("uneven.json");
    const char *change = formatted("SERVET_PROFILE=%s", path);
    uint32_t capable = here_write_uneven_profile(path);
    child_run_preloaded(&child, CHANGES(RANK, change, "OMP_NUM_THREADS=1"), ARGV(PROGRAM, "1"));
    child_expect(&child, 0, 0, capable);
    ck_assert_str_eq(child.err, "");
    child_run(&child, CHANGES(RANK, "OMP_NUM_THREADS=1"),
              ARGV(SERVET_PIN, "--profile", path, PROGRAM, "1"));
    child_expect(&child, 0, 0, capable);
}

/* Behind the last member of the object in the file. */
static void append_member(const char *path, const char *member)
{
    FILE *io = fopen(path, "r+");
    ck_assert_ptr_nonnull(io);
    long end = -1;
    for (int c; (c = fgetc(io)) != EOF;) {
        end = c == '}' ? ftell(io) - 1 : end;
    }
    ck_assert_int_eq(fseek(io, end, SEEK_SET), 0);
    fprintf(io, ", %s}\n", member);
    ck_assert_int_eq(fclose(io), 0);
}

/* A cluster's profile is mostly its network: read by every process of every job, it would cost each
 * of them its time. This network is malformed, so that reading it would fail. */
TEST(the_network_of_a_cluster_is_not_read)
{
    const char *path = scratch_path("cluster.json");
    const char *change = formatted("SERVET_PROFILE=%s", path);
    uint32_t capable = here_write_uneven_profile(path);
    append_member(path, "\"network\": {\"layers\": 7}");
    child_run(&child, NULL, ARGV(SERVET_SHOW, path));
    ck_assert_int_ne(child.status, 0);
    run_preloaded(CHANGES(RANK, change, "OMP_NUM_THREADS=1"), ARGV(PROGRAM, "1"), "silent");
    child_expect(&child, 0, 0, capable);
}

static void expect_topology_with_one_line(const char *change, const char *word)
{
    run_preloaded(CHANGES(change), ARGV(PROGRAM, "1"), "0.1=second");
    ck_assert_uint_eq(child_lines(child.err, "servet: "), 1);
    ck_assert_uint_eq(child_lines(child.err, ""), 1);
    child_err_says("%s", word);
}

TEST(a_bad_profile_costs_one_line)
{
    static const char *const texts[] = {"{\"servet\": ", "ELF\177 garbage", ""};
    const char *path = scratch_path("bad.json");
    const char *change = formatted("SERVET_PROFILE=%s", path);
    expect_topology_with_one_line(change, path); /* missing */
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        scratch_file("bad.json", "%s", texts[i]);
        expect_topology_with_one_line(change, path);
    }
}

TEST(a_profile_of_another_machine_is_not_used_silently)
{
    expect_topology_with_one_line("SERVET_PROFILE=" FIXTURES "/nehalem-2-nodes.json",
                                  "not of this host");
}

TEST(an_attribute_of_the_program_wins)
{
    run_preloaded(NULL, ARGV(PROGRAM, "1", "attribute", order_text[0]), "0.1=first");
    run_preloaded(CHANGES("SERVET_FORCE=1"), ARGV(PROGRAM, "1", "attribute", order_text[0]),
                  "0.1=second");
}

TEST(a_main_thread_that_the_program_has_bound_stays)
{
    run_preloaded(NULL, ARGV(PROGRAMS "/odd", "bound", order_text[0]), "0.0=first 0.1=first");
    run_preloaded(CHANGES("SERVET_VERBOSE=1"), ARGV(PROGRAMS "/odd", "bound", order_text[1]),
                  "0.0=second");
    child_err_says("main thread stays where the program wants it");
    run_preloaded(CHANGES("SERVET_FORCE=1"), ARGV(PROGRAMS "/odd", "bound", order_text[1]),
                  "0.1=second");
}

TEST(only_allowed_pus_are_used)
{
    run_preloaded(NULL, ARGV("taskset", "-c", order_text[1], PROGRAM, "2"),
                  "0.0=second 0.1=second 0.2=second");
    child_run_preloaded(&child, CHANGES("SERVET_VERBOSE=1"),
                        ARGV("taskset", "-c", order_text[0], PROGRAM, "1"));
    ck_assert_msg(strstr(child.err, " on PU ") && !strstr(child.err, "left to the kernel"), "%s",
                  child.err);
}

TESTS(.begin = here_need_two_pus)
