/* Does a process hold in the registry what it should, on a busy node, for the thread that it was
 * planned for, and is the file gone with the last program where nobody would come again?
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/node/node.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"
#include "tests/preload/child.h"

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
    ck_assert(pin_claims_try(&claims, 1, false) && access(path, F_OK) < 0);
    ck_assert(pin_claims_try(&claims, 2, false) && access(path, F_OK) == 0);
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

TESTS(.setup = setup)
