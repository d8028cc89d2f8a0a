/* One record for each thread that the shim has a hand in. */
#include "records.h"

#include <sys/mman.h>

#include "raw.h"

#define BLOCK_RECORDS 256u
#define BLOCKS 256u

static _Atomic(struct pin_thread *) block[BLOCKS];
static _Atomic(uint32_t) used; /* records ever handed out */
/* Number of the first free record in the low half; the high half counts the changes, so that a record which was taken
 * and came back meanwhile is not mistaken for one that never left. */
static _Atomic(uint64_t) free_list;

static struct pin_thread *record_of(uint32_t number)
{
    uint32_t index = number - 1;
    return &atomic_load_explicit(&block[index / BLOCK_RECORDS], memory_order_acquire)[index % BLOCK_RECORDS];
}

static struct pin_thread *map_block(uint32_t index)
{
    struct pin_thread *seen = atomic_load_explicit(&block[index], memory_order_acquire);
    if (seen)
        return seen;
    size_t bytes = BLOCK_RECORDS * sizeof *seen;
    long address = pin_raw(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address < 0 && address > -4096)
        return NULL;
    struct pin_thread *mapped = (struct pin_thread *)address;
    if (atomic_compare_exchange_strong(&block[index], &seen, mapped))
        return mapped;
    pin_raw(SYS_munmap, address, (long)bytes, 0, 0, 0, 0);
    return seen;
}

static struct pin_thread *fresh_record(void)
{
    uint32_t index = atomic_load_explicit(&used, memory_order_relaxed);
    do {
        if (index >= BLOCKS * BLOCK_RECORDS - 1 || !map_block(index / BLOCK_RECORDS))
            return NULL;
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
        uint64_t next = ((head >> 32) + 1) << 32 | atomic_load_explicit(&first->next, memory_order_relaxed);
        if (atomic_compare_exchange_weak(&free_list, &head, next))
            return first;
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
