/* Is a thread moved only while it is the one that the watch has looked at, where it
 * was put? The whole shim is in this program. */
#include <signal.h>
#include <sys/syscall.h>

#include "preload/node/log.h"
#include "preload/place/report.h"
#include "preload/place/watch.h"
#include "tests/base/command.h"
#include "tests/preload/moves/seen.h"

sem_t begun, go;

static void *end_without_a_word(void *unused)
{
    wait_to_go(unused);
    syscall(SYS_exit, 0);
    return unused;
}

static bool moves(struct seen seen, int32_t pu)
{
    return pin_process_move(seen.record, seen.born_ns, seen.pu, pu);
}

static size_t places_taken(void)
{
    const struct pin_pools *pools = &pin_here.pools;
    size_t taken = 0;
    for (size_t i = 0; i < pools->count; i++) {
        taken += pools->places[i].threads;
    }
    return taken;
}

static void begin(void)
{
    sem_init(&begun, 0, 0);
    sem_init(&go, 0, 0);
}

TEST(a_thread_that_is_where_it_was_seen_is_moved)
{
    struct profile_mask now;
    const struct seen seen = start(wait_to_go);
    const int32_t other = another_pu(seen.pu);
    ck_assert(moves(seen, other));
    ck_assert_int_eq(profile_mask_get(atomic_load(&seen.record->tid), &now), 0);
    ck_assert(profile_mask_count(&now) == 1 && profile_mask_has(&now, (uint32_t)other));
    /* It is there now. */
    ck_assert(!moves(seen, PIN_LEFT));
    end(seen.thread);
    ck_assert_uint_eq(places_taken(), 0);
}

TEST(a_record_whose_thread_has_ended_takes_no_place)
{
    const struct seen seen = start_and_end(wait_to_go);
    ck_assert(!moves(seen, another_pu(seen.pu)));
    ck_assert_uint_eq(places_taken(), 0);
}

TEST(a_record_that_has_become_another_threads_is_not_moved)
{
    const struct seen before = start_and_end(wait_to_go), after = start(wait_too);
    ck_assert_ptr_eq(after.record, before.record);
    ck_assert_int_eq(after.pu, before.pu);
    ck_assert(!moves(before, another_pu(before.pu)));
    ck_assert_int_eq(atomic_load(&after.record->pu), after.pu);
    end(after.thread);
}

TEST(a_thread_that_ended_without_a_word_is_not_moved)
{
    const struct seen seen = start(end_without_a_word);
    sem_post(&go);
    while (!pin_process_thread_is_gone(seen.record)) {
        usleep(1000);
    }
    ck_assert(!moves(seen, another_pu(seen.pu)));
    ck_assert_int_eq(atomic_load(&seen.record->pu), seen.pu);
    pthread_detach(seen.thread);
}

/* It was made on a PU before that. */
TEST(a_thread_that_begins_when_all_is_given_up_runs_anywhere)
{
    struct pin_thread late = {.made_on = 0};
    struct profile_mask now;
    (void)start_and_end(wait_to_go);
    pin_process_give_up();
    ck_assert_int_eq(profile_mask_set_pu(0, 0), 0);
    ck_assert_int_eq(pin_process_take_place(&late), 0);
    ck_assert_int_eq(profile_mask_get(0, &now), 0);
    ck_assert(profile_mask_equal(&now, &pin_here.children));
}

/* -- a child at this moment -- */

static pid_t leaves;
static struct pin_thread *leaving;
static atomic_int main_went = -1, thread_went = -1; /* the PU they were put on last */

WRAP(int, profile_mask_set_pu, pid_t tid, uint32_t pu)
{
    if (leaving && tid == leaves) {
        atomic_store(&leaving->away, true);
    }
    atomic_store(tid == 0 && pin_self.is_main ? &main_went : &thread_went, (int)pu);
    return __real_profile_mask_set_pu(tid, pu);
}

