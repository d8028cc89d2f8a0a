/* One record for each thread that the shim has a hand in, from before its creation until it ends.
 *
 * Records come from the shim's own memory (mapped in blocks, never given back, reused), because the
 * program's malloc may be its own, may create threads, and may be the thing that is being set up.
 * Lock-free.
 */
#ifndef SERVET_PRELOAD_PLACE_SLOTS_H
#define SERVET_PRELOAD_PLACE_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pin_thread {
    _Atomic(uint32_t) next; /* of a free record: the next free one's number, 0: none */
    uint32_t number;        /* 1, 2, … */
    uint32_t slot, pool;
    atomic_bool runs;     /* settled on its PU, and not ended */
    int32_t tid;          /* only where a sandbox of all threads is made; 0: not known */
    int32_t pu;           /* -1: no PU of its own but all of the plan */
    uint32_t report_line; /* 0: none */
    const char *dso, *role, *decided_by;
    void *start, *argument;
};

/* A free record, or NULL when memory is short or 65,535 are in use. */
struct pin_thread *pin_record_take(void);
void pin_record_give_back(struct pin_thread *record);
/* All records, those of threads that do not run too. */
void pin_records_each(void (*visit)(struct pin_thread *record));
/* In the child of a fork, where none of those threads is: they hold nothing any more. */
void pin_records_reset(void);

/* Which slot of the plan a new thread takes, and how many threads are on each.
 *
 * Threads are counted per pool (an OpenMP runtime, a numeric library's pool, the application's own
 * threads), because a pool that sleeps must not push the workers of another one together: a new
 * thread takes the slot that has the fewest threads of its own pool (the main thread counts in
 * every pool, for it works in all of them), then the fewest in all, then the first in the plan.
 * Slots are owned and given back, so a pool that shrinks and grows keeps every PU used.
 *
 * Lock-free: a claim reads the counts and takes the slot by compare-and-swap.
 */

/* Different pools in one process that are told apart; any further ones share the last. */
#define PIN_POOLS 8u

struct pin_slots {
    size_t count;
    atomic_uint *total; /* threads on each slot */
    atomic_uint *own;   /* PIN_POOLS * count: threads of each pool on each slot */
    atomic_uint *state; /* of each slot: SLOT_NEW, SLOT_USED, SLOT_AVOID */
    _Atomic(uint64_t) pool_key[PIN_POOLS];
};

/* 0 or -ENOMEM. The main thread holds slot 0 from the beginning. */
int pin_slots_make(size_t count, struct pin_slots *out);

/* The pool of the DSO called `name`. */
unsigned pin_slots_pool(struct pin_slots *slots, const char *name);

/* Takes a slot for a thread of `pool`; never fails. */
size_t pin_slots_take(struct pin_slots *slots, unsigned pool);
/* Takes this slot, whoever else is on it. */
void pin_slots_take_this(struct pin_slots *slots, unsigned pool, size_t slot);
/* Threads on a slot now. */
unsigned pin_slots_threads(const struct pin_slots *slots, size_t slot);

/* Has this slot never been used? Says so once: afterwards it counts as used. */
bool pin_slots_is_new(struct pin_slots *slots, size_t slot);
/* Another program is there: the slot comes after all others that have as many threads. */
void pin_slots_avoid(struct pin_slots *slots, size_t slot);

void pin_slots_give_back(struct pin_slots *slots, unsigned pool, size_t slot);

#endif
