/* Which thread of a process has which PU? No two have the same; the team comes first, other pools
 * are placed whole or left whole; two jobs share none while there are others. */
#include "preload/place/process.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"

enum { MOST_PLACES = 16, MOST_THREADS = 64 };

static struct pin_registry registry;
static struct pin_pools pools;
static struct pin_thread *left[MOST_THREADS];
static size_t left_count;
static bool main_left;

/* -- as the process does, without a mask -- */

void pin_process_leave(struct pin_thread *thread)
{
    main_left = main_left || !thread;
    if (thread) {
        atomic_store(&thread->pu, PIN_LEFT);
        left[left_count++] = thread;
    }
}

void pin_process_put(struct pin_thread *thread, int32_t pu)
{
    atomic_store(&thread->pu, pu);
}

/* Threads of the number 2 are. */
bool pin_process_thread_is_gone(const struct pin_thread *thread)
{
    return atomic_load(&thread->tid) == 2;
}

/* A process with the PUs 0 … count - 1, in that order; each memory domain has two of them. */
static void begin(size_t count)
{
    static uint32_t pus[MOST_PLACES];
    struct pin_place *places = calloc(count, sizeof *places);
    for (uint32_t i = 0; i < count; i++) {
        pus[i] = i;
        places[i].domain = i / 2;
    }
    const struct pin_plan plan = {.pus = pus, .count = count, .places = places};
    free(pools.places);
    pools =
        (struct pin_pools){.team = PIN_POOLS, .main_place = PIN_NO_PLACE, .registry = &registry};
    left_count = 0;
    main_left = false;
    pin_records_reset();
    pin_pools_plan(&pools, &plan);
}

/* One more thread of the library `name`. */
static struct pin_thread *add(const char *name)
{
    struct pin_thread *thread = pin_record_take();
    ck_assert_ptr_nonnull(thread);
    thread->pool = pin_pools_find(&pools, name);
    atomic_store(&thread->tid, 1);
    thread->place = pin_pools_admit(&pools, thread->pool, PIN_NO_PLACE);
    if (thread->place != PIN_NO_PLACE) {
        atomic_store(&thread->pu, (int)pools.places[thread->place].pu);
    }
    return thread;
}

static void end(struct pin_thread *thread)
{
    pin_pools_end(&pools, thread, false);
    pin_record_give_back(thread);
}

/* As the shim does at the first thread of an OpenMP runtime; false: it does not fit. */
static bool begin_team(void)
{
    pools.team = pin_pools_find(&pools, "libgomp.so.1");
    return pin_pools_team_fits(&pools) && pin_pools_place_main(&pools) != PIN_NO_PLACE;
}

static struct pin_thread *add_to_team(void)
{
    return add("libgomp.so.1");
}

static void expect(const struct pin_thread *thread, int pu)
{
    ck_assert_int_eq(atomic_load(&thread->pu), pu);
    ck_assert_int_eq(thread->place == PIN_NO_PLACE, pu == PIN_LEFT);
}

/* -- one process -- */

TEST(threads_of_a_pool_have_one_place_each_and_the_main_threads_last)
{
    begin(4);
    for (int i = 0; i < 4; i++) {
        expect(add(""), (i + 1) % 4);
    }
    ck_assert_uint_eq(left_count, 0);
}

TEST(a_place_comes_back_when_its_thread_ends)
{
    begin(4);
    expect(add(""), 1);
    struct pin_thread *second = add("");
    expect(add(""), 3);
    end(second);
    expect(add(""), 2);
}

TEST(a_thread_that_moves_stays_in_its_memory_domain_where_it_can)
{
    struct profile_mask idle = {0};
    begin(6);
    ck_assert_int_eq(pin_pools_nearest(&pools, 5, &idle), PIN_LEFT);
    profile_mask_add(&idle, 1);
    profile_mask_add(&idle, 3);
    ck_assert_int_eq(pin_pools_nearest(&pools, 5, &idle), 1);
    profile_mask_add(&idle, 4);
    ck_assert_int_eq(pin_pools_nearest(&pools, 5, &idle), 4);
}

TEST(a_pool_that_does_not_fit_is_left_whole_and_stays_so)
{
    struct pin_thread *threads[3];
    begin(2);
    for (size_t i = 0; i < 3; i++) {
        threads[i] = add("");
    }
    ck_assert_uint_eq(left_count, 2);
    for (size_t i = 0; i < 3; i++) {
        expect(threads[i], PIN_LEFT);
        end(threads[i]);
    }
    expect(add(""), PIN_LEFT); /* it would be moved again and again */
}

/* The main thread works for each of them in turn. */
TEST(two_pools_that_do_not_fit_with_the_main_thread_are_left)
{
    begin(2);
    struct pin_thread *blas = add("libopenblas.so.0");
    expect(blas, 1);
    expect(add(""), PIN_LEFT);
    expect(blas, PIN_LEFT);
    begin(3);
    expect(add("libopenblas.so.0"), 1);
    expect(add(""), 2);
}

