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

#include "preload/node/registry_file.h"
#include "profile/base/clock.h"
#include "profile/base/statistics.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

static const char *path;
static struct pin_registry here;
static const struct profile_mask few = {.word = {0xff}};

static void setup(void)
{
    path = scratch_path("registry");
    ck_assert_int_eq(pin_registry_open(&here, path, 0), 0);
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
        pin_registry_forget(&here);
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
    return pin_registry_open(&here, path, job);
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
    const struct profile_mask three = {.word = {7}}, two = {.word = {3}}, first_pu = {.word = {1}};
    struct other other = start_holder(2);
    ck_assert(!pin_registry_take_all(&here, &three, &first_pu, false));
    struct other first = start_holder(0), second;
    end(&first);
    ck_assert(pin_registry_take_all(&here, &two, &first_pu, false));
    wanted = 0;
    first = start(take);
    ck_assert_int_eq(first.said, 0);
    wanted = 1;
    second = start(take);
    ck_assert_int_eq(second.said, 0);
    ck_assert(pin_registry_take_all(&here, &three, &first_pu, true));
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
    struct pin_company company;
    const uint32_t pu = 2;
    as_main = true;
    struct other first = start_holder(2);
    as_main = false;
    beside = true;
    struct other second = start_holder(2);
    pin_registry_count(&here, &pu, 1, &company);
    ck_assert(company.jobs == 2 && company.mains == 1);
    ck_assert(pin_registry_take(&here, 2, false, true));
    end(&first);
    pin_registry_count(&here, &pu, 1, &company);
    ck_assert(company.jobs == 1 && company.mains == 0);
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
    struct pin_company company;
    const uint32_t pu = 4;
    beside = true;
    for (size_t i = 0; i < 12; i++) {
        other[i] = start_holder(4);
    }
    pin_registry_count(&here, &pu, 1, &company);
    ck_assert_uint_eq(company.jobs, 8);
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

enum { FORK, VFORK_EXEC, WAYS };

/* A child made by one that holds PU 1, and stays; its pid. */
static int wanted_way;

static int take_and_multiply(void)
{
    wanted = 1;
    if (take() != 1) {
        return -1;
    }
    pid_t pid = wanted_way == FORK ? fork() : vfork();
    if (pid == 0 && wanted_way == VFORK_EXEC) {
        execl("/bin/sleep", "sleep", "100", (char *)NULL);
        _exit(99);
    }
    if (pid == 0) {
        pin_registry_forget(&here);
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
    for (int look = 0; look < 1000 && held_here() != 0; look++) {
        usleep(10000); /* it may not have run yet */
    }
    ck_assert_uint_eq(held_here(), 0);
    kill(parent.said, SIGKILL);
}

/* One that the kernel copied without a word to us begins anew later. Seen red. */
TEST(a_child_that_outlives_its_parent_holds_nothing)
{
    int begins[2], done[2];
    char byte;
    ck_assert(pipe(begins) == 0 && pipe(done) == 0);
    pid_t parent = fork();
    if (parent == 0) {
        pin_registry_forget(&here);
        wanted = 1;
        if (take() == 1 && fork() > 0) {
            _exit(0);
        }
        _exit(read(begins[0], &byte, 1) != 1 || (pin_registry_forget(&here), 0) ||
              write(done[1], &byte, 1) != 1 || pause());
    }
    ck_assert_int_eq(waitpid(parent, NULL, 0), parent);
    ck_assert_uint_eq(held_here(), 1 << 1);
    ck_assert(write(begins[1], "", 1) == 1 && read(done[0], &byte, 1) == 1);
    ck_assert_uint_eq(held_here(), 0);
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

/* One of more than 60 numbers is missing, above those that programs count on. Where there are no
 * more, nothing is kept, and the process knows it: seen red, two jobs had one PU. The program's own
 * file at this number stays. */
TEST(no_descriptor_is_in_the_programs_way, .loops = 4)
{
    static const rlim_t limits[] = {4, 60, 500, 4000};
    const bool is_kept = limits[_i] > 60;
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    closefrom(3);
    limit.rlim_cur = limits[_i];
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(pin_registry_open(&here, path, 0), is_kept ? 0 : -EMFILE);
    ck_assert(here.on == is_kept && here.alone == !is_kept);
    ck_assert(pin_registry_take(&here, 0, true, false));
    for (int next = 3; next < (int)limits[_i]; next++) {
        ck_assert(next == 60 || dup(0) == next);
    }
    closefrom(3);
    limit.rlim_cur = before;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct other other = start_holder(0);
    ck_assert_int_eq(dup2(0, 60), 60);
    ck_assert_uint_eq(held_here(), is_kept);
    ck_assert_int_eq(dup2(0, 60), 60);
    pin_registry_forget(&here);
    ck_assert_int_eq(fcntl(60, F_GETFD), 0);
    end(&other);
}

static bool others_can_take(uint32_t pu)
{
    wanted = pu;
    const struct other other = start(take);
    end(&other);
    return other.said == 1;
}

/* Some programs close all that they do not know. Seen red: the next job got the PU. */
TEST(what_the_program_closes_is_locked_anew, .loops = 2)
{
    ck_assert(pin_registry_take(&here, 1, true, false));
    ck_assert(pin_registry_is_kept(&here));
    if (_i == 0) {
        closefrom(3);
    } else {
        ck_assert_int_eq(dup2(0, here.kept), here.kept);
    }
    ck_assert(!pin_registry_is_kept(&here));
    ck_assert(pin_registry_take(&here, 2, false, false));
    ck_assert(pin_registry_is_kept(&here));
    ck_assert(!others_can_take(1) && !others_can_take(2) && others_can_take(3));
    closefrom(3);
    ck_assert(pin_registry_take(&here, 1, true, false)); /* which it has taken before */
    ck_assert(!others_can_take(1) && !others_can_take(2));
}

/* It has the same file open, at the number where ours would be. Seen red: it was made ours, and
 * closed in children. */
TEST(what_the_program_opens_is_its_own)
{
    closefrom(3);
    const int file = open(path, O_RDONLY);
    ck_assert(dup2(file, 60) == 60 && close(file) == 0);
    ck_assert_int_eq(pin_registry_open(&here, path, 5), 0);
    ck_assert_int_eq(fcntl(60, F_GETFD), 0);
    ck_assert_int_eq(here.kept, 61);
    ck_assert_int_eq(dup2(60, 61), 61); /* in place of ours */
    pin_registry_forget(&here);
    ck_assert_int_eq(fcntl(61, F_GETFD), 0);
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
    ck_assert_int_eq(fcntl(here.kept, F_GETFD), 0); /* it stays open in the program */
    ck_assert_int_eq(pin_registry_open(&here, path, 5), 0);
    ck_assert_int_eq(fcntl(here.kept, F_GETFD), FD_CLOEXEC);
    other = start(take);
    ck_assert_int_eq(other.said, 0);
    end(&other);
    ck_assert_int_eq(pipe(said), 0);
    pid_t parent = fork();
    if (parent == 0) {
        pin_registry_forget(&here);
        ck_assert_int_eq(pin_registry_open(&here, path, 0), 0);
        here.over_exec = true;
        ck_assert(pin_registry_take(&here, 4, false, false));
        ck_assert_int_eq(pin_registry_open(&here, path, 5), 0);
        pid_t child = fork();
        if (child == 0) {
            pin_registry_forget(&here);
            child = getpid();
            _exit(write(said[1], &child, sizeof child) == sizeof child ? pause() : 1);
        }
        _exit(0);
    }
    pid_t child;
    ck_assert_int_eq(read(said[0], &child, sizeof child), sizeof child);
    ck_assert_int_eq(waitpid(parent, NULL, 0), parent);
    wanted = 4;
    other = start(take);
    ck_assert_int_eq(other.said, 1);
    end(&other);
    kill(child, SIGKILL);
}

/* -- ranks -- */

static struct profile_mask first_taken;

/* The first of its job, which takes PUs 0 and 1 for all ranks; it counts PU 7 as taken, too. */
static int lead(void)
{
    if (come() < 0 || !pin_registry_begin_turn(&here, &few, true, &first_taken)) {
        return -1;
    }
    pin_registry_take(&here, 0, true, false);
    pin_registry_take(&here, 0, false, false);
    pin_registry_take(&here, 1, false, false);
    pin_registry_look(&here, &few, &first_taken);
    profile_mask_add(&first_taken, 7);
    pin_registry_publish(&here, &first_taken);
    pin_registry_end_turn(&here);
    return 0;
}

static int follow(void)
{
    struct profile_mask taken;
    if (come() < 0 || pin_registry_begin_turn(&here, &few, true, &taken)) {
        return -1;
    }
    return pin_registry_take(&here, 1, true, false) ? (int)taken.word[0] : -2;
}

TEST(ranks_start_from_what_the_first_one_found)
{
    struct other stranger = start_holder(4), later;
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
    third = start(follow);
    ck_assert_int_eq(third.said, 1 << 4 | 1 << 7);
    end(&third);
    end(&second);
    later = start(lead);
    ck_assert_int_eq(later.said, 0);
    end(&later);
}

static int lead_only(void)
{
    return come() < 0 || !pin_registry_begin_turn(&here, &few, true, &first_taken) ? -1 : 0;
}

/* A first rank that is killed or stopped before it has said anything. */
TEST(a_first_rank_that_says_nothing_is_not_waited_for)
{
    struct profile_mask taken;
    job = 5;
    ck_assert_int_eq(pin_registry_open(&here, path, job), 0);
    struct other first = start(lead_only);
    ck_assert_int_eq(first.said, 0);
    kill(first.pid, SIGSTOP);
    job = 0;
    struct other stranger = start_holder(3);
    alarm(5);
    ck_assert(!pin_registry_begin_turn(&here, &few, true, &taken));
    alarm(0);
    ck_assert_uint_eq(taken.word[0], 1 << 3);
    end(&first);
    ck_assert(pin_registry_begin_turn(&here, &few, true, &taken));
    end(&stranger);
}

/* -- which file -- */

#define USER 12345

static uid_t user;
static bool contained;

/* Nothing is the node's but time. */
static bool enter_container(void)
{
    return unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET |
                   CLONE_NEWCGROUP) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/dev", "tmpfs", 0, NULL) == 0;
}

/* As another user, who may only read; for root in a container it is one of users, too. */
static int take_elsewhere(void)
{
    if (contained && !enter_container()) {
        return -2;
    }
    if (user == 0 ? unshare(CLONE_NEWUSER) < 0 : setresuid(user, user, user) < 0) {
        return -3;
    }
    return take();
}

static struct other start_at(bool in_container, uid_t who)
{
    contained = in_container;
    user = who;
    return start(take_elsewhere);
}

/* Users and containers see each other, whatever the file system and the installation. */
TEST(whoever_runs_on_this_node_is_seen, .loops = 8)
{
    const bool first = _i % 2, second = _i / 2 % 2;
    const uid_t other_user = _i / 4 ? USER + 1 : 0;
    if (getuid() != 0) {
        return;
    }
    path = NULL;
    wanted = PROFILE_MASK_PUS - 1; /* of the node's own programs none is there */
    struct other one = start_at(first, USER), two = start_at(second, other_user);
    ck_assert_int_eq(one.said, 1);
    ck_assert_int_eq(two.said, 0);
    end(&two);
    end(&one);
    one = start_at(first, USER);
    ck_assert_int_eq(one.said, 1);
    end(&one);
}

static int tell_alone(void)
{
    return come() < 0 ? -1 : here.alone;
}

static int enter_alone(void)
{
    path = NULL;
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWTIME) < 0) {
        return 3; /* not here */
    }
    wanted = 1;
    const struct other inside = start(tell_alone), first = start(take), second = start(take);
    end(&second);
    end(&first);
    end(&inside);
    return inside.said + 2 * first.said + 4 * second.said;
}

