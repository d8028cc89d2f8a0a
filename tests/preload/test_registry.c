/* Do programs that know nothing of each other keep apart while there are free PUs, also when they
 * choose at once, belong to other users or run in other containers, and does a killed or stopped
 * holder, or a program that closes what it did not open, do no harm? */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/node/node.h"
#include "profile/base/clock.h"
#include "profile/base/statistics.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

static const char *path, *library = "";
static struct pin_registry here;
static const struct profile_mask few = {.word = {0xff}};

static void setup(void)
{
    path = scratch_path("registry");
    ck_assert_int_eq(pin_registry_open(&here, path, "", 0), 0);
}

/* -- other processes -- */

/* A process that has done its part, and waits until it is ended. */
struct other {
    pid_t pid;
    int said; /* the answer of `what` */
};

static struct other start(int (*what)(void))
{
    struct other other = {0};
    int ready[2];
    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    other.pid = fork();
    ck_assert_int_ge(other.pid, 0);
    if (other.pid == 0) {
        int said = what();
        _exit(write(ready[1], &said, sizeof said) == sizeof said ? pause() : 1);
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &other.said, sizeof other.said), sizeof other.said);
    close(ready[0]);
    return other;
}

static void end(const struct other *other)
{
    kill(other->pid, SIGKILL);
    waitpid(other->pid, NULL, 0);
}

static uint64_t job; /* of those that are started */
static uint32_t wanted;
static bool as_main, beside;

static int come(void)
{
    return pin_registry_open(&here, path, library, job);
}

/* Opens the registry and takes `wanted`: 1, 0: it is another's; -1. */
static int take(void)
{
    return come() < 0 ? -1 : pin_registry_take(&here, wanted, as_main, beside);
}

static struct other start_holder(uint32_t pu)
{
    wanted = pu;
    struct other other = start(take);
    ck_assert_int_eq(other.said, 1);
    return other;
}

static unsigned long held_here(void)
{
    struct profile_mask held;
    pin_registry_look(&here, &few, &held);
    return held.word[0];
}

TEST(what_others_hold_is_seen_until_they_end)
{
    ck_assert_uint_eq(held_here(), 0);
    struct other one = start_holder(0), two = start_holder(5), far = start_holder(100);
    ck_assert_uint_eq(held_here(), 1 | 1 << 5);
    ck_assert(!pin_registry_take(&here, 5, false, false) &&
              pin_registry_take(&here, 1, false, false));
    end(&one); /* by SIGKILL */
    end(&two);
    ck_assert_uint_eq(held_here(), 0);
    ck_assert(pin_registry_take(&here, 5, false, false));
    end(&far);
}

/* All or none: what is taken with one that another job has is free again. */
TEST(several_are_taken_together)
{
    const struct profile_mask three = {.word = {7}}, two = {.word = {3}};
    struct other other = start_holder(2);
    ck_assert(!pin_registry_take_all(&here, &three, 0, false));
    struct other first = start_holder(0), second;
    end(&first);
    ck_assert(pin_registry_take_all(&here, &two, 0, false));
    wanted = 0;
    first = start(take);
    ck_assert_int_eq(first.said, 0);
    wanted = 1;
    second = start(take);
    ck_assert_int_eq(second.said, 0);
    ck_assert(pin_registry_take_all(&here, &three, 0, true));
    end(&first);
    end(&second);
    end(&other);
}

/* Every set of holders of eight PUs is seen whole, in whatever order they came. */
TEST(no_holder_is_missed, .loops = 16)
{
    struct other other[8];
    unsigned long expected = 0;
    size_t count = 0;
    for (unsigned i = 0; i < 8; i++) {
        unsigned pu = i * (2u * (unsigned)(_i % 4) + 1) % 8;
        if ((0xb7u * (unsigned)(_i + 1) >> i & 1) != 0) {
            other[count++] = start_holder(pu);
            expected |= 1ul << pu;
        }
    }
    ck_assert_uint_eq(held_here(), expected);
    while (count > 0) {
        end(&other[--count]);
    }
}

/* A job on the PU of others is counted, also when those end; a job may take again a PU that it
 * holds. */
