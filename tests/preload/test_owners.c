/* Is every thread told by who owns it, in whatever way and at whatever time it is made, and does
 * every caller that counts PUs hear the process's set while everybody else hears the truth? */
#include "profile/processes/roles.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

static void setup(void)
{
    child_run(&child, NULL, ARGV(PROGRAMS "/pthreads", "1"));
}

static void expect_all(int rank, int thread)
{
    char pus[256];
    child_worker(&child, rank, thread, pus, sizeof pus);
    ck_assert_msg(strcmp(pus, all_pus) == 0, "thread %d of %d may run on %s, expected %s:\n%s",
                  thread, rank, pus, all_pus, child.out);
}

static bool built(const char *path)
{
    if (access(path, R_OK) == 0) {
        return true;
    }
    fprintf(stderr, "not checked: %s was not built (no compiler for it)\n", path);
    return false;
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
    ck_assert_msg(strstr(child.err, "its runtime places its own threads"), "%s", child.err);
}

TEST(a_user_can_extend_the_lists)
{
    char text[256];
    run_preloaded(CHANGES("SERVET_HELPERS=libxyz,pthre*"), ARGV(PROGRAMS "/pthreads", "1"),
                  "0.1=all");
    run_preloaded(CHANGES("SERVET_HELPERS=libxyz"), ARGV(PROGRAMS "/pthreads", "1"), "0.1=second");
    if (!built(PROGRAMS "/standard")) {
        return;
    }
    child_run_preloaded(&child, CHANGES("SERVET_WORKERS=libevent_t"), ARGV(PROGRAMS "/standard"));
    child_worker(&child, 0, 7, text, sizeof text);
    ck_assert_msg(!strpbrk(text, ",-"), "%s", child.out);
}

TEST(a_standard_thread_belongs_to_the_object_that_made_it)
{
    if (!built(PROGRAMS "/standard")) {
        return;
    }
    run_preloaded(NULL, ARGV(PROGRAMS "/standard"), NULL);
    expect_all(0, 7); /* a helper, made before anything was pinned */
    child_expect(&child, 0, 1, order[1]);
    expect_all(0, 0);
}

TEST(runtimes_loaded_later_and_two_at_once_work)
{
    const char *clang = PROGRAMS "/libteam_clang.so";
    if (!built(PROGRAMS "/libteam_gcc.so")) {
        return;
    }
    run_preloaded(NULL,
                  ARGV(PROGRAMS "/late", PROGRAMS "/libteam_gcc.so", built(clang) ? clang : NULL),
                  "0.1=second");
    for (int team = 0; team < (built(clang) ? 2 : 1); team++) {
        child_expect(&child, team, 0, order[0]);
        child_says(&child, "count %d %zu\n", team, here_pus());
    }
    if (built(clang) && here_pus() == 2) {
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
    run_preloaded(NULL, ARGV(PROGRAMS "/ways"), "0.1=second 0.0=all");
    expect_all(0, 2); /* the timer's thread is left alone */
    /* Neither OpenMP nor MPI: a count of processors is that without the shim. */
    child_run(&plain, NULL, ARGV(PROGRAMS "/ways"));
    for (const char *asked = strstr(plain.out, "asked "); asked;
         asked = strstr(asked + 1, "asked ")) {
        child_says(&child, "%.*s", (int)strcspn(asked, "\n") + 1, asked);
    }
}

TEST(nested_teams_with_more_threads_than_pus_are_left)
{
    if (!built(PROGRAMS "/nested")) {
        return;
    }
    child_run_preloaded(&child, NULL, ARGV(PROGRAMS "/nested"));
    for (int i = 0; here_pus() == 2 && i < 4; i++) {
        expect_all(i / 2, i % 2);
    }
}

static void run_masks(void)
{
    run_preloaded(CHANGES(RANK), ARGV(PROGRAMS "/masks", order_text[0]), NULL);
}

/* A runtime that puts a worker on everything it may use has not chosen anything; one PU is a
 * choice. */
TEST(a_runtime_cannot_widen_a_worker)
{
    run_masks();
    child_expect(&child, 0, 1, order[1]);
    child_expect(&child, 0, 2, order[1]);
    child_expect(&child, 0, 3, order[0]);
    child_says(&child, "count 4 %zu\ncount 5 1\n", here_pus());
    expect_all(0, 7); /* a helper that a pinned thread makes */
}

/* hwloc goes to every PU and back to its reported place: in GROMACS after OpenBLAS has made its
 * threads, so that libgomp's were left on the main thread's PU. */
TEST(who_looks_round_and_comes_back_has_bound_nothing)
{
    run_masks();
    child_expect(&child, 0, 6, order[1]);
    child_says(&child, "count 6 %zu\n", here_pus());
    child_expect(&child, 0, 8, order[0]);
    child_expect(&child, 0, 9, order[1]);
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

TEST(python_still_counts_the_process, .starts_programs = true)
{
    if (!built("/usr/bin/python3")) {
        return;
    }
    child_run_preloaded(&child, NULL, ARGV("/usr/bin/python3", "-c", PYTHON_SCRIPT));
    ck_assert_msg(strcmp(child.out, formatted("same\n%u %s\n", order[1], all_pus)) == 0, "%s%s",
                  child.out, child.err);
}

TESTS(.begin = here_need_two_pus, .setup = setup)