/* Time is not shared with the node: programs in there see each other alone. */
TEST(who_shares_nothing_knows_it)
{
    path = NULL;
    ck_assert(pin_registry_open(&here, path, 0) < 0 || !here.alone);
    const struct other other = start(enter_alone);
    end(&other);
    ck_assert_int_eq(other.said, 3);
}

static short lock_type;

static int lock_everything(void)
{
    struct flock lock = {.l_type = lock_type, .l_whence = SEEK_SET};
    const int file = open(path, O_RDWR | O_CLOEXEC);
    return fcntl(file, F_OFD_SETLK, &lock);
}

/* It is no claim: a shim's is on one PU. Seen red: no process placed anything. */
TEST(who_holds_everything_stops_nobody, .loops = 2)
{
    struct profile_mask held, all = {0};
    struct pin_company company;
    const uint32_t pu = 3;
    profile_mask_all(&all);
    lock_type = _i ? F_RDLCK : F_WRLCK;
    const struct other other = start(lock_everything);
    ck_assert_int_eq(other.said, 0);
    pin_registry_look(&here, &all, &held);
    ck_assert(profile_mask_empty(&held));
    ck_assert(pin_registry_take(&here, 3, false, false));
    pin_registry_count(&here, &pu, 1, &company);
    ck_assert_uint_eq(company.jobs, 0);
    ck_assert_int_eq(pin_registry_begin_turn(&here, &few, true, &held), _i);
    end(&other);
}