TEST(a_team_has_its_main_thread_and_a_place_each)
{
    begin(4);
    ck_assert(begin_team());
    ck_assert_uint_eq(pools.main_place, 0);
    for (int i = 1; i < 4; i++) {
        expect(add_to_team(), i);
    }
}

TEST(a_team_with_more_threads_than_places_is_left_whole)
{
    begin(3);
    ck_assert(begin_team());
    struct pin_thread *first = add_to_team(), *second = add_to_team();
    expect(second, 2);
    ck_assert(!pin_pools_team_fits(&pools));
    expect(add_to_team(), PIN_LEFT);
    expect(first, PIN_LEFT);
    expect(second, PIN_LEFT);
    ck_assert(main_left && pools.main_place == PIN_NO_PLACE);
    ck_assert(pools.pool[pools.team].cause == PIN_CAUSE_TOO_MANY);
    ck_assert_uint_eq(pools.pool[pools.team].needs, 4);
    begin(3);
    pools.team_size = 4; /* known beforehand */
    ck_assert(!begin_team());
}

TEST(a_librarys_pool_gives_its_places_to_the_team)
{
    begin(2);
    struct pin_thread *blas = add("libopenblas.so.0");
    expect(blas, 1);
    ck_assert(begin_team());
    expect(add_to_team(), 1);
    expect(blas, PIN_LEFT);
    ck_assert(pools.pool[pin_pools_find(&pools, "libopenblas.so.0")].cause == PIN_CAUSE_TEAM);
    expect(add("libopenblas.so.0"), PIN_LEFT);
}

TEST(a_librarys_pool_keeps_its_places_where_there_are_others)
{
    begin(8);
    struct pin_thread *blas = add("libopenblas.so.0");
    ck_assert(begin_team());
    expect(add_to_team(), 2);
    expect(blas, 1);
    expect(add("libopenblas.so.0"), 3);
    for (int i = 4; i < 8; i++) {
        expect(add_to_team(), i);
    }
    expect(add_to_team(), 1); /* then the team needs them */
    expect(blas, PIN_LEFT);
}

TEST(no_pu_twice_however_threads_come_and_go, .loops = 50)
{
    static const char *const names[] = {"", "libopenblas.so.0", "libgomp.so.1", "libtbb.so.2"};
    struct pin_thread *threads[MOST_THREADS];
    size_t count = 0;
    srand((unsigned)_i);
    begin(2 + (size_t)(rand() % 7));
    for (int step = 0; step < 200; step++) {
        if (count > 0 && (count == MOST_THREADS / 2 || rand() % 2)) {
            size_t which = (size_t)rand() % count;
            end(threads[which]);
            threads[which] = threads[--count];
        } else {
            const char *name = names[rand() % 4];
            if (strcmp(name, "libgomp.so.1") == 0 && pools.team == PIN_POOLS && !begin_team()) {
                pools.team = PIN_POOLS;
                continue;
            }
            left_count = 0;
            threads[count++] = add(name);
        }
        uint64_t used = 0;
        for (size_t i = 0; i < count; i++) {
            const int pu = atomic_load(&threads[i]->pu);
            ck_assert_msg(pu < 0 || !(used >> pu & 1), "PU %d twice", pu);
            used |= pu < 0 ? 0 : UINT64_C(1) << pu;
        }
        ck_assert(pools.main_place == PIN_NO_PLACE ||
                  !(used >> pools.places[pools.main_place].pu & 1));
    }
}

/* Two of three have ended without a word, and one more comes. */
TEST(a_pool_is_placed_where_threads_that_ended_without_a_word_were)
{
    begin(3);
    struct pin_thread *first = add(""), *second = add(""), *third = add("");
    expect(third, 0);
    atomic_store(&first->tid, 2);
    atomic_store(&third->tid, 2);
    expect(add(""), 1);
    expect(second, 2);
    ck_assert_uint_eq(left_count, 0);
}

/* -- other programs -- */

TEST(a_pool_that_waited_beside_others_is_left_whole_until_it_is_calm)
{
    begin(4);
    struct pin_thread *first = add(""), *second = add("");
    ck_assert(!pin_pools_are_left(&pools));
    ck_assert(pin_pools_loosen(&pools, 0));
    expect(first, PIN_LEFT);
    expect(second, PIN_LEFT);
    ck_assert(!pin_pools_loosen(&pools, 0));
    struct pin_thread *bound = add("");
    atomic_store(&bound->bound, true); /* by the program since */
    expect(bound, PIN_LEFT);
    ck_assert(pools.pool[0].cause == PIN_CAUSE_STRANGERS);
    ck_assert(pin_pools_are_left(&pools));
    ck_assert_uint_eq(pin_pools_place_rest(&pools, false), 0);
    ck_assert_uint_eq(pin_pools_place_rest(&pools, true), 2);
    expect(first, 1);
    expect(second, 2);
    expect(bound, PIN_LEFT);
    ck_assert(!pin_pools_are_left(&pools) && pools.pool[0].cause == PIN_CAUSE_NONE);
}

