/* Do slots and records stay whole when many threads take them and give them back at once: every
 * claim a slot, none lost, no record handed out twice? Built with -Db_sanitize=thread this is also
 * what looks for races. And how often is the registry asked for them?
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/place/place.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

#define THREADS 8
#define ROUNDS 20000
#define SLOTS 5
#define HELD 16

static struct pin_slots slots;
static atomic_uint twice;
static atomic_uint in_use[65536];

TEST(the_first_threads_take_the_slots_in_order)
{
    ck_assert_int_eq(pin_slots_make(SLOTS, &slots), 0);
    unsigned pool = pin_slots_pool(&slots, "libgomp.so.1");
    for (size_t slot = 1; slot < SLOTS; slot++) {
        ck_assert_uint_eq(pin_slots_take(&slots, pool), slot);
    }
    ck_assert_uint_eq(pin_slots_take(&slots, pool),
                      0); /* the main thread's comes first of those taken */
    pin_slots_give_back(&slots, pool, 3);
    ck_assert_uint_eq(pin_slots_take(&slots, pool), 3);
}

TEST(a_sleeping_pool_does_not_push_another_together)
{
    ck_assert_int_eq(pin_slots_make(SLOTS, &slots), 0);
    unsigned sleeping = pin_slots_pool(&slots, "libopenblas.so.0"),
             working = pin_slots_pool(&slots, "libgomp.so.1");
    ck_assert_uint_ne(sleeping, working);
    ck_assert_uint_eq(pin_slots_pool(&slots, "libgomp.so.1"), working);
    for (size_t i = 1; i < SLOTS; i++) {
        pin_slots_take(&slots, sleeping);
    }
    for (size_t slot = 1; slot < SLOTS; slot++) {
        ck_assert_uint_eq(pin_slots_take(&slots, working), slot);
    }
}

TEST(the_fewest_in_all_decide_between_equals)
{
    ck_assert_int_eq(pin_slots_make(SLOTS, &slots), 0);
    unsigned one = pin_slots_pool(&slots, "libopenblas.so.0"),
             other = pin_slots_pool(&slots, "libgomp.so.1");
    ck_assert_uint_eq(pin_slots_take(&slots, one), 1);
    ck_assert_uint_eq(pin_slots_take(&slots, other), 2);
}

TEST(a_slot_with_another_program_comes_last)
{
    ck_assert_int_eq(pin_slots_make(3, &slots), 0);
    ck_assert(pin_slots_is_new(&slots, 1));
    ck_assert(!pin_slots_is_new(&slots, 1));
    pin_slots_avoid(&slots, 1);
    ck_assert_uint_eq(pin_slots_take(&slots, 0), 2);
    ck_assert_uint_eq(pin_slots_take(&slots, 0), 1);
}

/* -- visits of the registry -- */

enum { PUS = 64 };

/* A plan of all of them, of which slot 0 is PU 0's, and a node where others come and go. */
struct node {
    const char *path;
    int watch;
    uint32_t pus[PUS];
    struct profile_mask all;
    struct pin_claims claims;
};

static void begin_node(struct node *out)
{
    struct pin_registry registry;
    *out = (struct node){.path = scratch_path("registry"), .watch = inotify_init1(IN_NONBLOCK)};
    for (uint32_t i = 0; i < PUS; i++) {
        out->pus[i] = i * 5 % PUS;
        profile_mask_add(&out->all, i);
    }
    ck_assert_int_eq(pin_registry_open(out->path, &registry), 0);
    pin_registry_close(&registry);
    /* Events that are alike and stand behind one another are one. */
    ck_assert_int_ge(inotify_add_watch(out->watch, out->path, IN_OPEN | IN_CLOSE), 0);
    ck_assert_int_eq(pin_slots_make(PUS, &slots), 0);
}

