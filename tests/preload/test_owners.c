/* Is every thread told by who owns it, in whatever way and at whatever time it is made, and does
 * every caller that counts PUs hear the process's set while everybody else hears the truth? */
#include "profile/processes/roles.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

static void expect_all(int rank, int thread)
{
    child_expect_pus(&child, rank, thread, all_pus);
}

TEST(libraries_are_known_by_their_names)
{
    ck_assert_int_eq(profile_owner_of(""), PROFILE_OWNER_OTHER);
    ck_assert_int_eq(profile_owner_of("libm.so.6"), PROFILE_OWNER_OTHER);
    ck_assert_int_eq(profile_owner_of("libgomp.so.1"), PROFILE_OWNER_RUNTIME);
    ck_assert_int_eq(profile_owner_of("libgomp-a34b3233.so.1.0.0"), PROFILE_OWNER_RUNTIME);
    ck_assert_int_eq(profile_owner_of("libomp.so.5"), PROFILE_OWNER_RUNTIME);
    ck_assert_int_eq(profile_owner_of("libiomp5.so"), PROFILE_OWNER_RUNTIME);
    ck_assert_int_eq(profile_owner_of("libnvomp.so"), PROFILE_OWNER_RUNTIME);
    ck_assert_int_eq(profile_owner_of("libopenblas.so.0"), PROFILE_OWNER_POOL);
    ck_assert_int_eq(profile_owner_of("libopen-pal.so.40"), PROFILE_OWNER_HELPER);
    ck_assert_int_eq(profile_owner_of("libpmix.so.2"), PROFILE_OWNER_HELPER);
    ck_assert_int_eq(profile_owner_of("libucs.so.0"), PROFILE_OWNER_HELPER);
    ck_assert_int_eq(profile_owner_of("libfabric.so.1"), PROFILE_OWNER_HELPER);
    ck_assert_int_eq(profile_owner_of("libcuda.so.1"), PROFILE_OWNER_HELPER);
}

TEST(a_program_of_go_places_its_own_threads)
{
    child_run_preloaded(&child, CHANGES("SERVET_REPORT=stderr"), ARGV(PROGRAMS "/go"));
    child_err_says("its runtime places its own threads");
}

TEST(a_user_can_extend_the_list_of_helpers)
{
    run_preloaded(CHANGES("SERVET_HELPERS=libxyz,pthre*"), ARGV(PROGRAMS "/pthreads", "1"),
                  "0.1=all");
    run_preloaded(CHANGES("SERVET_HELPERS=libxyz"), ARGV(PROGRAMS "/pthreads", "1"), "0.1=second");
}

TEST(a_user_can_extend_the_list_of_workers, .file = PROGRAMS "/standard")
{
    char text[256];
    child_run_preloaded(&child, CHANGES("SERVET_WORKERS=libevent_t"), ARGV(PROGRAMS "/standard"));
    child_worker(&child, 0, 7, text, sizeof text);
    ck_assert_msg(!strpbrk(text, ",-"), "%s", child.out);
}

/* A helper, made before anything was pinned, is thread 7. */
TEST(a_standard_thread_belongs_to_the_object_that_made_it, .file = PROGRAMS "/standard")
{
    run_preloaded(NULL, ARGV(PROGRAMS "/standard"), "0.7=all 0.1=second 0.0=all");
}

TEST(runtimes_loaded_later_and_two_at_once_work, .file = PROGRAMS "/libteam_gcc.so")
{
    const char *clang = PROGRAMS "/libteam_clang.so";
    const bool two = is_built(clang);
    run_preloaded(NULL,
                  ARGV(PROGRAMS "/odd", "late", PROGRAMS "/libteam_gcc.so", two ? clang : NULL),
                  "0.1=second");
    for (int team = 0; team < (two ? 2 : 1); team++) {
        child_expect(&child, team, 0, order[0]);
        child_says(&child, "count %d %zu\n", team, here_pus());
    }
    if (two && here_pus() == 2) {
        expect_all(1, 1); /* the first runtime's threads have both PUs */
    }
}

TEST(threads_of_a_constructor_are_seen)
{
    run_preloaded(NULL, ARGV(PROGRAMS "/early"), "0.0=all 0.1=second");
}