static unsigned questions;

int __real_pin_registry_lock(int file, int command, short type, uint64_t start, uint64_t bytes,
                             struct flock *lock);
int __wrap_pin_registry_lock(int file, int command, short type, uint64_t start, uint64_t bytes,
                             struct flock *lock);
int __wrap_pin_registry_lock(int file, int command, short type, uint64_t start, uint64_t bytes,
                             struct flock *lock)
{
    questions += command == F_OFD_GETLK;
    return __real_pin_registry_lock(file, command, type, start, bytes, lock);
}

static int locks;

/* Single bytes of PU 5, from the highest down, which the kernel puts in front. */
static int lock_bytes(void)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    for (int i = locks; i > 0; i--) {
        struct flock lock = {.l_type = F_RDLCK,
                             .l_whence = SEEK_SET,
                             .l_start = ((off_t)5 << 48) + 2 * i,
                             .l_len = 1};
        if (fcntl(file, F_OFD_SETLK, &lock) < 0) {
            return -1;
        }
    }
    return 0;
}

/* However many PUs there are, and whatever another user locks. */
TEST(a_look_asks_no_more_than_it_must)
{
    static const int many[] = {0, 1, 1000};
    unsigned asked[3];
    struct profile_mask held, all = {0};
    profile_mask_all(&all);
    for (size_t i = 0; i < 3; i++) {
        locks = many[i];
        const struct other other = start(lock_bytes);
        ck_assert_int_eq(other.said, 0);
        questions = 0;
        pin_registry_look(&here, &all, &held);
        asked[i] = questions;
        ck_assert_uint_eq(profile_mask_count(&held), i > 0);
        end(&other);
    }
    ck_assert_uint_eq(asked[0], 1);
    ck_assert_uint_eq(asked[1], asked[2]);
    ck_assert_uint_lt(asked[2], 40);
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
        ck_assert_int_eq(pin_registry_open(&registry, path, 0), -ENOLCK);
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
    ck_assert_int_eq(pin_registry_open(&registry, scratch_path("missing/registry"), 0), -ENOENT);
    ck_assert(registry.alone);
    ck_assert_int_eq(pin_registry_open(&registry, scratch_folder(), 0), 0);
    ck_assert_int_eq(pin_registry_open(&registry, scratch_path("registry/below"), 0), -ENOTDIR);
    pin_registry_look(&registry, &few, &held);
    ck_assert(!registry.on && profile_mask_empty(&held) &&
              pin_registry_take(&registry, 0, false, false) &&
              pin_registry_begin_turn(&registry, &few, false, &held));
}

TESTS(.setup = setup)
