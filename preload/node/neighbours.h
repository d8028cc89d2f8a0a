/* PUs that idle, PUs that other processes keep busy, and threads of other processes that work on
 * given PUs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/base/mask.h"
#include "profile/base/ticks.h"

/* The counters of PUs at two moments. Zeros; what is not read takes no memory. */
struct pin_idling {
    bool is_known;
    struct profile_ticks before[PROFILE_MASK_PUS], now[PROFILE_MASK_PUS];
};

/* Reads those of `pus`; what was read is `before` then. True: both are known. */
bool pin_idling_read(struct pin_idling *idling, const struct profile_mask *pus);
/* Between both; below 0: not known. */
static inline double pin_idled_ns(const struct pin_idling *idling, uint32_t pu)
{
    return (double)profile_ticks_idled(&idling->before[pu], &idling->now[pu]) * PROFILE_TICK_NS;
}

/* PUs of `allowed` without an idle moment now, the load of the calling thread and of `launcher` and
 * its descendants (0: no launcher) not counted. Returns at once where nothing else is runnable,
 * else after 11 ms. False, and empty: not known, or the job's own load is not. */
bool pin_foreign_load_pus(const struct profile_mask *allowed, pid_t launcher,
                          struct profile_mask *out);

/* Pairs of a PU and another process; further ones are not kept. */
#define PIN_NEIGHBOURS 256u
#define PIN_NEIGHBOUR_NAME 16

/* Another process that has a thread on a PU (profile_thread_pu()). */
struct pin_neighbour {
    uint32_t pu;
    pid_t pid;
    bool fellow; /* of this rank's job */
    bool bound;  /* that thread may run nowhere else */
    char name[PIN_NEIGHBOUR_NAME];
};

struct pin_neighbours {
    size_t count;
    struct pin_neighbour each[PIN_NEIGHBOURS];
};

/* Those on `pus` at this moment. `launcher`: of this rank's job, 0: none. */
void pin_neighbours_find(const struct profile_mask *pus, pid_t launcher,
                         struct pin_neighbours *out);
