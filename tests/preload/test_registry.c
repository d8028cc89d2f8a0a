/* Do programs that know nothing of each other keep apart while there are free PUs, also when they
 * choose at once, and does a killed or stopped holder do no harm? */
#include "tests/preload/registry/registry.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char *path;
struct pin_registry here;
const struct profile_mask few = {.word = {0xff}};

static void setup(void)
{
    path = scratch_path("registry");
    ck_assert_int_eq(pin_registry_open(&here, path, 0), 0);
}

/* -- other processes -- */

static uint64_t job; /* of those that are started */
uint32_t wanted;
static bool as_main, beside;

int come(void)
{
    pin_registry_forget(&here);
    return pin_registry_open(&here, path, job);
}

int take(void)
{
    return come() < 0 ? -1 : pin_registry_take(&here, wanted, as_main, beside);
}

struct other start_holder(uint32_t pu)
{
    wanted = pu;
    struct other other = start_process(take);
    ck_assert_int_eq(other.said, 1);
    return other;
}

int others_take(uint32_t pu)
{
    wanted = pu;
    const struct other other = start_process(take);
    end_process(&other);
    return other.said;
}

unsigned long held_here(void)
{
    struct profile_mask held;
    pin_registry_look(&here, &few, &held);
    return held.word[0];
}

struct pin_company company_on(uint32_t pu)
{
    struct pin_company company;
    pin_registry_count(&here, &pu, 1, &company);
    return company;
}

TEST(what_others_hold_is_seen_until_they_end)
{
    ck_assert_uint_eq(held_here(), 0);
    struct other one = start_holder(0), two = start_holder(5), far = start_holder(100);
    ck_assert_uint_eq(held_here(), 1 | 1 << 5);
    ck_assert(!pin_registry_take(&here, 5, false, false) &&
              pin_registry_take(&here, 1, false, false));
    end_process(&one); /* by SIGKILL */
    end_process(&two);
    ck_assert_uint_eq(held_here(), 0);
    ck_assert(pin_registry_take(&here, 5, false, false));
    ck_assert(pin_registry_take(&here, 5, false, false)); /* it is ours */
    end_process(&far);
}

/* All or none: what is taken with one that another job has is free again. */
TEST(several_are_taken_together)
{
    const struct profile_mask three = {.word = {7}}, two = {.word = {3}}, first_pu = {.word = {1}};
    struct other other = start_holder(2);
    ck_assert(!pin_registry_take_all(&here, &three, &first_pu, false));
    ck_assert_int_eq(others_take(0), 1);
    ck_assert(pin_registry_take_all(&here, &two, &first_pu, false));
    ck_assert(others_take(0) == 0 && others_take(1) == 0);
    ck_assert(pin_registry_take_all(&here, &three, &first_pu, true));
    end_process(&other);
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
        end_process(&other[--count]);
    }
}

/* A job on the PU of others is counted, also when those end; a job may take again a PU that it
 * holds. */
TEST(jobs_on_one_pu_are_counted)
{
    as_main = true;
    struct other first = start_holder(2);
    as_main = false;
    beside = true;
    struct other second = start_holder(2);
    struct pin_company company = company_on(2);
    ck_assert(company.jobs == 2 && company.mains == 1);
    ck_assert(pin_registry_take(&here, 2, false, true));
    end_process(&first);
    company = company_on(2);
    ck_assert(company.jobs == 1 && company.mains == 0);
    ck_assert(pin_registry_take(&here, 2, true, false));
    beside = false;
    ck_assert_int_eq(others_take(2), 0);
    end_process(&second);
}

/* More than are counted. */
TEST(a_crowd_on_one_pu_is_no_failure)
{
    struct other other[12];
    beside = true;
    for (size_t i = 0; i < 12; i++) {
        other[i] = start_holder(4);
    }
    ck_assert_uint_eq(company_on(4).jobs, 8);
    ck_assert(pin_registry_take(&here, 4, false, true));
    for (size_t i = 0; i < 12; i++) {
        end_process(&other[i]);
    }
}

TEST(one_descriptor_is_kept_and_no_other)
{
    struct profile_mask taken;
    ck_assert(pin_registry_take(&here, 0, false, false));
    const int next = dup(STDERR_FILENO);
    close(next);
    ck_assert_uint_eq(held_here(), 0);
    (void)company_on(0);
    ck_assert(pin_registry_begin_turn(&here, &few, false, &taken));
    pin_registry_end_turn(&here);
    ck_assert(pin_registry_take(&here, 1, false, false));
    ck_assert_int_eq(dup(STDERR_FILENO), next);
}

