/* PUs that idle, and PUs that other processes keep busy. */
#ifndef SERVET_PRELOAD_NODE_FOREIGN_LOAD_H
#define SERVET_PRELOAD_NODE_FOREIGN_LOAD_H

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

#endif
