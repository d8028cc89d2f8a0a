/* Do programs that know nothing of each other keep apart while there are free PUs, take the least
 * loaded after that, and does a killed holder, a forged file or a reused pid do no harm?
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/node/node.h"
#include "profile/base/clock.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

static struct child child;
static const char *path;
static char change[96];

static void setup(void)
{
    path = scratch_path("registry");
    snprintf(change, sizeof change, "SERVET_REGISTRY=%s", path);
}

/* A program that stays: its pid, the PU of its main thread, and what it waits for. */
struct stayer {
    pid_t pid;
    int input;
    uint32_t pu;
};

static struct stayer start_stayer(const char *threads)
{
    struct stayer stayer;
    int in[2], out[2];
    char text[4096];
    size_t length = 0;
    ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    stayer.pid = fork();
    if (stayer.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        setenv("LD_PRELOAD", CHILD_PRELOAD, 1);
        setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1);
        setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
        setenv("SERVET_REGISTRY", path, 1);
        setenv("SERVET_STRANGERS", "0", 1);
        execl(PROGRAMS "/stay", "stay", threads, NULL);
        _exit(99);
    }
    close(in[0]);
    close(out[1]);
    stayer.input = in[1];
    while (!memmem(text, length, "ready\n", 6)) {
        ssize_t got = read(out[0], text + length, sizeof text - 1 - length);
        ck_assert_int_gt(got, 0);
        length += (size_t)got;
    }
    text[length] = '\0';
    close(out[0]);
    ck_assert_int_eq(sscanf(strstr(text, "worker 0 0 "), "worker 0 0 %u", &stayer.pu), 1);
    return stayer;
}

static void end_stayer(const struct stayer *stayer)
{
    close(stayer->input);
    waitpid(stayer->pid, NULL, 0);
}

/* The PU of the main thread of one more program. */
static uint32_t next_pu(void)
{
    char pus[256];
    child_run_preloaded(&child, CHANGES(change), ARGV(PROGRAMS "/pthreads", "1"));
    ck_assert_msg(child.status == 0, "%s", child.err);
    child_worker(&child, 0, 0, pus, sizeof pus);
    return (uint32_t)strtoul(pus, NULL, 10);
}

static uint32_t count_entries(void)
{
    struct pin_registry registry;
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    uint32_t count = registry.count;
    pin_registry_close(&registry);
    return count;
}

/* The entry of this process, for job 77. */
static void hold(struct pin_registry *registry, struct profile_mask held)
{
    const struct profile_mask nothing = {0};
    ck_assert_int_eq(pin_registry_open(path, registry), 0);
    ck_assert_int_eq(pin_registry_enter(registry, 77, &nothing, &held), 0);
}

/* The file in words of 64 bits: two, a look of two and two masks, what is counted (four and two
 * numbers of 16 bits for each PU), the pids, two in a word, and the entries. */
enum { LOOK = 4, COUNTED = 4, COUNTS = 2 * 64 * 2 / 8, ENTRY = 3, MASKS = 3, JOB = 1 };

static size_t front_at(void)
{
    return LOOK + 2 * pin_registry_words();
}

#define COUNTED_AT front_at()
#define CHECKED (front_at() + 1)
#define SIGNALLED (front_at() + 3)

static size_t pids_at(void)
{
    return front_at() + COUNTED + COUNTS * pin_registry_words();
}

static size_t entries_at(void)
{
    return pids_at() + PIN_REGISTRY_ENTRIES / 2;
}

static void write_words(size_t at, uint64_t word, size_t times)
{
    int file = open(path, O_WRONLY);
    for (size_t i = 0; i < times; i++) {
        off_t offset = (off_t)((at + i) * sizeof word);
        ck_assert_int_eq(pwrite(file, &word, sizeof word, offset), sizeof word);
    }
    close(file);
}

