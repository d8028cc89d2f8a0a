/* Does the registry stand what a program does to the file and its descriptors, and is it found by
 * other users and in other containers, whatever anyone locks in it? */
#include "tests/preload/registry/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
    ck_assert_int_eq(others_take(1), 1); /* in a new one */
    end_process(&other);
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
    end_process(&other);
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
    ck_assert(!others_take(1) && !others_take(2) && others_take(3) == 1);
    closefrom(3);
    ck_assert(pin_registry_take(&here, 1, true, false)); /* which it has taken before */
    ck_assert(!others_take(1) && !others_take(2));
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
    ck_assert_int_eq(others_take(3), 0);
    ck_assert_int_eq(fcntl(here.kept, F_GETFD), 0); /* it stays open in the program */
    ck_assert_int_eq(pin_registry_open(&here, path, 5), 0);
    ck_assert_int_eq(fcntl(here.kept, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(others_take(3), 0);
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
    ck_assert_int_eq(others_take(4), 1);
    kill(child, SIGKILL);
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
    return start_process(take_elsewhere);
}

/* Users and containers see each other, whatever the file system and the installation. */
TEST(whoever_runs_on_this_node_is_seen, .loops = 8)
{
    const bool first = _i % 2, second = _i / 2 % 2;
    const uid_t other_user = _i / 4 ? USER + 1 : 0;
    /* Where other architectures are tried, root is the only user. */
    if (getuid() != 0 || seteuid(USER) < 0) {
        return;
    }
    ck_assert_int_eq(seteuid(0), 0);
    path = NULL;
    wanted = PROFILE_MASK_PUS - 1; /* of the node's own programs none is there */
    struct other one = start_at(first, USER), two = start_at(second, other_user);
    ck_assert_int_eq(one.said, 1);
    ck_assert_int_eq(two.said, 0);
    end_process(&two);
    end_process(&one);
    one = start_at(first, USER);
    ck_assert_int_eq(one.said, 1);
    end_process(&one);
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
    const struct other inside = start_process(tell_alone), first = start_process(take),
                       second = start_process(take);
    end_process(&second);
    end_process(&first);
    end_process(&inside);
    return inside.said + 2 * first.said + 4 * second.said;
}

/* Time is not shared with the node: programs in there see each other alone. */
TEST(who_shares_nothing_knows_it)
{
    path = NULL;
    ck_assert(pin_registry_open(&here, path, 0) < 0 || !here.alone);
    const struct other other = start_process(enter_alone);
    end_process(&other);
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
    profile_mask_all(&all);
    lock_type = _i ? F_RDLCK : F_WRLCK;
    const struct other other = start_process(lock_everything);
    ck_assert_int_eq(other.said, 0);
    pin_registry_look(&here, &all, &held);
    ck_assert(profile_mask_empty(&held));
    ck_assert(pin_registry_take(&here, 3, false, false));
    ck_assert_uint_eq(company_on(3).jobs, 0);
    ck_assert_int_eq(pin_registry_begin_turn(&here, &few, true, &held), _i);
    end_process(&other);
}

static unsigned questions;
static bool has_locks = true;

WRAP(int, pin_registry_lock, int file, int command, short type, uint64_t start, uint64_t bytes,
     struct flock *lock)
{
    questions += command == F_OFD_GETLK;
    if (!has_locks) {
        errno = ENOLCK;
        return -ENOLCK;
    }
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
        const struct other other = start_process(lock_bytes);
        ck_assert_int_eq(other.said, 0);
        questions = 0;
        pin_registry_look(&here, &all, &held);
        asked[i] = questions;
        ck_assert_uint_eq(profile_mask_count(&held), i > 0);
        end_process(&other);
    }
    ck_assert_uint_eq(asked[0], 1);
    ck_assert_uint_eq(asked[1], asked[2]);
    ck_assert_uint_lt(asked[2], 40);
}

/* A kernel or file system without such locks; and one that runs out of them later. */
TEST(without_locks_there_is_no_registry)
{
    static struct pin_registry registry;
    struct profile_mask held;
    has_locks = false;
    ck_assert_int_eq(pin_registry_open(&registry, path, 0), -ENOLCK);
    ck_assert(!registry.on && pin_registry_take(&registry, 0, false, false));
    ck_assert(pin_registry_take(&here, 0, false, false));
    pin_registry_look(&here, &few, &held);
    ck_assert(profile_mask_empty(&held));
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