TEST(jobs_on_one_pu_are_counted)
{
    unsigned jobs, mains;
    as_main = true;
    struct other first = start_holder(2);
    as_main = false;
    beside = true;
    struct other second = start_holder(2);
    pin_registry_count(&here, 2, &jobs, &mains);
    ck_assert(jobs == 2 && mains == 1);
    ck_assert(pin_registry_take(&here, 2, false, true));
    end(&first);
    pin_registry_count(&here, 2, &jobs, &mains);
    ck_assert(jobs == 1 && mains == 0);
    ck_assert(pin_registry_take(&here, 2, true, false));
    beside = false;
    struct other third = start(take);
    ck_assert_int_eq(third.said, 0);
    end(&third);
    end(&second);
}

/* More than are counted. */
TEST(a_crowd_on_one_pu_is_no_failure)
{
    struct other other[12];
    unsigned jobs, mains;
    beside = true;
    for (size_t i = 0; i < 12; i++) {
        other[i] = start_holder(4);
    }
    pin_registry_count(&here, 4, &jobs, &mains);
    ck_assert_uint_eq(jobs, 8);
    ck_assert(pin_registry_take(&here, 4, false, true));
    for (size_t i = 0; i < 12; i++) {
        end(&other[i]);
    }
}

/* -- choosing at once -- */

/* At a byte from the pipe, the first PU that can be taken of those that are not held. */
static int start_line[2];

static int choose(void)
{
    struct profile_mask held;
    char byte;
    if (come() < 0 || read(start_line[0], &byte, 1) != 1) {
        return -1;
    }
    for (int attempt = 0; attempt < 8; attempt++) {
        pin_registry_look(&here, &few, &held);
        for (uint32_t pu = 0; pu < 8; pu++) {
            if (!profile_mask_has(&held, pu)) {
                if (pin_registry_take(&here, pu, true, false)) {
                    return (int)pu;
                }
                break;
            }
        }
    }
    return -1;
}

static void await(pid_t pid, int status)
{
    int got;
    ck_assert_int_eq(waitpid(pid, &got, 0), pid);
    ck_assert(WIFEXITED(got));
    ck_assert_int_eq(WEXITSTATUS(got), status);
}

/* Two choose in the same moment, 200 times. Both hold what they chose until both have. */
TEST(two_that_choose_at_once_never_choose_the_same)
{
    int chosen[2], done[2], pu[2];
    for (int round = 0; round < 200; round++) {
        pid_t pid[2];
        ck_assert(pipe(start_line) == 0 && pipe(chosen) == 0 && pipe(done) == 0);
        for (int i = 0; i < 2; i++) {
            pid[i] = fork();
            if (pid[i] == 0) {
                char byte;
                close(done[1]);
                int mine = choose();
                _exit(write(chosen[1], &mine, sizeof mine) != sizeof mine ||
                      read(done[0], &byte, 1) != 0);
            }
        }
        ck_assert_int_eq(write(start_line[1], "..", 2), 2);
        ck_assert_int_eq(read(chosen[0], &pu[0], sizeof *pu), sizeof *pu);
        ck_assert_int_eq(read(chosen[0], &pu[1], sizeof *pu), sizeof *pu);
        ck_assert_msg(pu[0] >= 0 && pu[1] >= 0 && pu[0] != pu[1], "round %d: PUs %d and %d", round,
                      pu[0], pu[1]);
        close(done[1]);
        await(pid[0], 0);
        await(pid[1], 0);
        close(done[0]);
        for (int i = 0; i < 2; i++) {
            close(start_line[i]);
            close(chosen[i]);
        }
    }
}