/* A job of one rank, as a launcher starts it: each has a name of its own. */
static struct stayer start_rank(void)
{
    static int job;
    char name[32];
    snprintf(name, sizeof name, "job-%d", ++job);
    setenv("PMIX_NAMESPACE", name, 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1", 1);
    struct stayer stayer = start_stayer("0");
    unsetenv("PMIX_NAMESPACE");
    unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    return stayer;
}

TEST(every_member_of_a_mask_is_found)
{
    static const uint32_t members[] = {0, 1, 31, 32, 63, 64, 4095, PROFILE_MASK_PUS - 1};
    struct profile_mask mask = {0};
    size_t found = 0;
    ck_assert_uint_eq(profile_mask_next(&mask, 0), PROFILE_MASK_PUS);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        profile_mask_add(&mask, members[i]);
    }
    PROFILE_MASK_EACH(&mask, pu)
    {
        ck_assert_uint_eq(pu, members[found++]);
    }
    ck_assert_uint_eq(found, sizeof members / sizeof *members);
    ck_assert_uint_eq(profile_mask_next(&mask, PROFILE_MASK_PUS), PROFILE_MASK_PUS);
}

TEST(the_second_program_takes_a_free_pu)
{
    ck_assert_uint_eq(next_pu(), order[0]);
    struct pin_registry registry;
    struct profile_mask held = {0};
    profile_mask_add(&held, order[0]);
    hold(&registry, held);
    pin_registry_close(&registry);
    ck_assert_uint_eq(next_pu(), order[1]);
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    pin_registry_leave(&registry);
    pin_registry_close(&registry);
    ck_assert_uint_eq(next_pu(), order[0]);
}

/* As above, but newer calls of the kernel are answered "there is no such call". */
TEST(an_older_kernel_keeps_programs_apart_as_well)
{
    char pus[256];
    struct stayer first = start_stayer("0");
    child_run_preloaded(&child, CHANGES(change),
                        ARGV(PROGRAMS "/odd", "older", PROGRAMS "/pthreads", "1"));
    end_stayer(&first);
    if (child.status == 77) { /* no filters here */
        return;
    }
    ck_assert_msg(child.status == 0, "%s", child.err);
    ck_assert_str_eq(child.err, "");
    child_worker(&child, 0, 0, pus, sizeof pus);
    ck_assert_uint_eq(first.pu, order[0]);
    ck_assert_uint_eq((uint32_t)strtoul(pus, NULL, 10), order[1]);
}

TEST(running_programs_hold_and_ended_ones_do_not)
{
    if (here_pus() != 2) {
        return;
    }
    struct stayer first = start_stayer("1"); /* both PUs */
    ck_assert_uint_eq(first.pu, order[0]);
    ck_assert_uint_eq(next_pu(), order[0]); /* all equally taken */
    end_stayer(&first);
    ck_assert_uint_eq(next_pu(), order[0]);
}

TEST(a_killed_holder_holds_nothing)
{
    struct stayer killed = start_stayer("1");
    kill(killed.pid, SIGKILL);
    end_stayer(&killed);
    ck_assert_uint_eq(count_entries(), 0);
    ck_assert_uint_eq(next_pu(), order[0]);
}

/* Without the lock it is opened first, to see what others have looked at. */
TEST(a_file_that_was_taken_away_meanwhile_is_not_begun)
{
    struct pin_registry registry;
    int file = pin_registry_file(path, true);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(pin_registry_begin(file, &registry), -ESTALE);
    ck_assert_int_eq(fcntl(file, F_GETFD), -1);
}

TEST(a_reused_pid_is_recognised)
{
    struct pin_registry registry;
    struct profile_mask held = {0};
    profile_mask_add(&held, order[0]);
    hold(&registry, held);
    pin_registry_close(&registry);
    write_words(CHECKED, 0, 1); /* it is long since anybody has looked */
    ck_assert_uint_eq(count_entries(), 1);
    write_words(entries_at(), 1, 1); /* it was written before this process began */
    write_words(CHECKED, 0, 1);
    ck_assert_uint_eq(count_entries(), 0);
    ck_assert_uint_eq(next_pu(), order[0]);
}