TEST(a_pipe_in_place_of_the_file_holds_no_job_up)
{
    struct pin_registry registry = {0};
    const char *pipe_path = scratch_path("pipe");
    ck_assert_int_eq(mkfifo(pipe_path, 0600), 0);
    alarm(5);
    (void)pin_registry_open(&registry, pipe_path, 0);
    alarm(0);
}

/* -- choosing at once -- */

/* At a byte from the pipe, the first PU that can be taken of those that are not held. */
static int choose(int start_line, const struct profile_mask *all)
{
    struct profile_mask held;
    char byte;
    if (come() < 0 || read(start_line, &byte, 1) != 1) {
        return -1;
    }
    for (int attempt = 0; attempt < 1000; attempt++) {
        pin_registry_look(&here, all, &held);
        uint32_t pu = 0;
        while (profile_mask_has(all, pu) && profile_mask_has(&held, pu)) {
            pu++;
        }
        if (profile_mask_has(all, pu) && pin_registry_take(&here, pu, true, false)) {
            return (int)pu;
        }
    }
    return -1;
}

/* Each gets a PU of its own, and holds it until all have one. */
static void crowd(uint32_t programs, uint32_t pus)
{
    struct profile_mask all = {0}, held, given = {0};
    int begin[2], chosen[2], done[2], pu;
    char byte = '.';
    for (uint32_t i = 0; i < pus; i++) {
        profile_mask_add(&all, i);
    }
    ck_assert(pipe(begin) == 0 && pipe(chosen) == 0 && pipe(done) == 0);
    for (uint32_t i = 0; i < programs; i++) {
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            close(done[1]);
            int mine = choose(begin[0], &all);
            _exit(write(chosen[1], &mine, sizeof mine) != sizeof mine ||
                  read(done[0], &byte, 1) != 0);
        }
    }
    for (uint32_t i = 0; i < programs; i++) {
        ck_assert_int_eq(write(begin[1], &byte, 1), 1);
    }
    for (uint32_t i = 0; i < programs; i++) {
        ck_assert_int_eq(read(chosen[0], &pu, sizeof pu), sizeof pu);
        ck_assert_msg(pu >= 0 && !profile_mask_has(&given, (uint32_t)pu), "PU %d", pu);
        profile_mask_add(&given, (uint32_t)pu);
    }
    pin_registry_look(&here, &all, &held);
    ck_assert(profile_mask_equal(&held, &given));
    close(done[1]);
    for (int status; wait(&status) > 0;) {
        ck_assert_int_eq(status, 0);
    }
    const int open[] = {begin[0], begin[1], chosen[0], chosen[1], done[0]};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        close(open[i]);
    }
}

TEST(two_that_choose_at_once_never_choose_the_same)
{
    for (int round = 0; round < 200; round++) {
        crowd(2, 8);
    }
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
    end_process(&stopped);
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
    struct other parent = start_process(take_and_multiply);
    ck_assert_int_gt(parent.said, 0);
    ck_assert_uint_eq(held_here(), 1 << 1);
    end_process(&parent);
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
    ck_assert(others_take(1) == 0 && others_take(1) == 0);
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
    struct other first = start_process(lead), second = start_process(follow);
    ck_assert_int_eq(first.said, 0);
    ck_assert_int_eq(second.said, 1 << 4 | 1 << 7);
    end_process(&stranger);
    ck_assert_uint_eq(held_here(), 3);
    struct other third = start_process(follow);
    ck_assert_int_eq(third.said, 1 << 4 | 1 << 7);
    end_process(&third);
    end_process(&first); /* the second goes by it still, and holds PU 1 */
    ck_assert_uint_eq(held_here(), 2);
    third = start_process(follow);
    ck_assert_int_eq(third.said, 1 << 4 | 1 << 7);
    end_process(&third);
    end_process(&second);
    later = start_process(lead);
    ck_assert_int_eq(later.said, 0);
    end_process(&later);
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
    struct other first = start_process(lead_only);
    ck_assert_int_eq(first.said, 0);
    kill(first.pid, SIGSTOP);
    job = 0;
    struct other stranger = start_holder(3);
    alarm(5);
    ck_assert(!pin_registry_begin_turn(&here, &few, true, &taken));
    alarm(0);
    ck_assert_uint_eq(taken.word[0], 1 << 3);
    end_process(&first);
    ck_assert(pin_registry_begin_turn(&here, &few, true, &taken));
    end_process(&stranger);
}

TESTS(.setup = setup)
