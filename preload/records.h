/* One record for each thread that the shim has a hand in, from before its creation until it ends.
 *
 * Records come from the shim's own memory (mapped in blocks, never given back, reused), because the program's malloc
 * may be its own, may create threads, and may be the thing that is being set up. Lock-free.
 */
#ifndef SERVET_PRELOAD_RECORDS_H
#define SERVET_PRELOAD_RECORDS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct pin_thread {
    _Atomic(uint32_t) next; /* of a free record: the next free one's number, 0: none */
    uint32_t number;        /* 1, 2, … */
    uint32_t slot, pool;
    int32_t pu;           /* -1: no PU of its own but all of the plan */
    uint32_t report_line; /* 0: none */
    const char *dso, *role, *decided_by;
    void *start, *argument;
};

/* A free record, or NULL when memory is short or 65,535 are in use. */
struct pin_thread *pin_record_take(void);
void pin_record_give_back(struct pin_thread *record);

#endif