/* As many jobs as PUs: each gets one of its own. The cost of looking and taking is printed. */
static void crowd(uint32_t programs, uint32_t pus)
{
    enum { LOOKS = 11 };
    static struct {
        int pu;
        double us;
    } got[512];
    struct profile_mask all = {0};
    static double sample[512];
    bool given[PROFILE_MASK_PUS] = {0};
    int chosen[2], done[2];
    for (uint32_t pu = 0; pu < pus; pu++) {
        profile_mask_add(&all, pu);
    }
    ck_assert(pipe(chosen) == 0 && pipe(done) == 0);
    for (uint32_t i = 0; i < programs; i++) {
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid > 0) {
            continue;
        }
        struct profile_mask held;
        char byte;
        close(done[1]);
        uint64_t begun = profile_now_ns();
        got->pu = come() < 0 ? -2 : -1;
        for (int attempt = 0; got->pu == -1 && attempt < 1000; attempt++) {
            pin_registry_look(&here, &all, &held);
            uint32_t pu = 0;
            while (pu < pus && profile_mask_has(&held, pu)) {
                pu++;
            }
            got->pu = pu < pus && pin_registry_take(&here, pu, true, false) ? (int)pu : -1;
        }
        got->us = (double)(profile_now_ns() - begun) / 1e3;
        _exit(write(chosen[1], got, sizeof *got) != sizeof *got || read(done[0], &byte, 1) != 0);
    }
    for (uint32_t i = 0; i < programs; i++) {
        ck_assert_int_eq(read(chosen[0], &got[i], sizeof got[i]), sizeof got[i]);
        ck_assert_msg(got[i].pu >= 0 && !given[got[i].pu], "program %u got PU %d", i, got[i].pu);
        given[got[i].pu] = true;
        sample[i] = got[i].us;
    }
    struct profile_mask held;
    double look[LOOKS];
    for (int i = 0; i < LOOKS; i++) {
        uint64_t begun = profile_now_ns();
        pin_registry_look(&here, &all, &held);
        look[i] = (double)(profile_now_ns() - begun) / 1e3;
    }
    printf("%u programs on %u PUs: a look at all %.1f us, begin, look and take: median %.1f us, "
           "slowest %.1f us\n",
           programs, pus, profile_quantile(look, LOOKS, 0.5),
           profile_quantile(sample, programs, 0.5), profile_quantile(sample, programs, 1));
    ck_assert_uint_eq(profile_mask_count(&held), programs);
    close(done[1]);
    while (wait(NULL) > 0) {
        ;
    }
    close(done[0]);
    close(chosen[0]);
    close(chosen[1]);
}

TEST(many_programs_at_once_all_see_each_other, .not_emulated = "500 emulators at once take minutes")
{
    crowd(20, 64);
    crowd(64, 64);
    crowd(500, 512);
}

/* A holder that is stopped keeps its PU, and no process waits for it. */
TEST(a_stopped_holder_delays_nobody)
{
    struct other stopped = start_holder(6);
    int status;
    kill(stopped.pid, SIGSTOP);
    ck_assert_int_eq(waitpid(stopped.pid, &status, WUNTRACED), stopped.pid);
    alarm(5);
    ck_assert_uint_eq(held_here(), 1 << 6);
    ck_assert(!pin_registry_take(&here, 6, false, false) &&
              pin_registry_take(&here, 7, false, false));
    alarm(0);
    end(&stopped);
}

/* -- children -- */

enum { FORK, BARE_FORK, CLONE, VFORK_EXEC, WAYS };

/* A child made in the way `job`, by one that holds PU 1, and stays; its pid. */
static int wanted_way;

static int take_and_multiply(void)
{
    wanted = 1;
    if (take() != 1) {
        return -1;
    }
    pid_t pid = wanted_way == FORK        ? fork()
                : wanted_way == BARE_FORK ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
                : wanted_way == CLONE
                    ? (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0)
                : wanted_way == VFORK_EXEC ? vfork()
                                           : -1;
    if (pid == 0 && wanted_way == VFORK_EXEC) {
        execl("/bin/sleep", "sleep", "100", (char *)NULL);
        _exit(99);
    }
    if (pid == 0) {
        pause();
    }
    return pid;
}

TEST(no_child_holds_what_its_parent_held, .loops = WAYS, .starts_programs = true)
{
    wanted_way = _i;
    struct other parent = start(take_and_multiply);
    ck_assert_int_gt(parent.said, 0);
    ck_assert_uint_eq(held_here(), 1 << 1);
    end(&parent);
    ck_assert_int_eq(kill(parent.said, 0), 0); /* it is still there */
    ck_assert_uint_eq(held_here(), 0);
    kill(parent.said, SIGKILL);
}

