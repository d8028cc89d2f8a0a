/* Do slots and records stay whole when many threads take them and give them back at once: every
 * claim a slot, none lost, no record handed out twice? Built with -Db_sanitize=thread this is also
 * what looks for races.
 */
#include <pthread.h>
#include <stdlib.h>

#include "preload/place/place.h"
#include "tests/base/runner.h"

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
