/* Are plans, and the moves of the watch, those that other jobs and busy PUs allow? A part of the
 * program of test_moves.c. */
#include <signal.h>
#include <sys/wait.h>

#include "preload/node/registry.h"
#include "preload/place/watch.h"
#include "profile/base/clock.h"
#include "profile/base/ticks.h"
#include "profile/processes/process.h"
#include "tests/preload/moves/seen.h"

/* -- plans -- */

/* Two plans at once would undo each other's places. */
TEST(a_thread_that_comes_while_another_one_plans_is_left)
{
    ck_assert(pin_process_may_call());
    atomic_store(&pin_life.planning, true);
    const pthread_t thread = make(wait_to_go);
    ck_assert(pin_life_state() != PLANNED);
    end(thread);
    atomic_store(&pin_life.planning, false);
    (void)start_and_end(wait_too);
}

static struct pin_registry another_job;
static bool ends_soon;

/* The registry of this process and of another job. */
static void begin_registry(void)
{
    const char *path = scratch_path("registry");
    pin_here.options.no_registry = false;
    pin_here.options.registry = path;
    ck_assert_int_eq(pin_registry_open(&another_job, path, 2), 0);
}

WRAP(int, nanosleep, const struct timespec *time, struct timespec *left)
{
    if (ends_soon) {
        ends_soon = false;
        pin_registry_release(&another_job);
    }
    return __real_nanosleep(time, left);
}

/* Jobs that choose at one moment take PUs and give them back: they do it in turn. */
TEST(pus_that_another_job_gives_back_at_once_are_taken)
{
    struct profile_mask own;
    ck_assert_int_eq(profile_mask_get(0, &own), 0);
    begin_registry();
    ck_assert(pin_registry_begin_turn(&another_job, &own, false, NULL));
    ck_assert(pin_registry_take_all(&another_job, &own, &own, false));
    ends_soon = true;
    const struct seen seen = start(wait_to_go);
    ck_assert(profile_mask_empty(&pin_here.plan.avoid));
    end(seen.thread);
}

static pid_t watch_of(pid_t pid)
{
    struct profile_stat it;
    pid_t found = 0;
    DIR *folder = profile_open_numbers(pid);
    for (pid_t tid; (tid = profile_next_number(folder));) {
        const bool is_watch =
            profile_stat_read(pid, tid, &it) && strcmp(it.name, PIN_WATCH_NAME) == 0;
        found = is_watch ? tid : found;
    }
    return found;
}

/* The main thread, which makes it, has one PU. */
TEST(the_watch_runs_where_a_thread_that_is_left_may)
{
    struct profile_mask now = {0};
    const struct seen before = start(wait_to_go);
    pin_main();
    end(before.thread);
    pin_here.options.no_watch = false;
    const struct seen seen = start(wait_too);
    while (!profile_mask_equal(&now, &pin_here.children)) {
        usleep(1000);
        (void)profile_mask_get(watch_of(getpid()), &now);
    }
    end(seen.thread);
}

static bool comes_between;

WRAP(int, pin_memory_plan, enum pin_membind membind, const struct pin_memory_request *request,
     struct pin_memory *out)
{
    if (comes_between) {
        comes_between = false;
        ck_assert(pin_registry_take(&another_job, pin_here.plan.pus[0], false, false));
    }
    return __real_pin_memory_plan(membind, request, out);
}

/* One that waits for no turn takes the first PU of a plan for a team. */
TEST(a_job_that_comes_between_the_look_and_the_choice_is_seen)
{
    begin_registry();
    (void)start_and_end(wait_to_go);
    const uint32_t first = pin_here.plan.pus[0];
    comes_between = true;
    ck_assert(pin_process_plan(PIN_TEAM_COMES));
    ck_assert(!comes_between);
    ck_assert(profile_mask_has(&pin_here.plan.avoid, first));
    ck_assert_uint_ne(pin_here.plan.pus[0], first);
}

/* -- the watch, on PUs that are busy or idle as this test says -- */

static atomic_int idles = -1; /* a PU; -1: all is as it is */
static atomic_uint readings;
static atomic_bool is_computed;

static void *compute(void *unused)
{
    sem_post(&begun);
    while (!atomic_load(&is_computed)) {
    }
    return unused;
}

WRAP(int, profile_ticks_get, struct profile_ticks *ticks, size_t pus)
{
    const int pu = atomic_load(&idles);
    if (pu < 0) {
        return __real_profile_ticks_get(ticks, pus);
    }
    for (size_t i = 0; i < pus; i++) {
        const uint64_t idle = (int)i == pu ? profile_now_ns() / PROFILE_TICK_NS : 0;
        ticks[i] = (struct profile_ticks){.all = 1, .idle = idle};
    }
    atomic_fetch_add(&readings, 1);
    return 0;
}

int __real_profile_mask_set_pu(pid_t tid, uint32_t pu);

/* Another job, which has the PU as well, and computes there. */
static pid_t compute_beside(uint32_t pu)
{
    static struct pin_registry beside;
    struct profile_mask held = {0};
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        (void)__real_profile_mask_set_pu(0, pu);
        (void)pin_registry_open(&beside, pin_here.options.registry, 1);
        (void)pin_registry_take(&beside, pu, false, true);
        compute(NULL);
    }
    while (!profile_mask_has(&held, pu)) {
        pin_process_lock();
        pin_registry_look(&pin_here.registry, &pin_here.plan.own, &held);
        pin_process_unlock();
    }
    return child;
}

static void wait_for_readings(unsigned more)
{
    const unsigned until = atomic_load(&readings) + more;
    while (atomic_load(&readings) < until) {
        usleep(1000);
    }
}

/* Its thread waits beside another job, and the PU that idles is a third one's, which ends. */
TEST(a_team_that_was_laid_over_a_job_is_placed_when_another_has_ended)
{
    begin_registry();
    pin_here.options.no_watch = false;
    (void)start_and_end(wait_to_go); /* with the watch, and it is another one that looks below */
    usleep(100000);
    const struct seen seen = start(compute);
    const int32_t other = another_pu(seen.pu);
    pin_process_lock();
    pin_here.pools.team = seen.record->pool;
    pin_process_unlock();
    ck_assert(pin_registry_take(&another_job, (uint32_t)other, false, false));
    const pid_t child = compute_beside((uint32_t)seen.pu);
    atomic_store(&idles, other);
    wait_for_readings(4);
    ck_assert_int_eq(atomic_load(&seen.record->pu), seen.pu);
    pin_registry_release(&another_job);
    while (atomic_load(&seen.record->pu) != other) {
        usleep(1000);
    }
    atomic_store(&idles, seen.pu); /* it comes home when that is its own again */
    wait_for_readings(6);
    ck_assert_int_eq(atomic_load(&seen.record->pu), other);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    while (atomic_load(&seen.record->pu) != seen.pu) {
        usleep(1000);
    }
    atomic_store(&is_computed, true);
    pthread_join(seen.thread, NULL);
}