/* The child begins anew, and to begin does not end what its parent holds. */
TEST(a_child_leaves_its_parents_locks)
{
    ck_assert(pin_registry_take(&here, 1, true, false));
    wanted = 1;
    struct other child = start(take);
    ck_assert_int_eq(child.said, 0);
    end(&child);
    child = start(take);
    ck_assert_int_eq(child.said, 0);
    end(&child);
}

TEST(another_program_in_the_same_process_holds_nothing, .starts_programs = true)
{
    int ready[2], status;
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        wanted = 1;
        dup2(ready[1], STDOUT_FILENO);
        if (take() == 1) {
            execl("/bin/sh", "sh", "-c", "echo; exec sleep 100", (char *)NULL);
        }
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_uint_eq(held_here(), 0);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}

/* -- what a program does to the file -- */

TEST(a_file_that_is_cut_short_or_removed_is_no_failure)
{
    struct other other = start_holder(0);
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_assert_uint_eq(held_here(), 1);
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_assert_uint_eq(held_here(), 1);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_uint_eq(held_here(), 0);
    ck_assert(pin_registry_take(&here, 1, false, false));
    wanted = 1;
    struct other next = start(take); /* in a new one */
    ck_assert_int_eq(next.said, 1);
    end(&next);
    end(&other);
}

/* Whatever the limit: no number is missing, and what is taken stays taken when the program closes
 * all that it did not open. */
TEST(no_descriptor_is_in_the_programs_way, .loops = 4)
{
    static const rlim_t limits[] = {4, 5, 500, 4000};
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    closefrom(3);
    limit.rlim_cur = limits[_i];
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(pin_registry_open(&here, path, "", 0), 0);
    ck_assert(pin_registry_take(&here, 0, true, false));
    for (int next = 3; next < (int)limits[_i]; next++) {
        ck_assert_int_eq(dup(0), next);
    }
    closefrom(3);
    limit.rlim_cur = before;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    wanted = 0;
    struct other other = start(take);
    ck_assert_int_eq(other.said, 0);
    end(&other);
}

#ifndef SANITIZERS /* they open files as the test ends */
/* Neither the number nor a place for it: the registry is left out, and nothing fails. */
TEST(a_full_table_of_descriptors_is_no_failure)
{
    const struct rlimit none = {.rlim_cur = 3, .rlim_max = 3};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert(pin_registry_take(&here, 0, true, false));
    ck_assert_uint_eq(held_here(), 0);
}
#endif

/* The command before the program has taken a PU for it, and a child of the program has not. */
TEST(what_is_kept_over_exec_is_adopted)
{
    int said[2];
    here.over_exec = true;
    ck_assert(pin_registry_take(&here, 3, false, false));
    wanted = 3;
    struct other other = start(take);
    ck_assert_int_eq(other.said, 0);
    end(&other);
    ck_assert_int_eq(fcntl(1000, F_GETFD), 0); /* it stays open in the program */
    ck_assert_int_eq(pin_registry_open(&here, path, "", 5), 0);
    ck_assert_int_lt(fcntl(1000, F_GETFD), 0);
    ck_assert_uint_eq(held_here(), 1 << 3);
    ck_assert_int_eq(pipe(said), 0);
    pid_t parent = fork();
    if (parent == 0) {
        here.over_exec = true;
        ck_assert(pin_registry_take(&here, 4, false, false));
        ck_assert_int_eq(pin_registry_open(&here, path, "", 5), 0);
        pid_t child = fork();
        _exit(child > 0 ? write(said[1], &child, sizeof child) != sizeof child : pause());
    }
    pid_t child;
    ck_assert_int_eq(read(said[0], &child, sizeof child), sizeof child);
    ck_assert_int_eq(waitpid(parent, NULL, 0), parent);
    ck_assert_uint_eq(held_here(), 1 << 3);
    kill(child, SIGKILL);
}

/* -- ranks -- */

static struct profile_mask first_taken;

/* The first of its job, which takes PUs 0 and 1 for all ranks; it counts PU 7 as taken, too. */
static int lead(void)
{
    if (come() < 0 || !pin_registry_lead(&here, &few, &first_taken)) {
        return -1;
    }
    pin_registry_take(&here, 0, true, false);
    pin_registry_take(&here, 0, false, false);
    pin_registry_take(&here, 1, false, false);
    profile_mask_add(&first_taken, 7);
    pin_registry_publish(&here, &first_taken);
    return 0;
}