TEST(other_ways_to_make_a_thread)
{
#ifdef THREAD_SANITIZER
    return; /* it does not know thrd_create(): its own state is missing in such a thread */
#endif
    run_preloaded(NULL, ARGV(PROGRAMS "/ways"), "0.1=second 0.0=all 0.2=all"); /* 2: the timer's */
    /* Neither OpenMP nor MPI: a count of processors is that without the shim. */
    child_run(&plain, NULL, ARGV(PROGRAMS "/ways"));
    for (const char *asked = strstr(plain.out, "asked "); asked;
         asked = strstr(asked + 1, "asked ")) {
        child_says(&child, "%.*s", (int)strcspn(asked, "\n") + 1, asked);
    }
}

TEST(nested_teams_with_more_threads_than_pus_are_left, .file = PROGRAMS "/nested")
{
    child_run_preloaded(&child, NULL, ARGV(PROGRAMS "/nested"));
    for (int i = 0; here_pus() == 2 && i < 4; i++) {
        expect_all(i / 2, i % 2);
    }
}

static void run_masks(const char *told)
{
    run_preloaded(CHANGES(RANK), ARGV(PROGRAMS "/masks", order_text[0]), told);
}

/* A runtime that puts a worker on everything it may use has not chosen anything; one PU is a
 * choice. */
TEST(a_runtime_cannot_widen_a_worker)
{
    run_masks(
        "0.1=second 0.2=second 0.3=first 0.7=all"); /* 7: a helper that a pinned thread makes */
    child_says(&child, "count 4 %zu\ncount 5 1\n", here_pus());
}

/* hwloc goes to every PU and back to its reported place: in GROMACS after OpenBLAS has made its
 * threads, so that libgomp's were left on the main thread's PU. */
TEST(who_looks_round_and_comes_back_has_bound_nothing)
{
    run_masks("0.6=second 0.8=first 0.9=second");
    child_says(&child, "count 6 %zu\n", here_pus());
}

/* By the name of its file, whatever it is called by: through a link, by another argument 0, as the
 * interpreter of a script; and a name that only the call has counts for nothing. */
TEST(a_managed_program_is_known_by_its_file, .starts_programs = true)
{
    static const char script[] =
        "folder=$(mktemp -d) && cd $folder && cp " PROGRAMS
        "/pthreads java && ln -s java editor && "
        "cp java editor2 && ln -s editor2 node && printf '#!%s/java 1\\n' $folder >script "
        "&& chmod +x script; placed() { LD_PRELOAD=" CHILD_PRELOAD
        " SERVET_VERBOSE=1 \"$@\" 2>&1 | grep -c ' on PU '; }; "
        "echo $(placed ./java 1) $(placed ./editor 1) $(placed ./script) "
        "$(placed bash -c 'exec -a editor ./java 1') $(placed ./editor2 1) $(placed ./node 1); "
        "rm -r $folder";
    child_run(&child, NULL, (const char *const[]){"bash", "-c", script, NULL});
    ck_assert_msg(strcmp(child.out, "0 0 0 0 1 1\n") == 0, "%s%s", child.out, child.err);
}

#define PYTHON_SCRIPT                                                                              \
    "import os, threading\n"                                                                       \
    "before = os.sched_getaffinity(0)\n"                                                           \
    "where = []\n"                                                                                 \
    "def here():\n"                                                                                \
    "    for line in open('/proc/thread-self/status'):\n"                                          \
    "        if line.startswith('Cpus_allowed_list'): where.append(line.split()[1])\n"             \
    "t = threading.Thread(target=here); t.start(); t.join(); here()\n"                             \
    "print('same' if os.sched_getaffinity(0) == before else 'narrowed')\n"                         \
    "print(*where)\n"

TEST(python_still_counts_the_process, .starts_programs = true, .file = "/usr/bin/python3")
{
    child_run_preloaded(&child, NULL, ARGV("/usr/bin/python3", "-c", PYTHON_SCRIPT));
    ck_assert_msg(strcmp(child.out, formatted("same\n%u %s\n", order[1], all_pus)) == 0, "%s%s",
                  child.out, child.err);
}

TESTS(.begin = here_need_two_pus)