/* How often the registry has been opened since the last call. */
static unsigned visits_of(const struct node *node)
{
    struct inotify_event events[64];
    unsigned visits = 0;
    for (ssize_t got; (got = read(node->watch, events, sizeof events)) > 0;) {
        for (size_t i = 0; i < (size_t)got / sizeof *events; i++) {
            visits += (events[i].mask & IN_OPEN) != 0;
        }
    }
    return visits;
}

/* Another program takes the PUs of these slots, and stays. */
static pid_t hold(struct node *node, uint32_t first, uint32_t end)
{
    struct pin_registry registry;
    struct profile_mask nothing = {0}, held = {0};
    int ready[2];
    char byte;
    for (uint32_t slot = first; slot < end; slot++) {
        profile_mask_add(&held, node->pus[slot]);
    }
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (pin_registry_open(node->path, &registry) == 0 &&
            pin_registry_enter(&registry, 1000 + first, &nothing, &held) == 0) {
            pin_registry_close(&registry);
            (void)!write(ready[1], "", 1);
            pause();
        }
        _exit(1);
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    visits_of(node);
    return pid;
}

static void end_holder(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A program that has begun its plan for a thread, when others had not come yet, makes it. */
static void plan(struct node *node)
{
    struct profile_mask taken = {0}, held = {0};
    profile_mask_add(&held, node->pus[0]);
    node->claims.worker_comes = true;
    pin_claims_begin(&node->claims, node->path, false, 0, &node->all, &taken);
    pin_claims_commit(&node->claims, &held, node->pus, PUS);
    ck_assert_uint_eq(visits_of(node), 1);
}

static void expect_next(struct node *node, size_t slot, unsigned visits)
{
    ck_assert_uint_eq(pin_slots_take_free(&slots, 0, &node->claims, node->pus), slot);
    ck_assert_uint_eq(visits_of(node), visits);
}

TEST(each_thread_visits_the_registry_once_at_most)
{
    static struct node node;
    begin_node(&node);
    const pid_t one = hold(&node, 1, 21);
    plan(&node);
    expect_next(&node, 21, 0); /* asked for with the main thread's */
    const pid_t other = hold(&node, 22, 61);
    expect_next(&node, 61, 1);
    expect_next(&node, 62, 1);
    end_holder(other);
    expect_next(&node, 63, 1);
    expect_next(&node, 1, 0); /* others have all that are left, as far as was asked */
    end_holder(one);
}

TEST(a_node_that_is_held_everywhere_is_asked_once)
{
    static struct node node;
    begin_node(&node);
    const pid_t one = hold(&node, 0, PUS);
    plan(&node);
    for (size_t slot = 1; slot < PUS; slot++) {
        expect_next(&node, slot, 0);
    }
    expect_next(&node, 0, 0);
    end_holder(one);
}

static void *churn(void *argument)
{
    unsigned pool = (unsigned)(uintptr_t)argument % 3;
    struct pin_thread *held[HELD];
    for (int round = 0; round < ROUNDS / HELD; round++) {
        for (int i = 0; i < HELD; i++) {
            held[i] = pin_record_take();
            held[i]->slot = (uint32_t)pin_slots_take(&slots, pool);
            if (atomic_fetch_add(&in_use[held[i]->number], 1) != 0) {
                atomic_fetch_add(&twice, 1);
            }
        }
        for (int i = 0; i < HELD; i++) {
            pin_slots_give_back(&slots, pool, held[i]->slot);
            atomic_fetch_sub(&in_use[held[i]->number], 1);
            pin_record_give_back(held[i]);
        }
    }
    return NULL;
}

TEST(nothing_is_lost_or_given_twice)
{
    pthread_t thread[THREADS];
    ck_assert_int_eq(pin_slots_make(SLOTS, &slots), 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, churn, (void *)i), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    ck_assert_uint_eq(twice, 0);
    for (size_t slot = 0; slot < SLOTS; slot++) {
        ck_assert_uint_eq(pin_slots_threads(&slots, slot), slot == 0);
    }
    /* No more records than were ever out at once: they are used again. */
    struct pin_thread *record = pin_record_take();
    ck_assert_uint_le(record->number, THREADS * HELD + 1);
}