static int follow(void)
{
    struct profile_mask taken;
    if (come() < 0 || pin_registry_lead(&here, &few, &taken)) {
        return -1;
    }
    return pin_registry_take(&here, 1, true, false) ? (int)taken.word[0] : -2;
}

TEST(ranks_start_from_what_the_first_one_found)
{
    struct other stranger = start_holder(4), later;
    struct profile_mask used = {.word = {3}};
    job = 5;
    struct other first = start(lead), second = start(follow);
    ck_assert_int_eq(first.said, 0);
    ck_assert_int_eq(second.said, 1 << 4 | 1 << 7);
    end(&stranger);
    ck_assert_uint_eq(held_here(), 3);
    struct other third = start(follow);
    ck_assert_int_eq(third.said, 1 << 4 | 1 << 7);
    end(&third);
    end(&first); /* the second goes by it still, and holds PU 1 */
    ck_assert_uint_eq(held_here(), 2);
    ck_assert_int_eq(pin_registry_shared(&here, &used), 1);
    third = start(follow);
    ck_assert_int_eq(third.said, 1 << 4 | 1 << 7);
    end(&third);
    end(&second);
    ck_assert_int_eq(pin_registry_shared(&here, &used), -1);
    later = start(lead);
    ck_assert_int_eq(later.said, 0);
    end(&later);
}

static int lead_only(void)
{
    return come() < 0 || !pin_registry_lead(&here, &few, &first_taken) ? -1 : 0;
}

/* A first rank that is killed or stopped before it has said anything. */
TEST(a_first_rank_that_says_nothing_is_not_waited_for)
{
    struct profile_mask taken;
    job = 5;
    ck_assert_int_eq(pin_registry_open(&here, path, library, job), 0);
    struct other first = start(lead_only);
    ck_assert_int_eq(first.said, 0);
    kill(first.pid, SIGSTOP);
    job = 0;
    struct other stranger = start_holder(3);
    alarm(5);
    ck_assert(!pin_registry_lead(&here, &few, &taken));
    alarm(0);
    ck_assert_uint_eq(taken.word[0], 1 << 3);
    end(&first);
    ck_assert(pin_registry_lead(&here, &few, &taken));
    ck_assert_uint_eq(taken.word[0], 1 << 3);
    end(&stranger);
}

/* A PU held for another process of the job does not count as a thread there; a PU in use does. */
TEST(a_fellow_on_the_same_pu_is_told)
{
    struct profile_mask used = {.word = {2}}, both = {.word = {3}}, taken;
    job = 5;
    struct other first = start(lead);
    ck_assert_int_eq(pin_registry_open(&here, path, library, job), 0);
    ck_assert(!pin_registry_lead(&here, &few, &taken));
    ck_assert(pin_registry_take(&here, 1, true, false));
    ck_assert_int_eq(pin_registry_shared(&here, &used), -1);
    ck_assert_int_eq(pin_registry_shared(&here, &both), 0);
    struct other other = start(follow);
    ck_assert_int_eq(pin_registry_shared(&here, &used), 1);
    end(&other);
    end(&first);
}

/* -- which file -- */

#define USER 12345

static uid_t user;
/* On the node; in a container to which its file is mounted read-only, and in one with a copy. */
enum { NODE, MOUNTED, COPY, SITES };
static int site;
static const char *expected; /* the file of those on the node */

static bool enter_container(void)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET |
                CLONE_NEWCGROUP) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/dev/shm", "tmpfs", 0, NULL) < 0) {
        return false;
    }
    if (site == COPY) {
        library = "/dev/shm/library";
        return close(open(library, O_WRONLY | O_CREAT, 0444)) == 0;
    }
    return mount(library, library, NULL, MS_BIND, NULL) == 0 &&
           mount(NULL, library, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0;
}