/* It begins to make a child while it is moved: the child inherits no PU. */
TEST(a_thread_that_makes_a_child_meanwhile_has_the_mask_for_it)
{
    struct profile_mask now;
    const struct seen seen = start(wait_to_go);
    leaves = atomic_load(&seen.record->tid);
    leaving = seen.record;
    ck_assert(moves(seen, another_pu(seen.pu)));
    leaving = NULL;
    ck_assert_int_eq(profile_mask_get(leaves, &now), 0);
    ck_assert(profile_mask_equal(&now, &pin_here.children));
    atomic_store(&seen.record->away, false);
    end(seen.thread);
}

static void *hold_the_lock(void *unused)
{
    pin_process_lock();
    wait_to_go(unused);
    pin_process_unlock();
    return unused;
}

static void make_a_thread(void)
{
    end(make(wait_to_go));
}

/* Another thread has the lock at a fork: it is not there to give it back. */
TEST(a_forks_child_has_a_lock_of_its_own)
{
    const pthread_t thread = make(hold_the_lock);
    in_a_process(make_a_thread);
    end(thread);
}

static void *plan_meanwhile(void *unused)
{
    pin_process_lock();
    sem_post(&begun);
    usleep(200000);
    for (unsigned pool = 0; pool < PIN_POOLS; pool++) {
        pin_here.pools.pool[pool].cause = PIN_CAUSE_NONE;
    }
    pin_here.pools.pool[0].cause = PIN_CAUSE_MASK;
    pin_process_unlock();
    return wait_to_go(unused);
}

static void end_meanwhile(void)
{
    (void)make(plan_meanwhile);
    exit(0);
}

/* Another thread has the lock when the program ends. */
TEST(a_report_at_the_end_waits_for_the_lock)
{
    const char *path = scratch_path("report");
    pin_here.options.report = path;
    fflush(NULL);
    in_a_process(end_meanwhile);
    const char *text = read_text(path);
    ck_assert_msg(strstr(text, "the program gave a mask"), "%s", text);
    pin_here.options.report = NULL;
}

/* -- the main thread's PU -- */

static int main_runs_on = -1;

WRAP(int, sched_getcpu, void)
{
    return main_runs_on >= 0 ? main_runs_on : __real_sched_getcpu();
}

/* A main thread without a place goes to the first one, and may run anywhere again. */
TEST(a_main_thread_makes_room_for_a_thread_that_comes_to_its_pu)
{
    struct profile_mask now;
    const struct seen before = start_and_end(wait_to_go);
    main_runs_on = before.pu;
    atomic_store(&main_went, -1);
    const struct seen seen = start(wait_too);
    ck_assert_int_eq(seen.pu, before.pu);
    ck_assert_int_eq(atomic_load(&main_went), (int)pin_here.pools.places[0].pu);
    ck_assert_int_eq(profile_mask_get(0, &now), 0);
    ck_assert(profile_mask_equal(&now, &pin_here.children));
    end(seen.thread);
}

/* -- words -- */

static unsigned lines_said, records_said;
static int32_t reported = -1;

WRAP(void, pin_log, bool verbose, const char *format, ...)
{
    (void)format;
    lines_said += verbose;
}

WRAP(void, pin_record, const char *where, bool verbose, const char *sentence,
     const struct profile_fact *facts)
{
    records_said += verbose;
    __real_pin_record(where, false, sentence, facts);
}

WRAP(void, pin_report_moved, uint32_t line, int32_t pu)
{
    reported = pu;
    __real_pin_report_moved(line, pu);
}

/* A thread without a line in the report is not the main thread there. */
TEST(a_move_is_said_and_reported_where_that_is_asked_for)
{
    struct seen seen = start(wait_to_go);
    const int32_t other = another_pu(seen.pu);
    ck_assert(moves(seen, other));
    ck_assert(lines_said == 0 && reported == -1);
    pin_here.options.verbose = true;
    seen.pu = other;
    ck_assert(moves(seen, PIN_LEFT));
    ck_assert(lines_said == 1 && reported == -1);
    end(seen.thread);
    pin_main();
    const int32_t main_pu = atomic_load(&pin_life.main_pu), third = another_pu(main_pu);
    lines_said = 0;
    ck_assert(pin_process_move(NULL, 0, main_pu, third));
    ck_assert(lines_said == 1 && reported == third);
}

