/* Which slot of the plan a new thread takes. */
#include "slots.h"

#include <errno.h>
#include <stdlib.h>

enum { SLOT_NEW, SLOT_USED, SLOT_AVOID };

int pin_slots_make(size_t count, struct pin_slots *out)
{
    atomic_uint *counts = calloc(count * (PIN_POOLS + 2), sizeof *counts);
    if (!counts)
        return -ENOMEM;
    out->count = count;
    out->total = counts;
    out->state = counts + count;
    out->own = counts + 2 * count;
    out->total[0] = 1;
    out->state[0] = SLOT_USED;
    for (size_t pool = 0; pool < PIN_POOLS; pool++)
        out->own[pool * count] = 1;
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

/* FNV-1a, 64 bits; never 0, which marks a free entry. */
static uint64_t key_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash | 1;
}

unsigned pin_slots_pool(struct pin_slots *slots, const char *name)
{
    uint64_t key = key_of(name);
    for (unsigned pool = 0; pool < PIN_POOLS - 1; pool++) {
        uint64_t seen = atomic_load_explicit(&slots->pool_key[pool], memory_order_relaxed);
        if (seen == 0 && atomic_compare_exchange_strong(&slots->pool_key[pool], &seen, key))
            return pool;
        if (seen == key)
            return pool;
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

/* What makes a slot worse, the weightier the higher: threads of the pool, threads in all, another program. */
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
        if (much >= least)
            continue;
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
        if (!atomic_compare_exchange_weak_explicit(&own[slot], &seen, seen + 1, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
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
