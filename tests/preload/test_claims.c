/* Does a process hold in the registry what it should, on a busy node, for the thread that it was
 * planned for, where /proc is not there, and is the file gone with the last program where nobody
 * would come again? Is what the registry counts what its entries say?
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/node/node.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

static const char *path;

static void setup(void)
{
    path = scratch_path("registry");
}

/* A job that comes to this registry while `busy` are, and holds one PU: leaves there what counts as
 * taken. */
static void come(uint64_t job, struct profile_mask allowed, struct profile_mask *busy, uint32_t pu)
{
    static struct pin_claims claims;
    struct profile_mask held = {.word = {1u << pu}};
    pin_claims_begin(&claims, path, false, job, &allowed, busy);
    ck_assert(claims.on);
    pin_claims_commit(&claims, &held, &pu, 1);
}

/* 500 programs at once on two PUs keep both busy, and all went to the first. */
TEST(a_node_that_is_busy_everywhere_is_still_shared_evenly)
{
    struct profile_mask none = {0}, both = {.word = {3}}, one = {.word = {1}},
                        three = {.word = {7}};
    come(1, both, &none, 0);
    come(2, both, &both, 1);
    ck_assert_uint_eq(both.word[0], 1);
    come(3, three, &one, 2); /* this process has one entry: it held PU 1 */
    ck_assert_uint_eq(one.word[0], 3);
}

/* The second PU of a plan that is made for a thread is asked for with the first. */
TEST(a_worker_that_comes_has_its_pu_at_once)
{
    static struct pin_claims claims = {.worker_comes = true};
    struct profile_mask both = {.word = {3}}, held = {.word = {1}}, taken = {0};
    struct pin_registry registry;
    pin_claims_begin(&claims, path, false, 5, &both, &taken);
    pin_claims_commit(&claims, &held, (const uint32_t[]){0, 1, 2}, 3);
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    ck_assert(!pin_registry_claim(&registry, 6, 1) && pin_registry_claim(&registry, 6, 2));
    pin_registry_close(&registry);
    ck_assert_int_eq(unlink(path), 0);
    bool visits = false;
    ck_assert(pin_claims_try_next(&claims, &visits, 1) && !visits);
    ck_assert(pin_claims_try(&claims, 2) && access(path, F_OK) == 0);
}

/* Who waits for a file that its holder takes away begins a new one. */
TEST(a_file_that_is_taken_away_is_not_used)
{
    struct pin_registry registry;
    struct stat named, open_one;
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int rc = pin_registry_open(path, &registry);
        rc = write(ready[1], "", 1) == 1 ? rc : -1;
        usleep(100000);
        unlink(path);
        pin_registry_close(&registry);
        _exit(rc != 0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    ck_assert_int_eq(stat(path, &named), 0);
    ck_assert_int_eq(fstat(registry.file, &open_one), 0);
    ck_assert_uint_eq(named.st_ino, open_one.st_ino);
    pin_registry_close(&registry);
    waitpid(pid, NULL, 0);
}

TEST(a_user_namespace_leaves_no_file)
{
    static struct child child;
    static const char script[] =
        "file=/dev/shm/servet-$(id -u)-in-$(stat -Lc %i /proc/self/ns/user); "
        "{ i=0; while [ ! -e $file ] && [ $i -lt 1000 ]; do sleep 0.01; i=$((i + 1)); done; "
        "ls $file; } | LD_PRELOAD=" CHILD_PRELOAD " " PROGRAMS "/stay 1; ! ls $file";
    child_run(&child, NULL, ARGV("unshare", "-Ur", "true"));
    if (child.status != 0) {
        return; /* no unshare, or no right to it */
    }
    child_run(&child, CHANGES("SERVET_REGISTRY="), ARGV("unshare", "-Ur", "sh", "-c", script));
    ck_assert_msg(child.status == 0 && child_lines(child.err, "ls: ") == 1, "%s", child.err);
}

/* What is counted, of which the first word is of how many processes, and where that is. */
struct counted {
    off_t at;
    uint64_t word[4 + 2 * PROFILE_MASK_PUS * sizeof(uint16_t) / sizeof(uint64_t)];
};

static void read_counted(struct counted *out)
{
    const size_t words = pin_registry_words();
    *out = (struct counted){.at = (off_t)((4 + 2 * words) * sizeof(uint64_t))};
    int file = open(path, O_RDONLY);
    ck_assert_int_gt(pread(file, out->word, (4 + 32 * words) * sizeof(uint64_t), out->at), 0);
    close(file);
    memset(out->word + 1, 0, 3 * sizeof(uint64_t)); /* when somebody looked */
}

/* Somebody comes, sees who is gone, and goes. */
static void look_in(void)
{
    struct pin_registry registry;
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    pin_registry_close(&registry);
}

/* Another number than there are makes the next one count again. */
static void forget_counted(const struct counted *now)
{
    const uint64_t other = now->word[0] + 1000;
    int file = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(file, &other, sizeof other, now->at), sizeof other);
    close(file);
}

