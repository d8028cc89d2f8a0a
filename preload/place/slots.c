/* One record for each thread that the shim has a hand in. */
#include "preload/place/place.h"

#include <errno.h>
#include <stdlib.h>

#include "preload/node/node.h"
#include "profile/base/hash.h"

#define BLOCK_RECORDS 256u
#define BLOCKS 256u

static _Atomic(void *) block[BLOCKS];
static _Atomic(uint32_t) used; /* records ever handed out */
/* Number of the first free record in the low half; the high half counts the changes, so that a
 * record which was taken and came back meanwhile is not mistaken for one that never left. */
static _Atomic(uint64_t) free_list;

static struct pin_thread *record_of(uint32_t number)
{
    uint32_t index = number - 1;
    struct pin_thread *records =
        atomic_load_explicit(&block[index / BLOCK_RECORDS], memory_order_acquire);
    return &records[index % BLOCK_RECORDS];
}

static struct pin_thread *fresh_record(void)
{
    uint32_t index = atomic_load_explicit(&used, memory_order_relaxed);
    do {
        if (index >= BLOCKS * BLOCK_RECORDS - 1 ||
            !pin_pages_map_once(&block[index / BLOCK_RECORDS],
                                BLOCK_RECORDS * sizeof(struct pin_thread))) {
            return NULL;
        }
    } while (!atomic_compare_exchange_weak(&used, &index, index + 1));
    struct pin_thread *record = record_of(index + 1);
    record->number = index + 1;
    return record;
}

struct pin_thread *pin_record_take(void)
{
    uint64_t head = atomic_load_explicit(&free_list, memory_order_acquire);
    while ((uint32_t)head != 0) {
        struct pin_thread *first = record_of((uint32_t)head);
        uint64_t next =
            ((head >> 32) + 1) << 32 | atomic_load_explicit(&first->next, memory_order_relaxed);
        if (atomic_compare_exchange_weak(&free_list, &head, next)) {
            return first;
        }
    }
    return fresh_record();
}

void pin_record_give_back(struct pin_thread *record)
{
    uint64_t head = atomic_load_explicit(&free_list, memory_order_relaxed), next;
    do {
        atomic_store_explicit(&record->next, (uint32_t)head, memory_order_relaxed);
        next = ((head >> 32) + 1) << 32 | record->number;
    } while (!atomic_compare_exchange_weak(&free_list, &head, next));
}

void pin_records_each(void (*visit)(struct pin_thread *record))
{
    uint32_t count = atomic_load_explicit(&used, memory_order_acquire);
    for (uint32_t number = 1; number <= count; number++) {
        visit(record_of(number));
    }
}

uint32_t pin_record_count(void)
{
    return atomic_load_explicit(&used, memory_order_acquire);
}

struct pin_thread *pin_record_at(uint32_t number)
{
    return record_of(number);
}

void pin_records_reset(void)
{
    uint32_t count = atomic_load_explicit(&used, memory_order_acquire);
    for (uint32_t number = 1; number <= count; number++) {
        atomic_store_explicit(&record_of(number)->runs, false, memory_order_relaxed);
        record_of(number)->pu = -1;
        record_of(number)->has_slot = false;
        record_of(number)->watched = (struct pin_watched){0};
    }
}

/* Which slot of the plan a new thread takes. */

enum { SLOT_NEW, SLOT_USED, SLOT_AVOID };

int pin_slots_make(size_t count, struct pin_slots *out)
{
    atomic_uint *counts = calloc(count * (PIN_POOLS + 2), sizeof *counts);
    if (!counts) {
        return -ENOMEM;
    }
    out->count = count;
    out->total = counts;
    out->state = counts + count;
    out->own = counts + 2 * count;
    out->total[0] = 1;
    out->state[0] = SLOT_USED;
    for (size_t pool = 0; pool < PIN_POOLS; pool++) {
        out->own[pool * count] = 1;
    }
    return 0;
}

