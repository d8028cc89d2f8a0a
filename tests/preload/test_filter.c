/* A filter of system calls (seccomp) that was there before the program, as containers and services
 * have one: is a program under it as it is without the shim, whichever call the filter kills for,
 * and does finding that out take nothing of the program's: no memory, no core, no time without an
 * end? */
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "preload/base/filter.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"
#include "tests/preload/programs/filter.h"

#define PROGRAM PROGRAMS "/odd"
#define ASKS "a sanitizer asks for the mask itself, and dies without the shim"

/* As systemd's SystemCallFilter. */
TEST(a_filter_that_kills_leaves_a_program_as_without_the_shim, .loops = 3, .not_sanitized = ASKS)
{
    static const char *const calls[] = {"sched_getaffinity", "sched_setaffinity", "fcntl"};
    static const char *const ways[] = {"kill", "trap"};
    for (size_t way = 0; way < 2; way++) {
        const char *mask = _i == 1 ? NULL : order_text[1];
        const char *const *argv =
            ARGV(PROGRAM, "filtered", ways[way], calls[_i], PROGRAM, "allowed", mask);
        child_run(&plain, NULL, argv);
        ck_assert_int_eq(plain.status, 0);
        run_preloaded(CHANGES(child_registry, child_report), argv, NULL);
        ck_assert_str_eq(child.out, plain.out);
        ck_assert_str_eq(child.err, "");
        run_preloaded(CHANGES(child_registry, RANK), argv, NULL);
        ck_assert_str_eq(child.out, plain.out);
        run_plain(CHANGES(child_registry, RANK),
                  ARGV(PROGRAM, "filtered", ways[way], calls[_i], SERVET_PIN, "-v", PROGRAM,
                       "allowed", mask),
                  NULL);
        ck_assert_str_eq(child.out, plain.out);
        ck_assert_uint_eq(child_lines(child.err, "servet-pin: a filter (seccomp) kills"), 1);
    }
}

/* Seen red for clone, wait4, getpid, gettid, readlink and more, with the watch for close_range. */
TEST(whichever_call_a_filter_kills_for_a_program_of_threads_lives, .loops = 8,
     .not_sanitized = ASKS)
{
    enum { CALLS = 463, LAST_OLD = 334, FIRST_NEW = 424 }; /* between them x86-64 has none */
    const char *const *const changes[] = {
        CHANGES(child_registry, "SERVET_WATCH=1", "SERVET_MEMBIND=local", child_report),
        CHANGES(child_registry, RANK, "OMPI_COMM_WORLD_JOBID=7"),
    };
    char bad[256] = "";
    for (int number = _i / 2; number < CALLS; number += 4) {
        if (number > LAST_OLD && number < FIRST_NEW) {
            continue;
        }
        const char *const *argv =
            ARGV(PROGRAM, "filtered", "kill", formatted("%d", number), PROGRAM, "many", "2");
        child_run_preloaded(&child, changes[_i % 2], argv);
        plain.status = 1;
        if (child.status != 0) {
            child_run(&plain, NULL, argv);
        }
        /* Its threads may end before it does, or not. */
        if ((plain.status == 0 && number != SYS_exit) || (child.status == 0 && *child.err)) {
            const size_t used = strlen(bad);
            snprintf(bad + used, sizeof bad - used, " %d", number);
        }
    }
    ck_assert_msg(!*bad, "calls%s", bad);
}

/* Seen red for each of these, with threads or without. A program without threads is killed at its
 * end where a filter kills for what makes threads: rt_sigprocmask, clone3, futex. */
TEST(lines_that_are_asked_for_are_no_calls_that_a_filter_kills_for, .loops = 2,
     .not_sanitized = ASKS)
{
    static const int calls[] = {SYS_write,  SYS_ppoll,   SYS_rt_sigpending, SYS_getpid,
                                SYS_wait4,  SYS_getppid, SYS_getrandom,     SYS_sched_getaffinity,
                                SYS_tgkill, SYS_fcntl};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const char *call = formatted("%d", calls[i]);
        const char *const *argv =
            ARGV(PROGRAM, "filtered", "kill", call, _i ? PROGRAM : "/bin/true", "many", "2");
        child_run(&plain, NULL, argv);
        child_run_preloaded(&child, CHANGES(child_registry, child_report, "SERVET_VERBOSE=1"),
                            argv);
        ck_assert_msg(child.status == plain.status, "call %s: %d", call, child.status);
    }
}

/* As a container's: what it refuses otherwise is an error. */
TEST(a_filter_that_spares_the_shim_changes_nothing)
{
    child_run_preloaded(&plain, CHANGES(child_registry), ARGV(PROGRAM, "allowed"));
    child_run_preloaded(&child, CHANGES(child_registry),
                        ARGV(PROGRAM, "filtered", "refuse", "none", PROGRAM, "allowed"));
    ck_assert_msg(strstr(plain.out, order_text[1]), "%s", plain.out);
    ck_assert_str_eq(child.out, plain.out);
    run_preloaded(CHANGES(child_registry),
                  ARGV(PROGRAM, "filtered", "trap", "none", PROGRAM, "allowed", order_text[1]),
                  NULL);
    child_run_preloaded(&plain, CHANGES(child_registry), ARGV(PROGRAM, "allowed", order_text[1]));
    ck_assert_str_eq(child.out, plain.out);
}