/* As another user, who may only read. */
static int take_elsewhere(void)
{
    if (site != NODE && !enter_container()) {
        return -2;
    }
    if (setresuid(user, user, user) < 0) {
        return -3;
    }
    int said = take();
    return strcmp(here.path, site == NODE ? expected : "/proc/self/ns/time") == 0 ? said : -4;
}

static struct other start_at(int where, uid_t who)
{
    site = where;
    user = who;
    return start(take_elsewhere);
}

/* Users and containers see each other, and what is on the node in a container sees those that have
 * its installation, also where that lies on a file system that other nodes may have. Only who has a
 * copy does not see who is on the node. */
TEST(whoever_runs_on_this_node_is_seen, .loops = 2 * SITES * SITES)
{
    static const char *const kinds[] = {"tmpfs", "ramfs"};
    const int kind = _i % 2, first = _i / 2 % SITES, second = _i / 2 / SITES;
    const char *folder = scratch_path("installation");
    if (getuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        return;
    }
    ck_assert_int_eq(chmod(scratch_folder(), 0755), 0);
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    ck_assert_int_eq(mount("none", folder, kinds[kind], 0, "mode=0755"), 0);
    library = scratch_file("installation/library", "%s", "");
    ck_assert_int_eq(chmod(library, 0444), 0);
    path = NULL;
    ck_assert_int_eq(pin_registry_open(&here, path, "", 0), 0);
    const bool in_container = strcmp(here.path, "/dev/zero") != 0; /* this test itself */
    expected = in_container ? here.path : kind == 0 ? library : "/dev/zero";
    wanted = PROFILE_MASK_PUS - 1; /* of the node's own programs none is there */
    struct other one = start_at(first, USER), two = start_at(second, USER + 1);
    ck_assert_int_eq(one.said, 1);
    ck_assert_int_eq(two.said, !in_container && first == NODE && second == COPY);
    end(&two);
    end(&one);
    one = start_at(first, USER);
    ck_assert_int_eq(one.said, 1);
    end(&one);
    ck_assert_int_eq(umount2(folder, MNT_DETACH), 0);
}

/* -- what is kept in a container -- */

static uint32_t last(unsigned i)
{
    return PROFILE_MASK_PUS - 1 - i;
}

/* Takes one, two that it gets, two that it does not get, and makes children; the pid of the last
 * child, which stays. */
static int take_in_container(void)
{
    struct profile_mask two = {0}, gone = {0};
    site = COPY;
    path = NULL;
    wanted = last(0);
    if (!enter_container() || take() != 1) {
        return -2;
    }
    profile_mask_add(&two, last(1));
    profile_mask_add(&two, last(2));
    profile_mask_add(&gone, last(3)); /* another's */
    profile_mask_add(&gone, last(4));
    if (!pin_registry_take_all(&here, &two, last(1), false) ||
        pin_registry_take_all(&here, &gone, last(4), false) ||
        pin_registry_take(&here, last(3), false, false) ||
        fcntl(here.kept, F_GETFD) != FD_CLOEXEC) {
        return -3;
    }
    const pid_t child = fork();
    if (child == 0) {
        pin_registry_forget(&here);
        pause();
    }
    return child;
}

/* One descriptor keeps all, but not what was not got; no child has it. */
TEST(what_is_kept_by_a_descriptor_is_as_by_a_mapping)
{
    struct profile_mask all = {0}, held;
    if (getuid() != 0) {
        return;
    }
    for (unsigned i = 0; i < 5; i++) {
        profile_mask_add(&all, last(i));
    }
    path = NULL;
    ck_assert_int_eq(pin_registry_open(&here, path, library, 0), 0);
    wanted = last(3);
    struct other holder = start_at(COPY, 0), other = start(take_in_container);
    ck_assert_int_gt(other.said, 0);
    pin_registry_look(&here, &all, &held);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_int_eq(profile_mask_has(&held, last(i)), i != 4);
    }
    end(&other);
    ck_assert_int_eq(kill(other.said, 0), 0);
    for (int look = 0; look < 1000 && profile_mask_count(&held) != 1; look++) {
        usleep(10000); /* the child may not have run yet */
        pin_registry_look(&here, &all, &held);
    }
    ck_assert_uint_eq(profile_mask_count(&held), 1);
    kill(other.said, SIGKILL);
    end(&holder);
}