bool pin_slots_is_new(struct pin_slots *slots, size_t slot)
{
    unsigned expected = SLOT_NEW;
    return atomic_load_explicit(&slots->state[slot], memory_order_relaxed) == SLOT_NEW &&
           atomic_compare_exchange_strong(&slots->state[slot], &expected, SLOT_USED);
}

void pin_slots_avoid(struct pin_slots *slots, size_t slot)
{
    atomic_store_explicit(&slots->state[slot], SLOT_AVOID, memory_order_relaxed);
}

unsigned pin_slots_pool(struct pin_slots *slots, const char *name)
{
    /* Never 0, which marks a free entry. */
    uint64_t key = profile_hash_text(PROFILE_HASH_BEGIN, name) | 1;
    for (unsigned pool = 0; pool < PIN_POOLS - 1; pool++) {
        uint64_t seen = atomic_load_explicit(&slots->pool_key[pool], memory_order_relaxed);
        if (seen == 0 && atomic_compare_exchange_strong(&slots->pool_key[pool], &seen, key)) {
            return pool;
        }
        if (seen == key) {
            return pool;
        }
    }
    return PIN_POOLS - 1;
}

static unsigned read_count(const atomic_uint *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

unsigned pin_slots_threads(const struct pin_slots *slots, size_t slot)
{
    return read_count(&slots->total[slot]);
}

size_t pin_slots_of_pool(const struct pin_slots *slots, unsigned pool)
{
    size_t threads = 0;
    for (size_t slot = 0; slot < slots->count; slot++) {
        threads += read_count(&slots->own[pool * slots->count + slot]);
    }
    return threads;
}

/* What makes a slot worse, the weightier the higher: threads of the pool, threads in all, another
 * program. */
static uint64_t burden(const struct pin_slots *slots, unsigned own, size_t slot)
{
    uint64_t total = read_count(&slots->total[slot]);
    return (uint64_t)own << 32 | total << 1 | (read_count(&slots->state[slot]) == SLOT_AVOID);
}

static size_t least_used(const struct pin_slots *slots, const atomic_uint *own, unsigned *own_count)
{
    size_t best = 0;
    uint64_t least = UINT64_MAX;
    for (size_t slot = 0; slot < slots->count && least > 0; slot++) {
        unsigned here = read_count(&own[slot]);
        uint64_t much = burden(slots, here, slot);
        if (much >= least) {
            continue;
        }
        best = slot;
        least = much;
        *own_count = here;
    }
    return best;
}

size_t pin_slots_take(struct pin_slots *slots, unsigned pool)
{
    atomic_uint *own = slots->own + pool * slots->count;
    for (;;) {
        unsigned seen = 0;
        size_t slot = least_used(slots, own, &seen);
        if (!atomic_compare_exchange_weak_explicit(&own[slot], &seen, seen + 1,
                                                   memory_order_relaxed, memory_order_relaxed)) {
            continue;
        }
        atomic_fetch_add_explicit(&slots->total[slot], 1, memory_order_relaxed);
        return slot;
    }
}

void pin_slots_take_this(struct pin_slots *slots, unsigned pool, size_t slot)
{
    atomic_fetch_add_explicit(&slots->own[pool * slots->count + slot], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&slots->total[slot], 1, memory_order_relaxed);
}

void pin_slots_give_back(struct pin_slots *slots, unsigned pool, size_t slot)
{
    atomic_fetch_sub_explicit(&slots->own[pool * slots->count + slot], 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&slots->total[slot], 1, memory_order_relaxed);
}

size_t pin_slots_take_free(struct pin_slots *slots, unsigned pool, struct pin_claims *claims,
                           const uint32_t *pus)
{
    size_t slot = pin_slots_take(slots, pool);
    bool visits = false;
    while (pin_slots_is_new(slots, slot) && !pin_claims_try_next(claims, &visits, pus[slot])) {
        /* Another program was there first, or has come since the plan was made. */
        pin_slots_avoid(slots, slot);
        pin_slots_give_back(slots, pool, slot);
        slot = pin_slots_take(slots, pool);
    }
    pin_claims_leave(claims, visits);
    return slot;
}
