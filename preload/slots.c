/* Which slot of the plan a new thread takes. */
#include "slots.h"

#include <errno.h>
#include <stdlib.h>

int pin_slots_make(size_t count, struct pin_slots *out)
{
    atomic_uint *counts = calloc(count * (PIN_POOLS + 1), sizeof *counts);
    if (!counts)
        return -ENOMEM;
    out->count = count;
    out->total = counts;
    out->own = counts + count;
    pin_slots_reset(out);
    return 0;
}

void pin_slots_reset(struct pin_slots *slots)
{
    for (size_t i = 0; i < slots->count * (PIN_POOLS + 1); i++)
        atomic_store_explicit(&slots->total[i], 0, memory_order_relaxed);
    atomic_store_explicit(&slots->total[0], 1, memory_order_relaxed);
    for (size_t pool = 0; pool < PIN_POOLS; pool++)
        atomic_store_explicit(&slots->own[pool * slots->count], 1, memory_order_relaxed);
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

static size_t least_used(const struct pin_slots *slots, const atomic_uint *own, unsigned *own_count)
{
    size_t best = 0;
    unsigned best_own = read_count(&own[0]), best_total = read_count(&slots->total[0]);
    for (size_t slot = 1; slot < slots->count && best_own + best_total > 0; slot++) {
        unsigned here = read_count(&own[slot]), total = read_count(&slots->total[slot]);
        if (here > best_own || (here == best_own && total >= best_total))
            continue;
        best = slot;
        best_own = here;
        best_total = total;
    }
    *own_count = best_own;
    return best;
}

size_t pin_slots_take(struct pin_slots *slots, unsigned pool)
{
    atomic_uint *own = slots->own + pool * slots->count;
    for (;;) {
        unsigned seen;
        size_t slot = least_used(slots, own, &seen);
        if (!atomic_compare_exchange_weak_explicit(&own[slot], &seen, seen + 1, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        atomic_fetch_add_explicit(&slots->total[slot], 1, memory_order_relaxed);
        return slot;
    }
}

void pin_slots_give_back(struct pin_slots *slots, unsigned pool, size_t slot)
{
    atomic_fetch_sub_explicit(&slots->own[pool * slots->count + slot], 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&slots->total[slot], 1, memory_order_relaxed);
}