/* Seen red: the main thread waited for ever, for the lock, and for the other's call to end. */
TEST(nobody_waits_for_a_thread_that_was_killed_alone, .loops = 2, .not_sanitized = ASKS)
{
    run_preloaded(CHANGES(child_registry, "SERVET_VERBOSE=1"),
                  ARGV(PROGRAM, "killed", _i ? "call" : "lock"), NULL);
    child_says(&child, "count 0 1\n");
    ck_assert_msg(_i == 1 || strstr(child.err, "killed while it placed another"), "%s", child.err);
}

/* -- in a process of its own, which has the filter -- */

/* A failure in there is its status. */
static void must(bool so, int status)
{
    if (!so) {
        _exit(status);
    }
}

static bool shares_memory(void)
{
    struct utsname name;
    unsigned major, minor;
    return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 16));
}

static long minor_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

enum { PAGES = 10000, PAGE = 4096 };

static bool is_spared, ignored;
static unsigned killing;

/* Had there been a copy, each page that is written would be copied: a fault. */
static void copy_nothing(void)
{
    char *memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED, 1);
    madvise(memory, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
    memset(memory, 1, (size_t)PAGES * PAGE);
    must(REFUSE(killing, BY_PRCTL, SYS_sched_setaffinity) == 0, 2);
    must(pin_filter_spares_us(&ignored) == is_spared, 3);
    const long before = minor_faults();
    memset(memory, 2, (size_t)PAGES * PAGE);
    must(minor_faults() - before < PAGES / 10, 4);
    must(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD, 5);
}

TEST(nothing_of_the_program_is_copied)
{
    static const unsigned kills[] = {SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM,
                                     SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
                                     SECCOMP_RET_TRAP};
    for (size_t i = 0; shares_memory() && i < sizeof kills / sizeof *kills; i++) {
        killing = kills[i];
        is_spared = i < 2;
        in_a_process(copy_nothing);
    }
}

/* The number of the release alone: a child that shares its memory and is killed would take this
 * process along there. Ends well where no file may be mounted. */
static void be_release(const char *number)
{
    const char *old = scratch_file("release", "%s", number);
    must(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
             mount(old, "/proc/sys/kernel/osrelease", NULL, MS_BIND, NULL) == 0,
         0);
}

static void copy_all(void)
{
    be_release("5.15.0-generic\n");
    must(REFUSE(SECCOMP_RET_KILL_PROCESS, BY_PRCTL, SYS_sched_setaffinity) == 0, 2);
    must(!pin_filter_spares_us(&ignored), 3);
    must(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD, 5);
}

static void spare_a_copy(void)
{
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    be_release("4.18.0\n");
    *page = 1;
    must(REFUSE(SECCOMP_RET_ERRNO | EPERM, BY_PRCTL, SYS_acct) == 0, 2);
    must(pin_filter_spares_us(&ignored), 3);
    const long before = minor_faults();
    *page = 2;
    must(minor_faults() > before, 4);
}

TEST(where_a_core_is_of_all_who_share_memory_the_child_has_a_copy)
{
    in_a_process(copy_all);
    in_a_process(spare_a_copy);
}

static volatile sig_atomic_t rung;

static void ring(int signal)
{
    rung = signal;
}

static unsigned unanswered;

/* As long as the listener is open, and does not answer. */
static void wait_a_moment(void)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    signal(SIGALRM, ring);
    must(REFUSE(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER, unanswered) > 0, 0);
    setitimer(ITIMER_REAL, &soon, NULL);
    must(!pin_filter_spares_us(&ignored), 3);
    must(rung == SIGALRM, 4);
    must(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD, 5);
}

/* Seen red: it waited for ever, with all signals blocked. */
TEST(a_call_that_nobody_answers_is_waited_for_a_moment)
{
    static const unsigned calls[] = {SYS_sched_setaffinity, SYS_fcntl, SYS_getpid, SYS_close_range};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        unanswered = calls[i];
        in_a_process(wait_a_moment);
    }
}

static void leave_no_core(void)
{
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    must(chdir(scratch_folder()) == 0, 1);
    must(setrlimit(RLIMIT_CORE, &all) == 0, 0);
    must(REFUSE(SECCOMP_RET_KILL_PROCESS, BY_PRCTL, SYS_sched_setaffinity) == 0, 2);
    must(!pin_filter_spares_us(&ignored), 3);
    struct rlimit now;
    must(getrlimit(RLIMIT_CORE, &now) == 0 && now.rlim_cur == RLIM_INFINITY, 4);
    /* Any name that core_pattern gives. */
    must(system("test -z \"$(find . -name '*core*')\"") == 0, 5);
}

/* Seen red: seconds for each gigabyte. */
TEST(a_child_that_is_killed_leaves_no_core, .starts_programs = true)
{
    in_a_process(leave_no_core);
}

static void join_many_groups(void)
{
    enum { MOST = 3000 };
    gid_t groups[MOST];
    for (unsigned i = 0; i < MOST; i++) {
        groups[i] = 1000000000u + i;
    }
    /* The line is cut at each of its bytes, wherever the file is cut. */
    for (size_t count = 300; count < 800; count++) {
        must(setgroups(count, groups) == 0, 0);
        must(!pin_filter_is_there(), 1);
    }
    must(setgroups(MOST, groups) == 0 && !pin_filter_is_there(), 2);
    must(REFUSE(SECCOMP_RET_ERRNO | EPERM, BY_PRCTL, SYS_acct) == 0, 3);
    must(pin_filter_is_there(), 4);
}

TEST(a_filter_is_seen_behind_any_number_of_groups)
{
    in_a_process(join_many_groups);
}

TESTS(.begin = here_need_two_pus, .setup = child_setup,
      .not_emulated = "qemu-user has no seccomp()")