static unsigned say_a_pool_is_left(void *(*routine)(void *))
{
    const struct seen seen = start(routine);
    pin_process_lock();
    pin_here.options.verbose = true;
    ck_assert(pin_pools_loosen(&pin_here.pools, seen.record->pool));
    pin_process_unlock();
    records_said = 0;
    pin_why_say();
    pin_why_say();
    end(seen.thread);
    return records_said;
}

static void say_it_again(void)
{
    _exit(say_a_pool_is_left(wait_too) != 1);
}

TEST(why_a_pool_is_left_is_said_once_in_each_process)
{
    ck_assert_uint_eq(say_a_pool_is_left(wait_to_go), 1);
    in_a_process(say_it_again);
}

TEST(a_main_thread_that_binds_itself_is_left_whichever_pu_it_had, .loops = 2)
{
    atomic_store(&pin_life.main_pu, _i ? 0 : MAIN_LOOSE);
    pin_process_forget_thread();
    ck_assert_int_eq(atomic_load(&pin_life.main_pu), MAIN_LEFT);
}

/* The kernel does not move one that waits by sched_yield(): it waits beside the main thread. With
 * attributes that cannot be copied it goes there itself. */
#ifdef PTHREAD_ATTR_NO_SIGMASK_NP
#define WAYS 2
#else
#define WAYS 1
#endif

TEST(threads_that_are_left_begin_beside_the_main_thread, .loops = WAYS)
{
    pthread_t second;
    pthread_attr_t attributes;
    const struct seen seen = start(wait_to_go);
    pin_process_lock();
    pin_process_pin_main();
    const int32_t main_pu = atomic_load(&pin_life.main_pu);
    ck_assert(main_pu >= 0 && main_pu != seen.pu);
    atomic_store(&thread_went, -1);
    ck_assert(pin_pools_loosen(&pin_here.pools, seen.record->pool));
    pin_process_unlock();
    ck_assert_int_eq(atomic_load(&thread_went), main_pu);
    atomic_store(&thread_went, -1);
    pthread_attr_init(&attributes);
#ifdef PTHREAD_ATTR_NO_SIGMASK_NP
    sigset_t none;
    sigemptyset(&none);
    ck_assert(_i == 0 || pthread_attr_setsigmask_np(&attributes, &none) == 0);
#endif
    ck_assert_int_eq(pthread_create(&second, &attributes, wait_too, NULL), 0);
    sem_wait(&begun);
    const int32_t made_on = pin_record_at(pin_record_count())->made_on;
    ck_assert_int_eq(made_on >= 0 ? made_on : atomic_load(&thread_went), main_pu);
    ck_assert_int_eq(made_on >= 0, _i == 0);
    pthread_attr_destroy(&attributes);
    sem_post(&go);
    end(seen.thread);
    pthread_join(second, NULL);
}

/* -- the end of a thread -- */

static bool is_cancelled;

WRAP(void, pin_report_end, uint32_t line)
{
    if (is_cancelled) {
        pthread_cancel(pthread_self());
    }
    __real_pin_report_end(line);
}

static void *may_end_anywhere(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    return wait_to_go(unused);
}

TEST(a_thread_that_is_cancelled_while_it_ends_gives_its_place_back)
{
    const struct seen seen = start(may_end_anywhere);
    is_cancelled = true;
    end(seen.thread);
    ck_assert_uint_eq(places_taken(), 0);
}

/* -- a sandbox -- */

static atomic_bool is_shut;

static void *shut_all(void *unused)
{
    pin_process_shut(true);
    atomic_store(&is_shut, true);
    return unused;
}

/* A call that began before could be its end. */
TEST(a_sandbox_waits_for_calls_in_progress)
{
    pthread_t thread;
    atomic_fetch_add(&pin_life.calls, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, shut_all, NULL), 0);
    usleep(100000);
    ck_assert(!atomic_load(&is_shut));
    atomic_fetch_sub(&pin_life.calls, 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(atomic_load(&is_shut));
}

/* Two places are needed. */
static void need_two_pus(void)
{
    struct profile_mask own;
    if (profile_mask_get(0, &own) < 0 || profile_mask_count(&own) < 2) {
        printf("skipped: one PU\n");
        exit(77);
    }
}

TESTS(.begin = need_two_pus, .setup = begin)