/* A process of a job of its own, or of one of two jobs with more, which takes PUs, perhaps comes
 * once more as after an exec, and leaves in time, too early, or not before it is killed. */
static void live(struct random *random)
{
    struct pin_registry registry;
    struct profile_mask nothing = {0}, held = {0};
    const uint64_t one = PIN_JOB_OF_ONE_PROCESS | (uint64_t)getpid(),
                   job = random_below(random, 2) ? one : 11 + random_below(random, 2);
    for (uint64_t times = 1 + random_below(random, 2); times > 0; times--) {
        held.word[0] = 1ul << random_below(random, 8) | 1ul << random_below(random, 8);
        if (pin_registry_open(path, &registry) < 0 ||
            pin_registry_enter(&registry, job, &nothing, &held) < 0) {
            _exit(1);
        }
        for (uint64_t pus = random_below(random, 5); pus > 0; pus--) {
            (void)pin_registry_claim(&registry, job, (uint32_t)random_below(random, 8));
            pin_registry_use(&registry, (uint32_t)random_below(random, 8));
        }
        pin_registry_close(&registry);
    }
    if (pin_registry_open(path, &registry) < 0) {
        _exit(1);
    }
    const uint32_t place = registry.own;
    (void)pin_registry_claim(&registry, job, (uint32_t)random_below(random, 8));
    pin_registry_close(&registry);
    if (random_below(random, 3) == 0) {
        (void)pin_registry_leave_place(path, place);
    }
}

TEST(what_is_counted_is_what_the_entries_say)
{
    enum { PROCESSES = 60 };
    static struct counted kept, anew;
    struct random random = {20261123};
    pid_t pid[PROCESSES];
    int status, ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    for (int i = 0; i < PROCESSES; i++) {
        struct random own = {random_next(&random)};
        pid[i] = fork();
        if (pid[i] == 0) {
            live(&own);
            _exit(write(ready[1], "", 1) == 1 ? (pause(), 0) : 1);
        }
        ck_assert_int_eq(read(ready[0], &byte, 1), 1);
        if (i > 0 && random_below(&random, 4) == 0) {
            kill(pid[i - 1], SIGKILL);
            waitpid(pid[i - 1], &status, 0);
            pid[i - 1] = -1;
        }
        look_in();
        read_counted(&kept);
        forget_counted(&kept);
        look_in();
        read_counted(&anew);
        ck_assert_msg(memcmp(&kept, &anew, sizeof kept) == 0, "after process %d", i);
    }
    for (int i = 0; i < PROCESSES; i++) {
        if (pid[i] > 0) {
            kill(pid[i], SIGKILL);
            waitpid(pid[i], &status, 0);
        }
    }
}

/* The PU that a program without /proc says that its main thread is on; -1: no namespaces here. */
static int main_pu_without_proc(void)
{
    static struct child child, plain;
    static const char script[] = "mount -t tmpfs none /proc && exec env $0 " PROGRAMS "/pthreads 1";
    char registry[128];
    int pu;
    snprintf(registry, sizeof registry, "SERVET_REGISTRY=%s", path);
    child_run(&plain, NULL, ARGV("unshare", "-Urm", "sh", "-c", script, "A=B"));
    if (plain.status != 0) {
        return -1;
    }
    child_run(&child, CHANGES(registry, "SERVET_VERBOSE=1", "SERVET_STRANGERS=0"),
              ARGV("unshare", "-Urm", "sh", "-c", script, "LD_PRELOAD=" CHILD_PRELOAD));
    ck_assert_msg(child.status == 0, "%s", child.err);
    ck_assert_uint_eq(child_lines(child.out, "worker "), child_lines(plain.out, "worker "));
    const char *said = strstr(child.err, "main thread on PU ");
    ck_assert_msg(said && strstr(child.err, " of the program on PU "), "%s", child.err);
    ck_assert_int_eq(sscanf(said, "main thread on PU %d", &pu), 1);
    return pu;
}

/* In a bare chroot or container: programs are placed, and keep apart. */
TEST(programs_without_proc_are_placed)
{
    const int alone = main_pu_without_proc();
    if (alone < 0 || here_pus() < 2) {
        return;
    }
    struct pin_registry registry;
    struct profile_mask nothing = {0}, held = {0};
    profile_mask_add(&held, (uint32_t)alone);
    ck_assert_int_eq(pin_registry_open(path, &registry), 0);
    ck_assert_int_eq(pin_registry_enter(&registry, 77, &nothing, &held), 0);
    pin_registry_close(&registry);
    ck_assert_int_ne(main_pu_without_proc(), alone);
}

TESTS(.setup = setup)