TEST(a_team_is_not_left_for_other_programs)
{
    begin(2);
    ck_assert(begin_team());
    struct pin_thread *thread = add_to_team();
    ck_assert(!pin_pools_loosen(&pools, pools.team));
    expect(thread, 1);
}

TEST(a_pool_that_is_not_watched_is_placed_where_pus_idle)
{
    const struct profile_mask busy = {.word = {0x6}};
    begin(4);
    pin_pools_avoid(&pools, &busy);
    struct pin_thread *first = add("");
    expect(first, 3);
    expect(add(""), 0);
    expect(add(""), PIN_LEFT); /* and with it the whole pool */
    expect(first, PIN_LEFT);
}

/* -- two jobs; each has a registry of its own, and holds what it took -- */

static const char *path;

static void open_registry(void)
{
    path = path ? path : scratch_path("registry");
    ck_assert_int_eq(pin_registry_open(&registry, path, 0), 0);
}

static int one_worker(void)
{
    open_registry();
    begin(2);
    expect(add(""), 1);
    return 0;
}

TEST(a_pool_that_did_not_fit_is_placed_when_the_other_job_has_ended)
{
    const struct profile_mask none = {0};
    open_registry();
    const struct other other = start_process(one_worker);
    begin(2);
    struct pin_thread *first = add(""), *second = add("");
    expect(second, PIN_LEFT);
    ck_assert_uint_eq(pin_pools_place_rest(&pools, true), 0);
    end_process(&other);
    pin_pools_avoid(&pools, &none);
    ck_assert_uint_eq(pin_pools_place_rest(&pools, false), 2);
    expect(first, 1);
    expect(second, 0);
}

static int a_team_of_two(void)
{
    open_registry();
    begin(2);
    ck_assert(begin_team());
    expect(add_to_team(), 1);
    return 0;
}

/* Seen red: both had the same PU, and took twice their time. */
TEST(two_jobs_of_one_worker_have_a_pu_each)
{
    open_registry();
    const struct other other = start_process(one_worker);
    begin(2);
    expect(add(""), 0);
    expect(add(""), PIN_LEFT); /* a pool is not laid over another job */
    ck_assert(pools.pool[0].cause == PIN_CAUSE_HELD);
    end_process(&other);
    begin(2);
    expect(add(""), 1);
}

TEST(a_team_is_laid_over_another_job_with_main_threads_apart)
{
    open_registry();
    const struct other other = start_process(a_team_of_two);
    begin(2);
    ck_assert(begin_team());
    ck_assert_uint_eq(pools.places[pools.main_place].pu, 1);
    expect(add_to_team(), 0);
    end_process(&other);
}

static int four_workers(void)
{
    open_registry();
    begin(8);
    for (int i = 1; i <= 4; i++) {
        expect(add(""), i);
    }
    return 0;
}

TEST(jobs_of_k_workers_on_2k_pus_share_none)
{
    open_registry();
    const struct other other = start_process(four_workers);
    begin(8);
    for (int i = 5; i <= 8; i++) {
        expect(add(""), i % 8);
    }
    end_process(&other);
}

/* -- records and routines -- */

TEST(a_record_is_handed_out_once)
{
    struct pin_thread *a = pin_record_take(), *b = pin_record_take();
    ck_assert_ptr_ne(a, b);
    pin_record_give_back(a);
    ck_assert_ptr_eq(pin_record_take(), a);
    ck_assert_ptr_ne(pin_record_take(), a);
}

TEST(one_in_some_threads_of_a_brief_routine_is_looked_at)
{
    static const int routine;
    unsigned sampled = 0;
    pin_brief_ended(&routine, 1000);
    for (int i = 0; i < 100; i++) {
        sampled += pin_brief_is_sampled(&routine);
    }
    ck_assert_uint_gt(sampled, 1);
    ck_assert_uint_lt(sampled, 20);
}

TEST(a_routine_is_brief_until_its_threads_live_longer)
{
    static const int routine, other;
    ck_assert(!pin_brief(&routine));
    ck_assert(pin_brief_ended(&routine, 1000));
    ck_assert(pin_brief(&routine) && !pin_brief(&other));
    for (int i = 0; i < 3; i++) {
        pin_brief_ended(&routine, 1000);
    }
    ck_assert(!pin_brief_ended(&routine, 1000000000));
    ck_assert(pin_brief(&routine)); /* one may have waited for its PU */
    pin_brief_ended(&routine, 1000000000);
    ck_assert(!pin_brief(&routine));
    ck_assert(!pin_brief_ended(&other, 1000000000));
    ck_assert(!pin_brief(&other));
}