/* Programs of 32 and of 64 bits share a node: all is in words of 64. */
TEST(the_file_is_the_same_for_programs_of_32_bits)
{
    enum { MOST = 16384 };
    static uint64_t word[MOST];
    struct pin_registry registry;
    struct profile_mask held = {0};
    profile_mask_add(&held, 33);
    hold(&registry, held);
    pin_registry_close(&registry);
    FILE *file = fopen(path, "r");
    size_t words = fread(word, sizeof *word, MOST, file);
    fclose(file);
    const size_t each = (size_t)word[1], entry = entries_at();
    ck_assert_uint_eq(word[COUNTED_AT], 1);
    ck_assert_uint_eq(word[pids_at()], (uint64_t)getpid());
    ck_assert_uint_eq(words, entry + ENTRY + MASKS * each);
    ck_assert_uint_eq(word[entry + JOB], 77);
    ck_assert_uint_eq(word[entry + ENTRY], 0);
    ck_assert_uint_eq(word[entry + ENTRY + each], UINT64_C(1) << 33);
}

TEST(ranks_of_one_job_are_no_foreigners)
{
    struct pin_registry registry;
    struct profile_mask held = {0}, allowed = {0}, taken;
    profile_mask_add(&held, 3);
    for (uint32_t pu = 0; pu < 4; pu++) {
        profile_mask_add(&allowed, pu);
    }
    hold(&registry, held);
    pin_registry_taken(&registry, 77, &allowed, &taken);
    ck_assert(profile_mask_empty(&taken));
    pin_registry_taken(&registry, 78, &allowed, &taken);
    ck_assert(profile_mask_equal(&taken, &held));
    ck_assert(pin_registry_claim(&registry, 77, 3));
    ck_assert(!pin_registry_claim(&registry, 78, 3));
    pin_registry_close(&registry);
}

/* Two PUs, one held twice: a third job must see that one as taken although both are in use. */
TEST(the_least_loaded_counts_as_free)
{
    struct pin_registry registry;
    struct profile_mask held = {.word = {1}}, nothing = {0}, allowed = {.word = {3}}, taken;
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    ck_assert_int_eq(pin_registry_enter(&registry, 5, &nothing, &allowed), 0);
    pin_registry_close(&registry);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(pin_registry_open(path, &registry) == 0 &&
                      pin_registry_enter(&registry, 6, &nothing, &held) == 0
                  ? (pin_registry_close(&registry), pause(), 0)
                  : 1);
    }
    for (int i = 0; i < 1000; i++) {
        usleep(2000);
        if (pin_registry_open(path, &registry) < 0) {
            continue;
        }
        if (registry.count == 2) {
            break;
        }
        pin_registry_close(&registry);
    }
    ck_assert_uint_eq(registry.count, 2);
    pin_registry_taken(&registry, 7, &allowed, &taken);
    ck_assert(profile_mask_has(&taken, 0));
    ck_assert(!profile_mask_has(&taken, 1));
    pin_registry_close(&registry);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void expect_refused(int code)
{
    struct pin_registry registry;
    ck_assert_int_eq(pin_registry_open(path, &registry), code);
    /* And the program runs as if there were none. */
    ck_assert_uint_eq(next_pu(), order[0]);
    ck_assert_str_eq(child.err, "");
}