/* It has closed what it did not open, and has a file of its own there. */
static int lose_descriptor(void)
{
    site = COPY;
    path = NULL;
    wanted = last(0);
    if (!enter_container() || take() != 1) {
        return -2;
    }
    const int kept = here.kept, its = open("/dev/null", O_RDONLY);
    if (dup2(its, kept) != kept || !pin_registry_take(&here, last(1), false, false)) {
        return -3;
    }
    pin_registry_forget(&here);
    return here.kept == 0 && fcntl(kept, F_GETFD) == 0 ? 1 : -4;
}

TEST(a_descriptor_that_the_program_took_is_its_own)
{
    struct other other = {.said = 1};
    if (getuid() == 0) {
        other = start(lose_descriptor);
        end(&other);
    }
    ck_assert_int_eq(other.said, 1);
}

static int tell_alone(void)
{
    return come() < 0 ? -1 : here.alone;
}

static int enter_alone(void)
{
    path = NULL;
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWTIME) < 0) {
        return 1; /* not here */
    }
    const struct other inside = start(tell_alone);
    end(&inside);
    return inside.said;
}

/* Nothing is shared with the node: neither time nor users. */
TEST(who_shares_nothing_knows_it)
{
    path = NULL;
    ck_assert(pin_registry_open(&here, path, library, 0) < 0 || !here.alone);
    const struct other other = start(enter_alone);
    ck_assert_int_eq(other.said, 1);
    end(&other);
}

/* A process that locks the whole shared file does not delay others: they start without the
 * registry. */
TEST(who_holds_everything_stops_nobody)
{
    struct profile_mask held, all = {0};
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int ready[2];
    char byte;
    unsigned jobs, mains;
    profile_mask_all(&all);
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int file = open(path, O_RDWR | O_CLOEXEC);
        _exit(fcntl(file, F_SETLK, &lock) == 0 && write(ready[1], "", 1) == 1 ? pause() : 1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    pin_registry_look(&here, &all, &held);
    ck_assert(profile_mask_equal(&held, &all));
    ck_assert(!pin_registry_take(&here, 3, false, false) &&
              pin_registry_take(&here, 3, false, true));
    pin_registry_count(&here, 3, &jobs, &mains);
    ck_assert_uint_eq(jobs, 1);
    ck_assert(!pin_registry_lead(&here, &few, &held));
    end(&(struct other){.pid = pid});
}

/* From now on the kernel answers so to every lock of this process; false: no filters here. */
static bool refuse_locks(int error)
{
#ifdef SYS_fcntl64
    const uint32_t call = SYS_fcntl64;
#else
    const uint32_t call = SYS_fcntl;
#endif
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_GETLK, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

/* A kernel or file system without such locks; and one that runs out of them later. */
TEST(without_locks_there_is_no_registry, .not_emulated = "the filter is of the emulator's calls")
{
    static struct pin_registry registry;
    struct profile_mask held;
    if (refuse_locks(ENOLCK)) {
        ck_assert_int_eq(pin_registry_open(&registry, path, "", 0), -ENOLCK);
        ck_assert(!registry.on && pin_registry_take(&registry, 0, false, false));
        ck_assert(pin_registry_take(&here, 0, false, false));
        pin_registry_look(&here, &few, &held);
        ck_assert(profile_mask_empty(&held));
    }
}

TEST(without_a_file_there_is_no_registry)
{
    static struct pin_registry registry;
    struct profile_mask held;
    ck_assert_int_eq(pin_registry_open(&registry, "/nonexistent/registry", "", 0), -ENOENT);
    ck_assert_int_eq(pin_registry_open(&registry, scratch_folder(), "", 0), 0);
    ck_assert_int_eq(pin_registry_open(&registry, scratch_path("registry/below"), "", 0), -ENOTDIR);
    pin_registry_look(&registry, &few, &held);
    ck_assert(!registry.on && profile_mask_empty(&held) &&
              pin_registry_take(&registry, 0, false, false) &&
              pin_registry_lead(&registry, &few, &held));
    ck_assert_int_eq(pin_registry_shared(&registry, &few), -1);
}

TESTS(.setup = setup)