TEST(a_forged_registry_is_not_used)
{
    const char *target = scratch_path("target");
    close(open(target, O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(symlink(target, path), 0);
    expect_refused(-ELOOP);
    unlink(path);
    ck_assert_int_eq(link(target, path), 0);
    expect_refused(-EINVAL);
    unlink(path);
    unlink(target);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_refused(-EINVAL);
    unlink(path);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(chmod(path, 0666), 0);
    expect_refused(-EPERM);
    ck_assert_int_eq(chmod(path, 0600), 0);
    if (chown(path, 12345, 12345) == 0) { /* root, and of more than one user */
        expect_refused(-EPERM);
    }
    unlink(path);
}

/* SERVET_REGISTRY=thesis.tex, and nothing that is shorter than a registry's first words. */
TEST(a_file_that_is_no_registry_is_never_written)
{
    static const char *const texts[] = {"\\documentclass{book}\n% four years of work\n", "x"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct pin_registry registry;
        scratch_file("registry", "%s", texts[i]);
        chmod(path, 0600);
        ck_assert_int_eq(pin_registry_open(path, &registry), -EINVAL);
        ck_assert_uint_eq(next_pu(), order[0]);
        ck_assert_str_eq(child.err, "");
        ck_assert_str_eq(read_text(path), texts[i]);
        unlink(path);
    }
}

TEST(a_damaged_or_older_registry_is_begun_anew)
{
    struct stat about;
    FILE *file = fopen(path, "w");
    fputs("10tevres", file); /* "servet01" as a number of this machine's order of bytes */
    for (int i = 0; i < 100000; i++) {
        fputc(i * 7, file);
    }
    fclose(file);
    chmod(path, 0600);
    ck_assert_uint_eq(next_pu(), order[0]);
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_int_lt(about.st_size, 10000);
}

/* A name of the default folder that somebody else has taken does not blind anybody. */
TEST(a_default_name_says_whose_it_is)
{
    char name[PATH_MAX];
    pin_registry_default_path(name, sizeof name);
    ck_assert_msg(strncmp(name, "/dev/shm/servet-", 16) == 0, "%s", name);
    pid_t pid = fork();
    if (pid == 0) {
        char inside[PATH_MAX];
        if (unshare(CLONE_NEWUSER) < 0) {
            _exit(77);
        }
        pin_registry_default_path(inside, sizeof inside);
        _exit(strcmp(inside, name) == 0 || strcmp(inside, "/dev/shm/servet-0") == 0);
    }
    int status;
    waitpid(pid, &status, 0);
    ck_assert_msg(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77),
                  "in a user namespace the name is that of the first one");
}

/* The child of a fork while the registry is open must not keep others waiting. */
TEST(a_fork_does_not_keep_the_lock)
{
    struct pin_registry registry;
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    pin_registry_close(&registry);
    pid_t other = fork();
    if (other == 0) {
        uint64_t begun = profile_now_ns();
        int rc = pin_registry_open(path, &registry);
        _exit(rc == 0 && profile_now_ns() - begun < 5000000000u ? 0 : 1);
    }
    int status;
    waitpid(other, &status, 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ck_assert_int_eq(status, 0);
}

/* End to end: two jobs of one rank each, as two commands of one user. */
TEST(independent_jobs_start_on_different_pus)
{
    setenv("OMP_NUM_THREADS", "1", 1);
    struct stayer first = start_rank();
    struct stayer second = start_rank();
    ck_assert_uint_eq(first.pu, order[0]);
    ck_assert_uint_eq(second.pu, order[1]);
    end_stayer(&first);
    end_stayer(&second);
    unsetenv("OMP_NUM_THREADS");
}

/* Two ranks of one job that have one PU between them, each with one worker. */
TEST(two_ranks_on_one_pu_are_told)
{
    const char *report = scratch_path("report");
    char expected[64];
    setenv("PMIX_NAMESPACE", "two-on-one", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    setenv("SERVET_REPORT", report, 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
    cpu_set_t all, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET(order[0], &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    struct stayer first = start_stayer("0");
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    struct stayer second = start_stayer("0");
    end_stayer(&second);
    end_stayer(&first);
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
    unsetenv("PMIX_NAMESPACE");
    unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    unsetenv("SERVET_REPORT");
    const char *line = read_text(report);
    snprintf(expected, sizeof expected, "check: workers shared a PU (%s), with another",
             order_text[0]);
    ck_assert_msg(strstr(line, expected), "%s", line);
    ck_assert_msg(!strstr(line, "check: no two workers"), "%s", line);
}

/* Who leaves does not wait for the lock, and somebody else gets the place. */
TEST(a_place_is_given_back_without_the_lock)
{
    struct pin_registry registry;
    struct profile_mask held = {.word = {1}};
    struct stayer stayer = start_stayer("1"), other;
    hold(&registry, held);
    ck_assert_uint_eq(registry.own, 1);
    end_stayer(&stayer); /* while we have the lock */
    uint32_t pid = 1;
    off_t offset = (off_t)(pids_at() * sizeof(uint64_t));
    ck_assert_int_eq(pread(registry.file, &pid, sizeof pid, offset), sizeof pid);
    ck_assert_uint_eq(pid, 0);
    pin_registry_close(&registry);
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    ck_assert_uint_eq(registry.count, 1);
    ck_assert_uint_eq(registry.places, 2);
    pin_registry_close(&registry);
    other = start_stayer("0");
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    ck_assert_uint_eq(registry.count, 2);
    ck_assert_uint_eq(registry.places, 2);
    pin_registry_close(&registry);
    ck_assert_int_lt(pin_registry_leave_place(path, 0), 0); /* that is the other one's */
    ck_assert_int_ge(pin_registry_leave_place(path, 1), -1);
    ck_assert_uint_eq(count_entries(), 1);
    end_stayer(&other);
}

static bool looked(bool crowd, const struct profile_mask *allowed, struct profile_mask *seen)
{
    int file = pin_registry_file(path, false);
    ck_assert_int_ge(file, 0);
    bool found = pin_registry_looked(file, crowd, allowed, seen);
    close(file);
    return found;
}

/* What one program's look has found serves the others for a while, longer where many come. */
TEST(a_look_for_strangers_is_made_once)
{
    struct pin_registry registry;
    struct profile_mask allowed = {.word = {3}}, more = {.word = {7}}, busy = {.word = {2}}, seen;
    uint64_t now = profile_now_ns();
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    pin_registry_look(&registry, now, &allowed, NULL);
    pin_registry_close(&registry);
    ck_assert(!looked(false, &allowed, &seen));
    ck_assert(looked(true, &allowed, &seen)); /* not a second look */
    ck_assert(profile_mask_empty(&seen));
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    pin_registry_look(&registry, now, &allowed, &busy);
    pin_registry_close(&registry);
    ck_assert(looked(true, &allowed, &seen));
    ck_assert(profile_mask_equal(&seen, &busy));
    ck_assert(!looked(true, &more, &seen)); /* PU 2 was not asked */
    usleep(60000);
    ck_assert(!looked(false, &allowed, &seen));
    ck_assert(looked(true, &allowed, &seen));
    usleep(1000000);
    ck_assert(!looked(true, &allowed, &seen));
}

/* A registry with one entry, 100 times, all of a process that is gone; all were signalled just now,
 * or it is long since. */
static void write_killed(bool just_signalled)
{
    enum { MANY = 100 };
    struct pin_registry registry;
    struct profile_mask held = {0};
    profile_mask_add(&held, order[0]);
    pid_t gone = fork();
    if (gone == 0) {
        _exit(0);
    }
    unlink(path);
    hold(&registry, held);
    pin_registry_close(&registry);
    waitpid(gone, NULL, 0);
    write_words(pids_at(), (uint64_t)gone << 32 | (uint64_t)gone, MANY / 2);
    write_words(COUNTED_AT, MANY, 1);
    write_words(SIGNALLED, just_signalled ? profile_now_ns() : 0, 1);
}

/* Whose job was killed holds no PU of the next one. */
TEST(many_that_were_killed_hold_nothing)
{
    write_killed(false);
    ck_assert_uint_eq(count_entries(), 0);
    ck_assert_uint_eq(next_pu(), order[0]);
}

/* Of programs that come within ten milliseconds only the first asks for more than a few others;
 * on a busy machine those are over now and then before the registry is opened. */
TEST(many_that_come_at_once_do_not_each_ask_for_all,
     .not_emulated = "an emulator takes longer than those ten milliseconds")
{
    uint32_t left = 0;
    for (int attempt = 0; attempt < 100 && left == 0; attempt++) {
        write_killed(true);
        left = count_entries();
    }
    ck_assert_uint_gt(left, 0);
    usleep(20000);
    ck_assert_uint_eq(count_entries(), 0);
}

/* All of them wait for each other's choice, and none loses patience with a holder that runs. */
TEST(many_programs_at_once_all_see_each_other, .not_emulated = "200 emulators at once take minutes")
{
    child_run_preloaded(
        &child, CHANGES(change, "SERVET_VERBOSE=1"),
        ARGV("/bin/sh", "-c", "for i in $(seq 200); do " PROGRAMS "/pthreads 1 & done; wait"));
    ck_assert_int_eq(child.status, 0);
    ck_assert_msg(!strstr(child.err, "are not seen"), "%.2000s", strstr(child.err, "servet: /"));
    ck_assert_msg(strstr(child.err, "main thread on PU"), "%.2000s", child.err);
}

TEST(a_running_program_can_be_looked_at, .not_emulated = "the emulator has a thread of its own")
{
    char pid[16], expected[64];
    struct stayer stayer = start_stayer("1");
    snprintf(pid, sizeof pid, "%d", (int)stayer.pid);
    child_run(&child, NULL, ARGV(SERVET_SHOW, "--live", pid));
    ck_assert_msg(child.status == 0, "%s", child.err);
#ifndef THREAD_SANITIZER /* has a thread of its own */
    ck_assert_uint_eq(child_lines(child.out, ""), 3);
#endif
    snprintf(expected, sizeof expected, " main PU %u ", order[0]);
    ck_assert_msg(strstr(child.out, expected), "%s", child.out);
    snprintf(expected, sizeof expected, " worker PU %u ", order[1]);
    ck_assert_msg(strstr(child.out, expected), "%s", child.out);
#ifndef THREAD_SANITIZER
    ck_assert_ptr_nonnull(strstr(child.out, "check: no two workers share a PU\n"));
#endif
    end_stayer(&stayer);
    child_run(&child, NULL, ARGV(SERVET_SHOW, "--live", pid));
    ck_assert_int_eq(child.status, 2);
    ck_assert_uint_eq(child_lines(child.err, ""), 1);
}

static const char *rank_seen(const char *const *environment)
{
    child_run(&child, environment, ARGV("/bin/sh", "-c", SERVET_SHOW " --live $$; :"));
    const char *rank = strstr(child.out, " rank ");
    return rank ? rank : child.err;
}

/* The variables of every launcher that the shim knows; a batch script is no rank. */
TEST(a_rank_is_known_by_its_launcher)
{
    ck_assert_int_eq(strncmp(rank_seen(NULL), " rank - ", 8), 0);
    ck_assert_int_eq(strncmp(rank_seen(CHANGES("SLURM_LOCALID=0")), " rank - ", 8), 0);
    ck_assert_int_eq(strncmp(rank_seen(CHANGES("PALS_LOCAL_RANKID=3")), " rank 3 ", 8), 0);
    ck_assert_int_eq(
        strncmp(rank_seen(CHANGES("SLURM_LOCALID=2", "SLURM_STEP_TASKS_PER_NODE=4", "PMI_RANK=7")),
                " rank 2 ", 8),
        0);
    ck_assert_int_eq(strncmp(rank_seen(CHANGES("MPI_LOCALRANKID=1", "SLURM_LOCALID=0",
                                               "SLURM_STEP_TASKS_PER_NODE=4")),
                             " rank 1 ", 8),
                     0);
}

TESTS(.begin = here_need_two_pus, .setup = setup)
